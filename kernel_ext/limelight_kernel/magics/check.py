"""`%check` judges the answer to an exercise of a lesson."""

from __future__ import annotations

from argparse import REMAINDER
from collections.abc import Iterable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

from limelight.errors import ArgumentError
from limelight_kernel import exercises
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.magics.magic import LimelightMagic, PlainText


@magics_class
class CheckMagic(LimelightMagic):
    """`%check`."""

    @magic_arguments()
    @argument("id", nargs="?", metavar="ID", help="the exercise, such as 1.1; without one they are listed")
    @argument("answer", nargs=REMAINDER, metavar="ANSWER", help="an expression of the notebook; the rest of the line")
    @argument("--all", action="store_true", help="list the exercises with their questions")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @no_var_expand
    @line_magic
    def check(self, line: str) -> Any:
        """Judge the answer to an exercise of a lesson: right, or the misconception that a wrong one comes from.

            %check
            %check 1.1 2
            %check 2.2 ll.constant(2.0), ll.constant(3.0)

        It needs no network, runs no more than a second, and tells no solution; %hint helps.

        From Python: limelight_kernel.exercises.check("1.1", 2)
        """
        given = arguments.parse(self.check, line)
        if given.id is None or given.all:
            return self._show(given, PlainText(_listed()))
        if not given.answer:
            return self._show(given, PlainText(_question(given.id)))
        text = line.partition(given.id)[2].strip().removesuffix(";")  # as typed: words lose their quotes in `given`
        try:
            answer = eval(text, self.shell.user_global_ns, self.shell.user_ns)
        except Exception as error:  # noqa: BLE001  # whatever the expression raises is the user's to read
            said = str(error).partition("\n")[0]
            raise UsageError(f"%check {given.id}: {text!r}: {type(error).__name__}: {said}") from None
        try:
            return self._show(given, PlainText(exercises.check(given.id, answer)))
        except ArgumentError as error:
            raise UsageError(f"%check: {error.bare}") from None

    def names(self) -> Iterable[str]:
        return list(exercises.EXERCISES)


def _question(name: str) -> str:
    known = exercises.EXERCISES.get(name)
    if known is None:
        raise UsageError(f"%check: there is no exercise {name!r}; there are {', '.join(exercises.EXERCISES)}")
    return f"{known.question} Answer: %check {name} ANSWER"


def _listed() -> str:
    return "\n".join([f"{name}  {one.question}" for name, one in exercises.EXERCISES.items()])

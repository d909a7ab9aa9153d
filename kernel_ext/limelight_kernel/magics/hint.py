"""`%hint` helps with an exercise of a lesson, a step at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

from limelight.errors import ArgumentError
from limelight_kernel import exercises
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.magics.magic import LimelightMagic, PlainText


@magics_class
class HintMagic(LimelightMagic):
    """`%hint`."""

    @magic_arguments()
    @argument("id", metavar="ID", help="the exercise, such as 1.1")
    @argument("--level", type=int, default=1, metavar="N", help="1 says where to look, 3 nearly tells; 1")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @line_magic
    def hint(self, line: str) -> Any:
        """Give a hint for an exercise of a lesson.

            %hint 1.1
            %hint 1.1 --level 3

        From Python: limelight_kernel.exercises.hint("1.1", level=3)
        """
        given = arguments.parse(self.hint, line)
        try:
            return self._show(given, PlainText(exercises.hint(given.id, given.level)))
        except ArgumentError as error:
            raise UsageError(f"%hint: {error.bare}") from None

    def names(self) -> Iterable[str]:
        return list(exercises.EXERCISES)

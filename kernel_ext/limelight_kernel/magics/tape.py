"""`%tape` shows what a gradient tape has recorded, and says why a gradient is None."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

import limelight_widgets as views
from limelight import explain
from limelight.errors import ArgumentError
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.magics.magic import Cards, LimelightMagic, PlainText
from limelight_widgets.figures.tape import saved_figure


@magics_class
class TapeMagic(LimelightMagic):
    """`%tape`."""

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="a gradient tape; default: the newest in the notebook")
    @argument("--why", nargs=2, metavar=("TARGET", "SOURCE"), help="say why the gradient of TARGET for SOURCE is None")
    @argument("--saved", action="store_true", help="what it keeps alive, tensor by tensor, and which rules need each")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @line_magic
    def tape(self, line: str) -> Any:
        """Show what a gradient tape has recorded, and the bytes that it keeps alive.

            %tape
            %tape --saved
            %tape --why loss x

        From Python: limelight_widgets.tape(tape), tape.saved_tensors, limelight.explain.why_none(tape, loss, x)
        """
        given = arguments.parse(self.tape, line)
        tape = self.session.tape(given.name)
        if tape is None:
            return self._nothing(given, "No tape is here yet: with ll.GradientTape() as tape: ...")
        if given.why:
            target, source = map(self.session.value, given.why)
            try:
                answer = explain.why_none(tape, target, source, scope=self.shell.user_ns)
            except ArgumentError as error:
                raise UsageError(f"%tape --why: {error.bare}") from None
            return self._show(given, Cards(answer))
        if given.saved:
            saved = saved_figure(tape)
            return self._say(given, PlainText(saved) if given.text else saved)
        return self._show(given, views.tape(tape))

    def names(self) -> Iterable[str]:
        return self.session.tape_names()

"""`%graph` shows the graph of a staged function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

import limelight_widgets as views
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.magics.magic import NO_FUNCTION, LimelightMagic
from limelight_kernel.staged.session import position


@magics_class
class GraphMagic(LimelightMagic):
    """`%graph`."""

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="a staged function; default: the last staged cell")
    @argument("--which", choices=("traced", "optimised"), default="optimised", help="the version shown first")
    @argument(
        "--trace", type=int, metavar="N", help="trace #N, -1 for the last; default: the newest, and those to come"
    )
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @line_magic
    def graph(self, line: str) -> Any:
        """Show the graph of a staged function.

            %graph double --which traced

        From Python: limelight_widgets.graph(double, which="traced")
        """
        given = arguments.parse(self.graph, line)
        function = self.session.function(given.name)
        if function is None:
            return self._nothing(given, NO_FUNCTION)
        trace = -1 if given.trace is None else position(function, given.trace)
        return self._show(given, views.graph(function, which=given.which, trace=trace))

    def names(self) -> Iterable[str]:
        return self.session.function_names()

"""`%graph` shows the graph of a staged function."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

import limelight_widgets as views
from limelight import explain
from limelight.errors import ArgumentError
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.magics.call_on_line import answer_about_call
from limelight_kernel.magics.magic import NO_FUNCTION, LimelightMagic
from limelight_kernel.staged.session import position
from limelight_kernel.staged.staged_cell import StagedCell
from limelight_widgets.figures.overlays import MEASURED, OVERLAYS


@magics_class
class GraphMagic(LimelightMagic):
    """`%graph`."""

    @magic_arguments()
    @argument("name", nargs="*", metavar="NAME", help="a staged function or a call; default: the last staged cell")
    @argument(
        "--which",
        choices=("traced", "optimised", "backward"),
        default="optimised",
        help="the version shown first; backward: as traced, and the gradient of the sum of its results behind it",
    )
    @argument("--find", metavar="QUERY", default="", help="what is sought at first: 'op:matmul dtype:f32 line:7'")
    @argument("--depth", type=int, metavar="N", help="how many levels of groups and functions are open at first")
    @argument(
        "--pass", dest="after", metavar="PASS", help="as this pass left it: its name, or how many had changed something"
    )
    @argument(
        "--trace", type=int, metavar="N", help="trace #N, -1 for the last; default: the newest, and those to come"
    )
    @argument(
        "--overlay", choices=OVERLAYS, help="tell this on the boxes; what is measured needs a CALL or a staged cell"
    )
    @argument("--diff", type=int, nargs=2, metavar="N", help="compare two traces, by the numbers that the cache shows")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @no_var_expand
    @line_magic
    def graph(self, line: str) -> Any:
        """Show the graph of a staged function.

        Of a call, such as double(x), the ops run one by one, without effects, and are measured: time, NaN and infinity,
        the norms of gradients; of a function without a tape those of the sum of its results. A staged cell is called
        with the values of the names that it reads.

            %graph double --which traced
            %graph double --overlay time
            %graph double --find op:add --depth 1
            %graph double --which backward

        --save puts the file in the place of one that is there; it also writes .dot, and .me.json for Model Explorer.

        From Python: limelight_widgets.graph(double, which="traced"), and its method save
        """
        given = arguments.parse(self.graph, line)
        text = " ".join(given.name)
        if len(given.name) > 1 and "(" not in text:
            raise UsageError(f"%graph: unrecognized arguments: {given.name[1]}; one NAME at a time")
        costs = self._costs(text, given.overlay, given.which == "backward")
        if costs is not None and given.overlay == "grad" and given.which == "optimised" and not costs.has_gradient:
            given.which, costs = "backward", self._costs(text, given.overlay, backward=True)
        function = costs.function if costs is not None else self.session.function(text or None, "%graph")
        if function is None:
            return self._nothing(given, NO_FUNCTION)
        trace = -1 if given.trace is None else position(function, given.trace)
        if given.trace is None and costs is not None and costs.entry in function.trace_cache:
            trace = list(function.trace_cache).index(costs.entry)  # the call's, which need not be the newest
        diff = None
        if given.diff is not None:
            diff = (
                position(function, given.diff[0], "%graph --diff"),
                position(function, given.diff[1], "%graph --diff"),
            )
        after = int(given.after) if (given.after or "").isdecimal() else given.after
        if diff is not None and (after is not None or given.which == "backward"):
            raise UsageError("%graph --diff: it compares two traces as they were traced; write no --pass, no --which")
        try:
            view = views.graph(
                function, which=given.which, trace=trace, costs=costs, overlay=given.overlay, diff=diff,
                find=arguments.unquoted(given.find), depth=given.depth, after=after,
            )  # fmt: skip
        except ArgumentError as error:
            said = error.bare.replace("after=", "--pass ", 1).replace("depth=", "--depth ", 1)
            raise UsageError(f"%graph: {said}") from None
        return self._show(given, view)

    def _costs(self, text: str, overlay: str | None, backward: bool) -> Any:
        """What the ops of a call take and give, and of its gradient; None where none is written and none is needed."""
        question = partial(explain.costs, gradient_of=True) if backward else explain.costs
        if "(" not in text:
            function = self.session.function(text or None) if overlay in MEASURED else None
            failed = function is self.session.failed or text in self.session.failed_names()
            if not isinstance(function, StagedCell) or failed:
                return None
            text = f"{text}()" if text else ""
            if not text:
                return question(function, **function.sent({}))
        return answer_about_call(self.session, text, question, "%graph")

    def names(self) -> Iterable[str]:
        return [*self.session.function_names(), *self.session.failed_names()]

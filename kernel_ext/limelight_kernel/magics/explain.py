"""`%explain` says all that the engine knows of a staged function, and hunts for NaN, impurity and leaks."""

from __future__ import annotations

from argparse import REMAINDER
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from IPython.core.magic import line_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

from limelight import explain
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.line.completion import Names
from limelight_kernel.magics.call_on_line import answer_about_call, without_flag, written_call
from limelight_kernel.magics.explain_report import Explanation
from limelight_kernel.magics.magic import NO_FUNCTION, Cards, LimelightMagic
from limelight_kernel.staged.session import refuse_loaded


@magics_class
class ExplainMagic(LimelightMagic):
    """`%explain`."""

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="a staged function; default: the last staged cell")
    @argument(
        "--nan", nargs=REMAINDER, metavar="CALL", help="name the first op that makes a NaN or infinity in this call"
    )
    @argument(
        "--pure", nargs=REMAINDER, metavar="CALL", help="trace this call twice, on the side, and tell what differs"
    )
    @argument("-g", "--grad", action="store_true", help="with --nan: in the gradient of the results, too")
    @argument("--leaks", action="store_true", help="list tensors of its traces that something has kept")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @no_var_expand
    @line_magic
    def explain(self, line: str) -> Any:
        """Say why a staged function was traced, what it does while tracing alone, and which values are baked in.

            %explain double
            %explain --nan double(x=x / 0)
            %explain --grad --nan double(x=x)
            %explain --pure double(x=x)

        --nan runs the call op by op; it changes no variable and assigns no name. --pure runs the Python code twice.

        From Python: limelight.explain.retrace, .side_effects, .baked, .nan, .purity, .leaks
        """
        given = arguments.parse(self.explain, line)
        if given.nan is not None:
            call, behind = without_flag(written_call(line, "--nan"), ("--grad", "-g"))
            question = partial(explain.nan, gradient_of=True) if given.grad or behind else explain.nan
            return self._show(given, Cards(answer_about_call(self.session, call, question, "%explain --nan")))
        if given.pure is not None:
            call = written_call(line, "--pure")
            return self._show(given, Cards(answer_about_call(self.session, call, explain.purity, "%explain --pure")))
        function = self.session.function(given.name)
        if function is None:
            return self._nothing(given, NO_FUNCTION)
        refuse_loaded(function, "%explain")
        answer = explain.leaks(function) if given.leaks else Explanation.of(function)
        return self._show(given, Cards(answer, function))

    def names(self) -> Iterable[str]:
        return self.session.function_names()

    def flag_values(self) -> Mapping[str, Names]:
        return dict.fromkeys(("--nan", "--pure"), self.session.function_names)

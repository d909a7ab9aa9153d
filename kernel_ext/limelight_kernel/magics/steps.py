"""`%steps` records a call step by step; `%%steps` does so with the cell."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

import limelight_widgets as views
from limelight import explain
from limelight.errors import ArgumentError
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.line.options import Options
from limelight_kernel.magics.call_on_line import answer_about_call
from limelight_kernel.magics.magic import NO_FUNCTION, LimelightMagic

LEVELS = ("trace", "pass", "passes", "run", "backward")
NO_STEPS = {
    "trace": "Tracing has recorded nothing.",
    "pass": "No pass of the optimiser changes the graph.",
    "run": "No op runs: the result is one of the inputs, or a constant.",
    "backward": "There are no backward steps: %steps --grad goes back, too, from the sum of all results.",
}
"""What is said where there are no steps of the kind that was asked for."""


@magics_class
class StepsMagic(LimelightMagic):
    """`%steps` and `%%steps`."""

    @magic_arguments()
    @argument("call", nargs="*", metavar="CALL", help="a call of a function or a module, or the name of a staged cell")
    @argument("-g", "--grad", action="store_true", help="go back, too, from the sum of all results")
    @argument(
        "--break",
        dest="stop_at",
        metavar="WHERE",
        default="",
        help="open at, and stop at: line:7,op:matmul,nan,shape,copy,retrace,error",
    )
    @argument("--level", choices=LEVELS, help="the steps of this kind alone")
    @argument("--most", type=int, default=1000, metavar="N", help="keep at most so many steps of each kind")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @no_var_expand
    @line_cell_magic
    def steps(self, line: str, cell: str | None = None) -> Any:
        """Step through a call: Python tracing it, the optimiser's passes, the ops that run, and those of the gradient.

        The player needs no kernel: it goes on working in a saved notebook and in an exported page. Nothing that the
        call would change is changed, but the Python code runs once more, while it is traced. Above a cell, the cell is
        recorded, and neither run nor assigned.

            %steps double(x=x)
            %steps --grad double
            %steps --level run --break op:add,nan double

            %%steps
            y = x * 2.0
            y.sum()

        From Python: limelight_widgets.steps(double, x), limelight.explain.steps(double, x)
        """
        given = arguments.parse(self.steps, line, cell)
        arguments.positive(given.most, "%steps --most")
        record = partial(explain.steps, gradient_of=True if given.grad else None, most=given.most)
        if cell is None:
            recording = self._of_call(" ".join(given.call), record)
        elif given.call:
            raise UsageError("%%steps: above a cell stand flags only; for a call, write %steps in a line of its own")
        else:
            staged, _ = self.session.cell(cell, line, Options())
            recording = record(staged, **staged.sent({}))
        if recording is None:
            return self._nothing(given, NO_FUNCTION)
        if given.level is not None:
            kind = "pass" if given.level == "passes" else given.level
            recording = replace(recording, steps=recording.of(kind))
            if not recording.steps:
                return self._nothing(given, NO_STEPS[kind])
        try:
            figure = views.steps(recording, stop_at=given.stop_at)
        except ArgumentError as error:
            raise UsageError(f"%steps --break: {error.bare}") from None
        return self._show(given, figure)

    def _of_call(self, text: str, record: Any) -> Any:
        """The recording of a call, or of a staged cell by its name; None where nothing is staged."""
        if "(" in text:
            return answer_about_call(self.session, text, record, "%steps")
        function = self.session.function(text or None, "%steps")
        if function is None:
            return None
        _check_needs_nothing(function, text or function.name)
        return answer_about_call(self.session, f"{text or function.name}()", record, "%steps")

    def names(self) -> Iterable[str]:
        return self.session.function_names()


def _check_needs_nothing(function: Any, name: str) -> None:
    """Raises UsageError for a function that has arguments to be given: a name alone is a call without any.

    A staged cell has none: it takes its inputs from the notebook.
    """
    signature = inspect.signature(function.python_function)
    try:
        signature.bind()
    except TypeError as error:
        given = ", ".join(signature.parameters)
        raise UsageError(f"%steps: `{name}` is {error}; write a call, as in %steps {name}({given})") from None

"""Running a function again for a gradient, with variables and generators as they were in the first run.

Variables that it only reads are answered with snapshots; those that it changes, and generators, are set back for the
while and put back after, so that assignments happen once. Other threads can see that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.control_flow.effect_recorder import EffectRecorder
from limelight.control_flow.variables_as_values import call_with_values
from limelight.core import dispatch
from limelight.core.op import Op
from limelight.core.tensor import Tensor
from limelight.core.variable import assign_op, read
from limelight.errors import GradientError


def snapshots_of(recorder: EffectRecorder) -> dict[int, Any]:
    """The values of the variables that the recorded block has just read and not changed, by uid."""
    changed = {variable._uid for variable, _ in recorder.states}
    return {uid: dispatch.apply(read, (variable,)) for uid, variable in recorder.read.items() if uid not in changed}


class Snapshots(dispatch.BlockInterpreter):
    """Answers reads of some variables with given values, also in functions that are called."""

    def __init__(self, values: dict[int, Any]) -> None:
        self._values = values

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        assert self.below is not None, "an interpreter is asked only while it is on the stack"
        if op is read and inputs[0]._uid in self._values:
            return self._values[inputs[0]._uid]
        replaced = call_with_values(op, inputs, attrs, self._values) if op.higher_order else (inputs, attrs)
        if replaced is None:
            raise GradientError(
                f"run again for a gradient, a function does something else than before: {op} now changes a variable "
                "that it only read, or has a custom gradient that reads it; let what it does depend on its arguments "
                "alone"
            )
        return self.below.process(op, *replaced)


class with_states(dispatch.Guard):  # noqa: N801  # used as a function
    """Runs its block with generators and variables in the given states, and restores the present ones after it."""

    def __init__(self, states: Sequence[tuple[Any, Any]]) -> None:
        super().__init__()
        self._states = states
        self._before: list[tuple[Any, Any]] = []

    def begin(self) -> None:
        for variable, state in self._states:
            self._before.append((variable, dispatch.apply(read, (variable,))))
            dispatch.apply(assign_op, (variable, state))

    def end(self, abandoned: bool) -> None:
        if not abandoned:
            self._restore(self._before)
            return
        with dispatch.fresh_stack():  # what an unfinished trace would have set back, nobody has changed
            self._restore([(variable, state) for variable, state in self._before if type(state) is Tensor])

    def _restore(self, states: Sequence[tuple[Any, Any]]) -> None:
        for variable, state in states:
            dispatch.apply(assign_op, (variable, state))

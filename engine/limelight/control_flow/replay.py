"""Running a function once more, for a gradient, with variables and generators as they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from limelight.control_flow.effect_recorder import Watcher
from limelight.control_flow.variables_as_values import valued
from limelight.core import dispatch
from limelight.core.op import Op
from limelight.core.variable import assign_op, read
from limelight.errors import GradientError


def snapshots_of(seen: Watcher) -> dict[int, Any]:
    """The values of the variables that a function has just read and not changed, by uid."""
    changed = {variable._uid for variable, _ in seen.states}
    return {uid: dispatch.apply(read, (variable,)) for uid, variable in seen.read.items() if uid not in changed}


class Snapshots(dispatch.BlockInterpreter):
    """Answers reads of some variables with what they were, in functions that are called, too."""

    def __init__(self, values: dict[int, Any]) -> None:
        self._values = values

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        assert self.below is not None, "an interpreter is asked only while it is on the stack"
        if op is read and inputs[0]._uid in self._values:
            return self._values[inputs[0]._uid]
        found = valued(op, inputs, attrs, self._values) if op.higher_order else (inputs, attrs)
        if found is None:
            raise GradientError(
                f"run again for a gradient, a function does something else than before: {op} now changes a variable "
                "that it only read, or has a custom gradient that reads it; let what it does depend on its arguments "
                "alone"
            )
        return self.below.process(op, *found)


@contextmanager
def replayed(states: Sequence[tuple[Any, Any]]) -> Iterator[None]:
    """Runs its block with generators and variables in the given states, and puts them back into those that they had."""
    before = []
    try:
        for variable, state in states:
            before.append((variable, dispatch.apply(read, (variable,))))
            dispatch.apply(assign_op, (variable, state))
        yield
    finally:
        for variable, state in before:
            dispatch.apply(assign_op, (variable, state))

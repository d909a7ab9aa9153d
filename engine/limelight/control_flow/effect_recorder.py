"""An interpreter that records what the code in its block reads, writes and draws."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from limelight.autodiff import INEXACT, ForwardAccumulator, GradientTape
from limelight.batching import Batched, Ragged
from limelight.control_flow.run_fingerprint import RunFingerprint, followed
from limelight.control_flow.variables_as_values import all_can_be_values
from limelight.core import dispatch
from limelight.core.op import Op
from limelight.core.tensor import Tensor, new_uid
from limelight.core.variable import Resource, read
from limelight.graph.effects import effects_of_graph
from limelight.graph.ir import functions_in
from limelight.user_code import source_line


class EffectRecorder(dispatch.BlockInterpreter):
    """Records the trainable variables that its block reads, in order, and the user's lines that do input or output.

    Args:
        tensors: whether to record the tensors from outside that a tape watches or an accumulator has tangents of.
        states: whether to record what it takes to run the block again: all variables that it reads, and the states of
            generators and variables that it changes, or for which no value can stand (see `variables_as_values`).
        fingerprint: follows the run, where another one is to be compared with it.
    """

    def __init__(self, tensors: bool = False, states: bool = False, fingerprint: RunFingerprint | None = None) -> None:
        self._fingerprint = fingerprint
        self.variables: list[Any] = []
        self.read: dict[int, Resource] = {}
        self.states: list[tuple[Resource, Any]] = []  # generators and variables, with their states before the block
        self._keeps_states = states
        self.tensors: dict[int, Tensor] = {}
        self._made: set[int] = set()  # the uids of what is computed in the block
        self._followed: list[Container[int]] = []
        for x in dispatch.stack() if tensors else ():
            if isinstance(x, (GradientTape, ForwardAccumulator)):
                self._followed.append(x._watched if isinstance(x, GradientTape) else x._tangents)
        self.io: list[source_line.Source | None] = []  # the user's lines

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        if op.effect is not None or op.higher_order:
            self._record(op, inputs, attrs)
        assert self.below is not None, "an interpreter is asked only while it is on the stack"
        self.record_tensors(inputs)
        result = followed(self._fingerprint, self.below, op, inputs, attrs)
        for y in (result if op.multiple else (result,)) if self._followed else ():
            y._uid = y._uid or new_uid()
            self._made.add(y._uid)
        return result

    def _record(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> None:
        for function in functions_in(attrs):
            self._record_function(function, inputs)
        if op.effect == "read":
            self._record_read(inputs[0])
        elif op.effect in ("write", "random"):
            self._record_change(inputs[0])
        elif op.effect == "io":
            self._record_io()
        elif op.higher_order and self._keeps_states:
            for i, x in enumerate(inputs):
                if isinstance(x, Resource) and not all_can_be_values(len(inputs), attrs, i):
                    self._record_change(x)

    def record_tensors(self, inputs: Sequence[Any]) -> None:
        """Records those of `inputs` that come from outside and are followed by a tape or an accumulator."""
        for x in inputs if self._followed else ():
            if isinstance(x, Tensor) and x._uid not in self._made and self._is_followed(x):
                x._uid = x._uid or new_uid()
                self.tensors[x._uid] = x

    def _is_followed(self, x: Tensor) -> bool:
        """Whether a tape or an accumulator follows `x`, or the batch that it is an example of."""
        if x._uid and any(x._uid in uids for uids in self._followed):
            return True
        if isinstance(x, Ragged):
            return any(map(self._is_followed, x.values))
        return isinstance(x, Batched) and self._is_followed(x._value)

    def _record_function(self, function: Any, inputs: tuple[Any, ...]) -> None:
        effects = effects_of_graph(function.graph)
        values = function.graph.inputs
        for value, x in zip(values, inputs[len(inputs) - len(values) :], strict=True):
            if value in effects.reads:
                self._record_read(x)
            if value in effects.writes:
                self._record_change(x)
        if "io" in effects.chains:
            self._record_io()

    def _record_read(self, variable: Resource) -> None:
        self.read[variable._uid] = variable
        known = any(v._uid == variable._uid for v in self.variables)
        if variable.trainable and variable.dtype in INEXACT and not known:
            self.variables.append(variable)

    def _record_change(self, variable: Resource) -> None:
        """Records the state of a variable or generator before it is changed for the first time."""
        assert self.below is not None
        if self._keeps_states and all(known._uid != variable._uid for known, _ in self.states):
            self.states.append((variable, self.below.process(read, (variable,), ())))

    def _record_io(self) -> None:
        self.io.append(source_line.user_line())

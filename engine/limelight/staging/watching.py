"""An interpreter that notes what a piece of code reads, writes and draws while it runs eagerly."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, NamedTuple

from limelight import dispatch, source
from limelight.batching import Batched
from limelight.graph.effects import effects_of_graph
from limelight.graph.ir import functions_in
from limelight.registry import Op
from limelight.tape import INEXACT, ForwardAccumulator, GradientTape
from limelight.tensor import Tensor, new_uid
from limelight.variables import Resource, read


class Seen(NamedTuple):
    """An effect: "assigns to the variable 'v'" or "does input or output", and the user's line."""

    what: str
    line: source.Source | None


class Watcher(dispatch.BlockInterpreter):
    """Notes the trainable variables that are read in its block, in order, and the effects that happen.

    With `tensors` also the tensors that it takes from outside which a tape watches, or an accumulator moves.
    """

    def __init__(self, tensors: bool = False) -> None:
        self.variables: list[Any] = []
        self.tensors: dict[int, Tensor] = {}
        self._made: set[int] = set()  # the uids of what is computed in the block
        self._followed: list[Container[int]] = []
        for x in dispatch.stack() if tensors else ():
            if isinstance(x, (GradientTape, ForwardAccumulator)):
                self._followed.append(x._watched if isinstance(x, GradientTape) else x._tangents)
        self.effects: list[Seen] = []
        self.generators: list[tuple[Any, Any]] = []  # those drawn from, with their states before that

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        if op.effect is not None or op.higher_order:
            self._note(op, inputs, attrs)
        assert self.below is not None, "an interpreter is asked only while it is on the stack"
        if not self._followed:
            return self.below.process(op, inputs, attrs)
        self.note_tensors(inputs)
        result = self.below.process(op, inputs, attrs)
        for y in result if op.multiple else (result,):
            y._uid = y._uid or new_uid()
            self._made.add(y._uid)
        return result

    def _note(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> None:
        for function in functions_in(attrs):
            self._note_function(function, inputs)
        if op.effect == "read":
            self._note_read(inputs[0])
        elif op.effect == "write":
            self._note_write(inputs[0])
        elif op.effect == "io":
            self._note_effect("does input or output")
        elif op.effect == "random":
            self._note_write(inputs[0])

    def note_tensors(self, inputs: Sequence[Any]) -> None:
        """Notes those of `inputs` that are followed, but for what is computed within the block."""
        for x in inputs:
            if isinstance(x, Tensor) and x._uid not in self._made and self._is_followed(x):
                x._uid = x._uid or new_uid()
                self.tensors[x._uid] = x

    def _is_followed(self, x: Tensor) -> bool:
        """Whether a tape or an accumulator knows `x`, or what it stands for in a vectorised call."""
        if x._uid and any(x._uid in uids for uids in self._followed):
            return True
        return isinstance(x, Batched) and self._is_followed(x._value)

    def _note_function(self, function: Any, inputs: tuple[Any, ...]) -> None:
        effects = effects_of_graph(function.graph)
        values = function.graph.inputs
        for value, x in zip(values, inputs[len(inputs) - len(values) :], strict=True):
            if value in effects.reads:
                self._note_read(x)
            if value in effects.writes:
                self._note_write(x)
        if "io" in effects.chains:
            self._note_effect("does input or output")

    def _note_read(self, variable: Resource) -> None:
        known = any(v._uid == variable._uid for v in self.variables)
        if variable.trainable and variable.dtype in INEXACT and not known:
            self.variables.append(variable)

    def _note_write(self, variable: Resource) -> None:
        if getattr(variable.spec, "anywhere", False):  # a generator
            self._note_draw(variable)
        else:
            self._note_effect(f"assigns to the variable {getattr(variable, 'name', '?')!r}")

    def _note_draw(self, generator: Resource) -> None:
        assert self.below is not None
        if all(known._uid != generator._uid for known, _ in self.generators):
            self.generators.append((generator, self.below.process(read, (generator,), ())))

    def _note_effect(self, what: str) -> None:
        self.effects.append(Seen(what, source.user_line()))

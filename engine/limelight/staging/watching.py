"""An interpreter that notes what a piece of code reads, writes and draws while it runs eagerly."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from limelight import dispatch, source
from limelight.graph.effects import effects_of_graph
from limelight.graph.ir import is_function
from limelight.registry import Op
from limelight.tape import INEXACT
from limelight.variables import Resource, read


class Seen(NamedTuple):
    """An effect: "assigns to the variable 'v'" or "does input or output", and the user's line."""

    what: str
    line: source.Source | None


class Watcher(dispatch.Interpreter):
    """Notes the trainable variables that are read in its block, in order, and the effects that happen."""

    def __init__(self) -> None:
        self.variables: list[Any] = []
        self.effects: list[Seen] = []
        self.generators: list[tuple[Any, Any]] = []  # those drawn from, with their states before that

    def __enter__(self) -> Watcher:
        dispatch.push(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            dispatch.remove(self)
        except KeyboardInterrupt:
            dispatch.remove(self)
            raise

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        if op.effect is not None or op.higher_order:
            self._note(op, inputs, attrs)
        assert self.below is not None, "an interpreter is asked only while it is on the stack"
        return self.below.process(op, inputs, attrs)

    def _note(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> None:
        for function in [p for p in attrs if is_function(p)]:
            self._note_function(function, inputs)
        if op.effect == "read":
            self._note_read(inputs[0])
        elif op.effect == "write":
            self._note_write(inputs[0])
        elif op.effect == "io":
            self._note_effect("does input or output")
        elif op.effect == "random":
            self._note_write(inputs[0])

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

"""Programs, graphs and events made by hand, so that views are tested as data, without running the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from limelight.core.spec import TensorSpec
from limelight.graph.ir import Graph, Node, Value
from limelight.user_code.source_line import Source


@dataclass(frozen=True)
class FakeOp:
    """As much of an op as a view looks at."""

    name: str
    attrs: tuple[str, ...] = ()
    rule: str = ""
    effect: str | None = None
    higher_order: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass
class FakeFunction:
    """A nested function, as a parameter of a call."""

    name: str
    graph: Graph
    run: Callable[..., tuple[Any, ...]] = field(default=lambda *_: ())


class GraphMaker:
    """Writes a graph node by node: `value = make.node("tanh", x)`."""

    def __init__(self, name: str = "f", file: str = "cell.py") -> None:
        self.name = name
        self.file = file
        self.inputs: list[Value] = []
        self.names: list[str] = []
        self.nodes: list[Node] = []
        self.captures = 0

    def input(self, name: str, shape: Sequence[int] = (2, 3), *, captured: bool = False) -> Value:
        self.inputs.append(Value(TensorSpec(tuple(shape), np.dtype("float32"))))
        self.names.append(name)
        self.captures += captured
        return self.inputs[-1]

    def node(self, op: str, *inputs: Value, line: int = 0, scope: str = "", outputs: int = 1, **more: Any) -> Value:
        params = more.pop("params", {})
        given = more.pop("functions", ())  # by name, or in order
        named = given if isinstance(given, dict) else {f"function{i}": function for i, function in enumerate(given)}
        attrs, functions = (*params, *named), tuple(named.values())
        declared = FakeOp(op, attrs, more.pop("rule", ""), more.pop("effect", None), bool(functions))
        stack = (Source(self.file, line, "f"),) if line else ()
        specs = [TensorSpec((2, 3), np.dtype("float32"))] * outputs
        node = Node(declared, inputs, (*params.values(), *functions), specs, stack=stack, scope=scope, **more)  # type: ignore[arg-type]
        self.nodes.append(node)
        return node.outputs[0]

    def graph(self, *outputs: Value) -> Graph:
        return Graph(self.name, self.inputs, self.nodes, outputs, input_names=self.names, n_captures=self.captures)


@pytest.fixture
def make() -> Callable[..., GraphMaker]:
    return GraphMaker


@pytest.fixture
def fake_function() -> type[FakeFunction]:
    return FakeFunction


@pytest.fixture
def network(make: Callable[..., GraphMaker]) -> Graph:
    """Two dense layers with scopes, a nested call, a constant and a capture."""
    loss = make("loss")
    logits, labels = loss.input("logits"), loss.input("labels")
    difference = loss.node("subtract", logits, labels, line=2)
    inner = loss.graph(loss.node("mean", loss.node("multiply", difference, difference, line=3), line=3))
    step = make("step")
    x, y, w = step.input("x"), step.input("y"), step.input("w", captured=True)
    hidden = step.node("matmul", x, w, line=5, scope="dense/", rule="ā = c̄ bᵀ,  b̄ = aᵀ c̄")
    hidden = step.node("tanh", hidden, line=6, scope="dense/")
    two = step.node("constant", params={"value": np.float32(2.0)})
    scaled = step.node("multiply", hidden, two, line=7)
    out = step.node("call", scaled, y, line=8, functions=(FakeFunction("loss", inner),))
    return step.graph(out)


@dataclass(eq=False)
class FakeEntry:
    """An entry of a trace cache."""

    index: int
    graph: Graph
    optimised: Graph
    signature: str = "f32[2,3]"
    hits: int = 0
    device: str = "CPU:0"
    tier: str = "plan"
    trace_seconds: float = 0.01
    nbytes: int = 24
    reason: str = "first call"


class FakeCache(list[Any]):
    """The entries of a trace cache; `history.made` is how many there have been."""

    def __init__(self) -> None:
        super().__init__()
        self.history = SimpleNamespace(made=0)

    def append(self, entry: Any) -> None:
        super().append(entry)
        self.history.made += 1


@dataclass(eq=False)
class FakeStaged:
    """A staged function with a trace cache that tests fill."""

    name: str = "step"
    id: int = -7  # no function has it: others may have traces that failed
    trace_cache: FakeCache = field(default_factory=FakeCache)

    def add(self, graph: Graph, **fields: Any) -> FakeEntry:
        optimised = fields.pop("optimised", graph)
        self.trace_cache.append(FakeEntry(len(self.trace_cache), graph, optimised, **fields))
        return self.trace_cache[-1]


@pytest.fixture
def staged() -> FakeStaged:
    return FakeStaged()


LINE = Source("cell.py", 4, "f")


@dataclass(frozen=True)
class FakeRecord:
    """A tape's entry as shown to people."""

    index: int
    op: str = "tanh"
    saved_bytes: int = 40
    rule: str = "x̄ = ȳ (1 - y²)"
    inputs: tuple[str, ...] = ("f32[10]",)
    outputs: tuple[str, ...] = ("f32[10]",)
    source: Source | None = LINE


@dataclass(eq=False)
class FakeTape:
    """A gradient tape that has recorded."""

    entries: list[FakeRecord] = field(default_factory=list)
    id: int = 3
    used: bool = False
    persistent: bool = False

    def __repr__(self) -> str:
        return f"<GradientTape {self.id}: {'used' if self.used else 'idle'}, {len(self.entries)} entries>"


@pytest.fixture
def fake_tape() -> Callable[..., FakeTape]:
    """Call it with the saved bytes of each entry."""
    return lambda *saved: FakeTape([FakeRecord(index, saved_bytes=nbytes) for index, nbytes in enumerate(saved)])

"""Random programs: the same values and effects from NumPy and from each executor, for graphs optimised or not.

A program is built twice at once: as a graph, and as arrays computed by NumPy's own functions as it grows. Every run
also checks that nothing was written that belongs to somebody else: inputs, values of variables, literals, and what an
earlier run has returned.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.core.op import get
from limelight.core.spec import TensorSpec
from limelight.executors import base
from limelight.executors.plan import codegen, plan
from limelight.graph import Graph, Literal, Node, Value, parse, show, verify
from limelight.graph.effects import EffectOrder
from limelight.optimise import optimise

UNARY = {
    "tanh": np.tanh,
    "sin": np.sin,
    "negative": np.negative,
    "square": np.square,
    "abs": np.abs,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "identity": lambda x: x,
    "stop_gradient": lambda x: x,
}
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}
DTYPES = (np.dtype("float32"), np.dtype("float64"))
COMPILED = int(os.environ.get("LIMELIGHT_COMPILED", "8"))
"""Programs that the executor `xla` runs, each of which it compiles for a tenth of a second or more."""


class Program:
    """A graph under construction, and the value that NumPy computes for each of its values."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.random = np.random.default_rng(draw(st.integers(0, 2**16)))
        self.nodes: list[Node] = []
        self.inputs: list[Value] = []
        self.payloads: list[np.ndarray] = []
        self.variables: list[Value] = []
        self.initial: list[np.ndarray] = []
        self.now: list[np.ndarray] = []  # the variables' values as the program goes on
        self.values: list[Value] = []
        self.known: dict[Value, np.ndarray] = {}
        self.order = EffectOrder()

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        array = np.asarray(self.random.normal(size=shape)).astype(dtype)
        return np.array(array, order="F" if self.draw(st.booleans()) else "C")

    def add_input(self) -> None:
        shape = tuple(self.draw(st.lists(st.sampled_from([1, 2, 3]), max_size=3)))
        dtype = self.draw(st.sampled_from(DTYPES))
        promised = [None if self.draw(st.integers(0, 3)) == 0 else n for n in shape]
        value = Value(TensorSpec(promised, dtype))
        self.inputs.append(value)
        self.payloads.append(self.array(shape, dtype))
        self.know(value, self.payloads[-1])

    def add_variable(self) -> None:
        shape = tuple(self.draw(st.lists(st.sampled_from([2, 3]), max_size=2)))
        initial = self.array(shape, self.draw(st.sampled_from(DTYPES)))
        self.variables.append(Value(ll.Variable(initial).spec))
        self.initial.append(initial)
        self.now.append(initial)

    def know(self, value: Value, array: Any) -> None:
        self.values.append(value)
        self.known[value] = np.asarray(array)

    def pick(self, wanted: Any = lambda value: True) -> Value | None:
        found = [value for value in self.values if wanted(value)]
        return self.draw(st.sampled_from(found)) if found else None

    def emit(self, op: str, inputs: tuple[Value, ...], params: tuple[Any, ...], result: Any) -> None:
        """Adds a node; `result` is what NumPy says that it computes."""
        spec = get(op).infer(*[value.spec for value in inputs], *params)
        node = Node(get(op), inputs, params, [spec])
        if node.op.effect is not None:
            node.after = self.order.place(node)
        self.nodes.append(node)
        self.know(node.outputs[0], result)

    def grow(self) -> None:
        step = getattr(self, self.draw(st.sampled_from(STEPS)))
        with np.errstate(all="ignore"):
            step()

    # Steps: each adds one node if it finds operands

    def unary(self) -> None:
        x, op = self.pick(), self.draw(st.sampled_from(sorted(UNARY)))
        self.emit(op, (x,), (), UNARY[op](self.known[x]))

    def binary(self) -> None:
        x, op = self.pick(), self.draw(st.sampled_from(sorted(BINARY)))
        y = self.pick(lambda other: other.spec.dtype == x.spec.dtype and self.fits(x, other))
        self.emit(op, (x, y), (), BINARY[op](self.known[x], self.known[y]))

    def fits(self, x: Value, y: Value) -> bool:
        try:
            np.broadcast_shapes(self.known[x].shape, self.known[y].shape)
        except ValueError:
            return False
        return True

    def constant(self) -> None:
        dtype = self.draw(st.sampled_from(DTYPES))
        array = self.array(self.draw(st.sampled_from([(), (3,), (2, 1)])), dtype)
        self.emit("constant", (), (Literal(array),), array)

    def where(self) -> None:
        x = self.pick()
        y = self.pick(lambda other: other.spec == x.spec and self.known[other].shape == self.known[x].shape)
        greater = Node(get("greater"), (x, y), (), [get("greater").infer(x.spec, y.spec)])
        self.nodes.append(greater)
        chosen = np.where(self.known[x] > self.known[y], self.known[x], self.known[y])
        self.emit("where", (*greater.outputs, x, y), (), chosen)

    def reduction(self) -> None:
        x = self.pick()
        op = self.draw(st.sampled_from(sorted(REDUCTIONS) if self.known[x].size else ["prod", "sum"]))  # of nothing
        rank = self.known[x].ndim
        axis = (
            self.draw(st.none() | st.sets(st.integers(0, rank - 1)).map(lambda s: tuple(sorted(s)))) if rank else None
        )
        keepdims = self.draw(st.booleans())
        self.emit(op, (x,), (axis, keepdims), REDUCTIONS[op](self.known[x], axis=axis, keepdims=keepdims))

    def matmul(self) -> None:
        x = self.pick(lambda v: self.known[v].ndim > 0)
        y = x and self.pick(
            lambda v: (
                self.known[v].ndim > 0
                and v.spec.dtype == x.spec.dtype
                and self.multiplies(self.known[x], self.known[v])
            )
        )
        if x and y:
            self.emit("matmul", (x, y), (), np.matmul(self.known[x], self.known[y]))

    def multiplies(self, x: np.ndarray, y: np.ndarray) -> bool:
        try:
            np.matmul(x, y)
        except ValueError:
            return False
        return True

    def reshape(self) -> None:
        x = self.pick()
        shape = self.draw(st.sampled_from([(-1,), self.known[x].shape[::-1], (*self.known[x].shape, 1)]))
        self.emit("reshape", (x,), (shape,), self.known[x].reshape(shape))

    def transpose(self) -> None:
        x = self.pick()
        axes = tuple(self.draw(st.permutations(range(self.known[x].ndim))))
        self.emit("transpose", (x,), (axes,), self.known[x].transpose(axes))

    def broadcast_to(self) -> None:
        x = self.pick(lambda v: self.known[v].size < 100 and None not in v.spec.shape)
        shape = (self.draw(st.integers(1, 3)), *self.known[x].shape) if x else ()
        if x:
            self.emit("broadcast_to", (x,), (shape,), np.broadcast_to(self.known[x], shape))

    def sum_to(self) -> None:
        x = self.pick()
        array = self.known[x]
        lead = self.draw(st.integers(0, array.ndim))
        shape = tuple(1 if self.draw(st.booleans()) else n for n in array.shape[lead:])
        over = tuple(i for i in range(array.ndim) if i < lead or shape[i - lead] != array.shape[i])
        self.emit("sum_to", (x,), (shape,), array.sum(over, dtype=array.dtype).reshape(shape))

    def astype(self) -> None:
        x, dtype = self.pick(), self.draw(st.sampled_from(DTYPES))
        self.emit("astype", (x,), (dtype,), self.known[x].astype(dtype))

    def slice(self) -> None:
        x = self.pick(lambda v: self.known[v].ndim > 0 and len(self.known[v]) > 0)
        if x:
            key = self.draw(st.sampled_from([(0,), ((1, None, None),), ((None, None, -1),), (None, (0, 1, None))]))
            native = tuple(slice(*part) if isinstance(part, tuple) else part for part in key)
            self.emit("slice", (x,), (key,), self.known[x][native])

    def concat(self) -> None:
        x = self.pick(lambda v: self.known[v].ndim > 0)
        if x:
            self.emit("concat", (x, x), (0,), np.concatenate([self.known[x], self.known[x]]))

    def read(self) -> None:
        if self.variables:
            i = self.draw(st.integers(0, len(self.variables) - 1))
            self.emit("read_variable", (self.variables[i],), (), self.now[i])

    def write(self) -> None:
        if not self.variables:
            return
        i = self.draw(st.integers(0, len(self.variables) - 1))
        variable = self.variables[i].spec
        x = self.pick(lambda v: v.spec.dtype == variable.dtype and v.spec.shape == variable.shape)
        if x:
            op = self.draw(st.sampled_from(["assign", "assign_add", "assign_sub"]))
            new = {"assign": 0, "assign_add": self.now[i], "assign_sub": self.now[i]}[op]
            self.now[i] = np.asarray(new - self.known[x] if op == "assign_sub" else new + self.known[x])
            self.emit(op, (self.variables[i], x), (), self.now[i])

    def finish(self) -> Graph:
        n = self.draw(st.integers(1, 4))
        outputs = [self.draw(st.sampled_from(self.values)) for _ in range(n)] + self.values[-1:]
        return Graph("random", [*self.inputs, *self.variables], self.nodes, outputs, n_captures=len(self.variables))


STEPS = [
    *(["unary"] * 3 + ["binary"] * 4),
    *["constant", "where", "reduction", "matmul", "reshape", "transpose", "broadcast_to", "sum_to", "astype", "slice"],
    *["concat", "read", "write"],
]


@st.composite
def programs(draw: Any) -> tuple[Program, Graph]:
    program = Program(draw)
    for _ in range(draw(st.integers(1, 3))):
        program.add_input()
    for _ in range(draw(st.integers(0, 2))):
        program.add_variable()
    for _ in range(draw(st.integers(1, 25))):
        program.grow()
    return program, program.finish()


def same(got: Any, expected: np.ndarray, single: bool = False) -> None:
    """Equal but for rounding: of 32 bits where that is the dtype, or `single` says that such values are on the way."""
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    tolerance = 2e-4 if single or expected.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


class Watched:
    """What must not change while something runs, with copies of how it was."""

    def __init__(self) -> None:
        self.arrays: list[tuple[str, Any, np.ndarray]] = []

    def add(self, what: str, array: Any) -> None:
        self.arrays.append((what, array, np.array(array)))

    def check(self) -> None:
        for what, array, before in self.arrays:
            assert np.array_equal(array, before, equal_nan=True), f"{what} was written to"


def check(program: Program, graph: Graph, run: Any, single: bool = False) -> None:
    """Runs the program twice, and compares values, effects and who owns what."""
    watched = Watched()
    for node in graph.nodes:
        if node.op == "constant":
            watched.add("a literal", node.params[0].array)
    for _ in range(2):
        variables = [ll.Variable(initial) for initial in program.initial]
        payloads = [np.array(x, order="K") for x in program.payloads]
        for x in payloads:
            watched.add("an input", x)
        for variable in variables:
            watched.add("the value of a variable before the run", variable._data.array)
        outputs = run(*payloads, *[variable._data for variable in variables])
        for got, value in zip(outputs, graph.outputs, strict=True):
            same(got, program.known[value], single)
            watched.add("an output", got)
        for variable, expected in zip(variables, program.now, strict=True):
            same(variable._data.array, expected, single)
            watched.add("the value of a variable after the run", variable._data.array)
        watched.check()


@pytest.mark.slow  # hundreds of random graphs
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@settings(max_examples=200)
@given(programs())
def test_executors_agree(drawn: tuple[Program, Graph]) -> None:
    program, graph = drawn
    verify(graph)
    optimised = []
    for level in (1, 2):
        better, records = optimise(graph, level, check=True)
        removed = sum(record.removed - record.added for record in records)
        assert len(graph.nodes) - removed == len(better.nodes)
        optimised.append(better)
    assert {"plan", "step"} <= set(base.names())
    for executor in [base.get(name) for name in base.names() if name != "xla"]:  # that compiles: see below
        check(program, graph, executor.build(graph))
        for better in optimised:
            check(program, better_like(graph, better), executor.build(better))
    again = parse(show(graph, literals="full"))
    assert again.text() == graph.text()
    check(program, better_like(graph, again), plan.build(again))


@pytest.mark.slow  # each program is compiled
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.skipif("xla" not in base.names(), reason="JAX is not installed: pip install 'limelight[xla]'")
@settings(max_examples=COMPILED)
@given(programs())
def test_compiled_programs_agree(drawn: tuple[Program, Graph]) -> None:
    program, graph = drawn
    better = optimise(graph)[0] if len(graph.nodes) % 2 else graph
    run: Any = base.get("xla").build(better)
    values = [value for node in graph.nodes for value in node.outputs]
    single = any(getattr(value.spec, "dtype", None) == np.float32 for value in (*graph.inputs, *values))
    check(program, better_like(graph, better), run, single)  # XLA rounds otherwise, and a float64 may come of a float32
    assert run.tier == "xla", run.refusal


def better_like(graph: Graph, other: Graph) -> Graph:
    """`other`'s literals with the outputs of `graph`, whose values the program knows."""
    literals = [node for node in other.nodes if node.op == "constant"]
    return Graph(graph.name, graph.inputs, literals, graph.outputs)


@pytest.mark.slow  # large random graphs
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@settings(max_examples=80)
@given(programs(), st.integers(1, 7))
def test_large_plans_are_cut_anywhere(drawn: tuple[Program, Graph], size: int) -> None:
    program, graph = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codegen, "PART", size)
        check(program, graph, plan.build(graph))


@pytest.mark.slow  # hundreds of programs
def test_the_programs_have_something_to_find() -> None:
    """Buffers are reused, operators and methods replace kernels: the programs above are of a kind that plans change."""
    found = ["add(", ".dot(", " = v", "del ", "parked["]
    seen: set[str] = set()

    @settings(max_examples=60, database=None)
    @given(programs())
    def look(drawn: tuple[Program, Graph]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(codegen, "PART", 10)
            source = plan.build(drawn[1]).source
        seen.update(word for word in found if word in source)
        for line in source.split("\n"):
            target, _, call = line.strip().partition(" = ")
            if call.endswith(f", {target})") and target.startswith("v"):
                seen.add("reuse")

    look()
    assert seen == {*found, "reuse"}


def test_sizes_of_the_programs_are_sane() -> None:
    """A guard for the generator: `math.prod` of what it promises is what it gives."""

    @settings(max_examples=30, database=None)
    @given(programs())
    def look(drawn: tuple[Program, Graph]) -> None:
        program, graph = drawn
        for value in graph.outputs:
            if None not in value.spec.shape:
                assert math.prod(value.spec.shape) == program.known[value].size

    look()

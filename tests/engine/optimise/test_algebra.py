"""Every small expression that a rule might look at, in every dtype: simplified exactly it keeps its bits.

The rules' guards are many: dtypes whose arithmetic has other laws, constants that overflow, shapes that a constant
widens, values that somebody else needs as well. Here all of them meet.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limelight as ll  # noqa: F401  # registers the ops
from limelight.core import dtypes
from limelight.core.op import get
from limelight.core.spec import TensorSpec
from limelight.errors import LimelightError
from limelight.executors import step
from limelight.graph import Graph, Literal, Node, Value
from limelight.optimise.algebra import _casts_join
from limelight.optimise.dead_code import prune
from limelight.optimise.simplify import simplify, simplify_exactly

sys.path.insert(0, str(Path(__file__).parent))

from applying import bits, check, ops  # beside this file

CONSTANTS = (0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -4.0, 0.5, 5.5, 1e30, 1e-30, 2.0**70, float("inf"), float("nan"))
PAIRED = (-1.0, 2.0, 0.5, -3.0, 1e30, 1e-30, 0.0, float("inf"))
UNARY = ("negative", "abs", "square", "floor", "ceil", "trunc", "relu", "identity", "positive", "stop_gradient", "exp")
BINARY = ("add", "subtract", "multiply", "divide")
CASTS = tuple(map(dtypes.dtype, ("bool", "int8", "int32", "int64", "float16", "float32", "float64", "complex64")))
SHAPES = ((), (1,), (8,), (1, 1), (2, 1))
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -3e38, 1e-42)


class Expressions:
    """A graph of expressions of x and y, each of which is returned, under a name."""

    def __init__(self, dtype: np.dtype, inner_too: bool) -> None:
        self.x, self.y = Value(TensorSpec((8,), dtype)), Value(TensorSpec((8,), dtype))
        self.dtype = dtype
        self.inner_too = inner_too
        self.nodes: list[Node] = []
        self.named: dict[str, Value] = {}
        for name, build in self.all():
            before = len(self.nodes)
            try:
                self.named[name] = build()
            except LimelightError:  # not for this dtype
                del self.nodes[before:]

    def op(self, name: str, *inputs: Value, params: tuple[Any, ...] = ()) -> Value:
        node = Node(get(name), inputs, params, [get(name).infer(*[x.spec for x in inputs], *params)])
        if any(x.spec.dtype not in get(name).accepts for x in inputs):
            raise LimelightError("not for this dtype")
        self.nodes.append(node)
        return node.outputs[0]

    def constant(self, number: float, shape: tuple[int, ...] = ()) -> Value:
        with np.errstate(all="ignore"):
            array = np.full(shape, number).astype(self.dtype)
        node = Node(get("constant"), (), (Literal(array),), [TensorSpec(array.shape, self.dtype)])
        self.nodes.append(node)
        return node.outputs[0]

    def all(self) -> Iterator[tuple[str, Any]]:
        for f, c, shape in itertools.product((*BINARY, "pow"), CONSTANTS, SHAPES):
            if f == "pow" and not dtypes.is_inexact(self.dtype):
                continue  # integers have no negative powers
            yield f"{f}(x, {c}{shape})", lambda f=f, c=c, s=shape: self.op(f, self.x, self.constant(c, s))
            yield f"{f}({c}{shape}, x)", lambda f=f, c=c, s=shape: self.op(f, self.constant(c, s), self.x)
        for f, g in itertools.product(UNARY, UNARY):
            yield f"{f}({g}(x))", lambda f=f, g=g: self.op(f, self.op(g, self.x))
        for f, g, h in itertools.product(BINARY, ("negative", "exp"), (None, "negative", "abs")):
            right = lambda h=h: self.y if h is None else self.op(h, self.y)  # noqa: E731
            yield f"{f}({g}(x), {h}(y))", lambda f=f, g=g, r=right: self.op(f, self.op(g, self.x), r())
            yield f"{f}({h}(y), {g}(x))", lambda f=f, g=g, r=right: self.op(f, r(), self.op(g, self.x))
        for f, g, c, d in itertools.product(("add", "multiply", "negative"), ("add", "multiply"), PAIRED, PAIRED):
            inner = lambda g=g, c=c: self.op(g, self.x, self.constant(c))  # noqa: E731
            outer = lambda y, f=f, d=d: self.op(f, y) if f == "negative" else self.op(f, self.constant(d), y)  # noqa: E731
            yield f"{f}({d}, {g}(x, {c}))", lambda i=inner, o=outer: o(i())
        for f, c in itertools.product(BINARY, (3.0, -1.0)):
            yield f"{f}(exp(x), {c})", lambda f=f, c=c: self.op(f, self.op("exp", self.x), self.constant(c))
            yield f"{f}(-x, {c})", lambda f=f, c=c: self.op(f, self.op("negative", self.x), self.constant(c))
        for one, two in itertools.product(CASTS, CASTS):
            cast = lambda one=one: self.op("astype", self.x, params=(one,))  # noqa: E731
            yield f"{two}({one}(x))", lambda c=cast, two=two: self.op("astype", c(), params=(two,))
        yield "where(x > y, x, x)", lambda: self.op("where", self.op("greater", self.x, self.y), self.x, self.x)
        yield "where(x > y, x, y)", lambda: self.op("where", self.op("greater", self.x, self.y), self.x, self.y)
        wide = lambda: self.op("where", self.op("greater", self.x, self.constant(0.0, (2, 1))), self.y, self.y)  # noqa: E731
        yield "where(wide, y, y)", wide

    def graph(self) -> Graph:
        outputs = list(self.named.values())
        if self.inner_too:
            outputs += [node.outputs[0] for node in self.nodes if node.op.name != "constant"]
        return Graph("g", [self.x, self.y], self.nodes, outputs)

    def payloads(self) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            return [np.array(numbers).astype(self.dtype) for numbers in (ODD, (*ODD[3:], *ODD[:3]))]


def results(graph: Graph, payloads: list[np.ndarray]) -> list[Any]:
    with np.errstate(all="ignore"):
        return list(step.run(graph, payloads).outputs)


NAMES = ("bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "float64", "complex64")


@pytest.mark.slow  # every expression of some depth
@pytest.mark.filterwarnings("ignore:.*encountered in", "ignore:Casting complex values to real")
@pytest.mark.parametrize("inner_too", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.dtype(name) for name in NAMES], ids=str)
def test_exact_rules_keep_every_bit_of_every_expression(dtype: np.dtype, inner_too: bool) -> None:
    written = Expressions(dtype, inner_too)
    graph, payloads = written.graph(), written.payloads()
    assert len(written.named) > (60 if dtype == "bool" else 400)
    better, record = check(simplify_exactly, graph)
    assert len(record.changes) > 30
    assert len(ops(prune(better)[0])) <= len(ops(prune(graph)[0]))
    before, after = results(graph, payloads), results(better, payloads)
    for name, one, other in zip(written.named, before, after, strict=False):
        assert bits(one) == bits(other), name
    for one, other in zip(before, after, strict=True):
        assert bits(one) == bits(other)


@pytest.mark.slow  # every expression of some depth
@pytest.mark.filterwarnings("ignore:.*encountered in", "ignore:Casting complex values to real")
@pytest.mark.parametrize("dtype", [dtypes.dtype(name) for name in NAMES], ids=str)
def test_the_other_rules_round_and_make_no_infinities(dtype: np.dtype) -> None:
    written = Expressions(dtype, inner_too=False)
    graph, payloads = written.graph(), written.payloads()
    better, _ = check(simplify, graph)
    for name, one, other in zip(written.named, results(graph, payloads), results(better, payloads), strict=True):
        if one.dtype.name not in ("float32", "float64"):
            assert bits(one) == bits(other), name
            continue
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(np.isfinite(other), np.isfinite(one), name)
            np.testing.assert_array_equal(np.signbit(other) & ~np.isnan(one), np.signbit(one) & ~np.isnan(one), name)
            np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-44, err_msg=name)


INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATING = ("float16", "bfloat16", "float32", "float64")


def edges(dtype: np.dtype) -> np.ndarray:
    """All values of a dtype of up to 16 bits; of others those around each power of two, and both ends."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.itemsize <= 2:
        return np.arange(256**dtype.itemsize, dtype=f"uint{8 * dtype.itemsize}").view(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        numbers = {sign * 2**k + i for k in range(65) for i in (-1, 0, 1) for sign in (1, -1)}
        return np.array(sorted(n for n in numbers if info.min <= n <= info.max), dtype)
    powers = np.array([sign * 2.0**k for k in range(-160, 160) for sign in (1, -1)]).astype(dtype)
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 0.1, 65519.99, 65520.0, 3.4e38, 1e-45], dtype)
    return np.concatenate(
        [special, powers, np.nextafter(powers, dtype.type(0)), np.nextafter(powers, dtype.type(9e37))]
    )


@pytest.mark.filterwarnings("ignore:.*encountered in")
@pytest.mark.parametrize("start", ["bool", *INTEGERS, *FLOATING])
def test_casts_are_joined_where_they_agree_for_every_value(start: str) -> None:
    first, joined = np.dtype(start), 0
    values = edges(first)
    for between, end in itertools.product(dtypes.ALL, dtypes.ALL):
        if _casts_join(first, between, end):
            joined += 1
            with np.errstate(all="ignore"):
                assert bits(values.astype(between).astype(end)) == bits(values.astype(end)), (between, end)
    assert joined >= (0 if start == "bfloat16" else 6)

"""Every view of a view, and arithmetic on views, of known and unknown sizes: the same bits, and no more nodes."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limelight as ll  # noqa: F401  # registers the ops
from limelight.core.op import get
from limelight.core.spec import TensorSpec
from limelight.errors import LimelightError
from limelight.executors import step
from limelight.graph import Graph, Node, Value
from limelight.optimise.dead_code import prune
from limelight.optimise.simplify import simplify, simplify_exactly

sys.path.insert(0, str(Path(__file__).parent))

from applying import bits, check, ops  # beside this file

VIEWS: list[tuple[str, tuple[Any, ...]]] = [
    *[("reshape", (shape,)) for shape in [(-1,), (2, 3, 4), (4, 6), (3, 8), (2, 12), (1, 24)]],
    *[("expand_dims", (axis,)) for axis in (0, -1)],
    *[("squeeze", (axes,)) for axes in [(0,), (-1,)]],
    *[("transpose", (axes,)) for axes in [None, (0, 1, 2), (2, 0, 1), (1, 0, 2), (1, 0), (0, 1)]],
    ("matrix_transpose", ()),
    *[("broadcast_to", (shape,)) for shape in [(2, 3, 4), (5, 2, 3, 4), (5, 24)]],
    *[("sum_to", (shape,)) for shape in [(2, 3, 4), (3, 4), (24,), (1, 4)]],
]


class Expressions:
    """Views of x and y, each of which is returned."""

    def __init__(self, shape: list[int | None], inner_too: bool) -> None:
        self.x, self.y = (Value(TensorSpec(shape)) for _ in range(2))
        random = np.random.default_rng(0)
        self.payloads = [random.normal(size=(2, 3, 4)).astype(np.float32) for _ in range(2)]
        self.known: dict[Value, Any] = dict(zip((self.x, self.y), self.payloads, strict=True))
        self.nodes: list[Node] = []
        self.outputs: list[Value] = []
        for build in self.all():
            before = len(self.nodes)
            try:
                self.outputs.append(build())
            except (LimelightError, ValueError, IndexError, TypeError):  # a view that such a shape does not have
                del self.nodes[before:]
        if inner_too:
            self.outputs += [node.outputs[0] for node in self.nodes]
        self.graph = Graph("g", [self.x, self.y], self.nodes, self.outputs)

    def op(self, name: str, *inputs: Value, params: tuple[Any, ...] = ()) -> Value:
        node = Node(get(name), inputs, params, [get(name).infer(*[x.spec for x in inputs], *params)])
        self.known[node.outputs[0]] = get(name).numpy_kernel(*[self.known[x] for x in inputs], *params)  # or it fails
        self.nodes.append(node)
        return node.outputs[0]

    def view(self, x: Value, view: tuple[str, tuple[Any, ...]]) -> Value:
        return self.op(view[0], x, params=view[1])

    def all(self) -> Iterator[Any]:
        for one, two in itertools.product(VIEWS, VIEWS):
            yield lambda one=one, two=two: self.view(self.view(self.x, one), two)
            yield lambda one=one, two=two: self.view(self.op("tanh", self.view(self.x, one)), two)
            for f in ("add", "maximum"):
                yield lambda one=one, two=two, f=f: self.op(f, self.view(self.x, one), self.view(self.y, two))
            yield lambda one=one, two=two: self.op("matmul", self.view(self.x, one), self.view(self.y, two))
        for one in VIEWS:
            twice = lambda one=one: (self.view(self.x, one),) * 2  # noqa: E731
            yield lambda twice=twice: self.op("add", *twice())
            yield lambda twice=twice: self.op("matmul", *twice())
            yield lambda one=one: self.op("multiply", self.view(self.x, one), self.x)


@pytest.mark.slow  # every view of a view
@pytest.mark.parametrize("inner_too", [False, True])
@pytest.mark.parametrize("shape", [[2, 3, 4], [None, 3, 4], [2, None, 4], [None, None, None]], ids=str)
def test_views_of_views_keep_every_bit(shape: list[int | None], inner_too: bool) -> None:
    written = Expressions(shape, inner_too)
    graph, wanted = written.graph, [written.known[value] for value in written.outputs]
    assert len(graph.outputs) > 100
    better, record = check(simplify_exactly, graph)
    assert len(record.changes) > 20
    assert len(ops(prune(better)[0])) <= len(ops(graph))
    for one, other in zip(wanted, step.run(better, written.payloads).outputs, strict=True):
        assert bits(one) == bits(other)
    rounding, _ = check(simplify, graph)
    assert len(ops(prune(rounding)[0])) <= len(ops(graph)) + sum(node.op == "matmul" for node in graph.nodes)
    for one, other in zip(wanted, step.run(rounding, written.payloads).outputs, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)

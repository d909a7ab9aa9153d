"""Graphs of 100,000 nodes go through everything, without recursion and in the memory of a small machine."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import limelight as ll
from limelight.core.op import get
from limelight.core.spec import TensorSpec
from limelight.executors import step
from limelight.executors.plan import plan
from limelight.graph import Graph, Literal, Node, Value, parse, to_dot, verify
from limelight.graph.effects import EffectOrder
from limelight.optimise import optimise
from limelight.staging.tracer import Tracer

N = 100_000
F3 = TensorSpec((3,))


@pytest.fixture
def shallow() -> object:
    """A stack that no recursion over a large graph would fit into."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    yield
    sys.setrecursionlimit(before)


def chain(n: int) -> Graph:
    """Steps of x -> tanh(x + x0), with a dead node, a repeated node and a foldable one in each ten."""
    x = Value(F3)
    nodes: list[Node] = []
    half = Node(get("constant"), (), (Literal(np.asarray(0.5, dtype=np.float32)),), [TensorSpec(())])
    nodes.append(half)
    value = x
    while len(nodes) < n:
        total = Node(get("add"), (value, x), (), [F3])
        result = Node(get("tanh"), total.outputs, (), [F3])
        nodes += [total, result]
        if len(nodes) % 10 == 1:
            twin = Node(get("tanh"), total.outputs, (), [F3])
            dead = Node(get("exp"), total.outputs, (), [F3])
            quarter = Node(get("multiply"), half.outputs * 2, (), [TensorSpec(())])
            mixed = Node(get("multiply"), (*twin.outputs, *quarter.outputs), (), [F3])
            nodes += [twin, dead, quarter, mixed]
            value = mixed.outputs[0]
        else:
            value = result.outputs[0]
    return Graph("chain", [x], nodes, [value])


def reference(graph: Graph, x: np.ndarray) -> np.ndarray:
    known = {graph.inputs[0]: x}
    for node in graph.nodes:
        known[node.outputs[0]] = node.op.kernel_on("numpy")(*[known[value] for value in node.inputs], *node.params)
    return known[graph.outputs[0]]


@pytest.mark.slow  # thousands of nodes
def test_everything_takes_ten_thousand_nodes(shallow: None) -> None:
    """Which are ten functions of a plan, and thirty times as many as the stack has frames."""
    graph = chain(10_000)
    assert len(graph.nodes) >= 10_000
    verify(graph)
    x = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    expected = reference(graph, x)

    run = plan.build(graph)
    np.testing.assert_array_equal(run(x)[0], expected)
    np.testing.assert_array_equal(run(x)[0], expected)
    np.testing.assert_array_equal(step.run(graph, [x]).outputs[0], expected)

    better, records = optimise(graph)
    verify(better)
    assert len(graph.nodes) - sum(record.removed - record.added for record in records) == len(better.nodes)
    assert len(better.nodes) < len(graph.nodes) * 0.8
    np.testing.assert_array_equal(plan.build(better)(x)[0], expected)

    text = graph.text()
    assert text.count("\n") == len(graph.nodes) + 3
    assert parse(text).text() == text
    assert to_dot(better).count("->") > len(better.nodes)
    del graph, better, records, run  # freeing is not recursive either


@pytest.mark.slow  # a hundred thousand nodes
def test_tracing_a_hundred_thousand_nodes(shallow: None) -> None:
    with Tracer("steps") as tracer:
        x = y = tracer.add_input(F3)
        for _ in range(N // 2):
            y = ll.tanh(y + x)
        graph = tracer.finish([y])
    assert len(graph.nodes) == N
    better = optimise(graph).graph
    assert len(better.groups) > N // 100
    data = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    run = plan.build(better)
    np.testing.assert_array_equal(run(data)[0], reference(graph, data))
    assert run.memory().nbytes == 12
    assert better.text().count("\n") == N + 3


@pytest.mark.slow  # thousands of nodes
def test_a_long_chain_of_effects(shallow: None) -> None:
    v = Value(ll.Variable(0.0).spec)
    x = Value(TensorSpec(()))
    order = EffectOrder()
    nodes = []
    for _ in range(N // 20):
        node = Node(get("assign_add"), (v, x), (), [TensorSpec(())])
        node.after = order.place(node)
        nodes.append(node)
    graph = verify(Graph("effects", [x, v], nodes, [], n_captures=1))
    better, _ = optimise(graph, check=True)
    assert better is graph
    counter = ll.Variable(0.0)
    plan.build(better)(np.float32(1.0), counter._data)
    assert counter.numpy() == N // 20

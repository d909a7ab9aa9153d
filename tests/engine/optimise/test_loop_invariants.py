"""What is the same in each iteration goes in front of the loop, where a loop without iterations cannot tell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core import devices
from limelight.graph import Graph, Node
from limelight.graph.build import Rewriter
from limelight.graph.printer import nested
from limelight.optimise import optimise
from limelight.optimise.loop_invariants import hoist

sys.path.insert(0, str(Path(__file__).parent))

from applying import check, ops, results  # beside this file

X = np.linspace(-1, 1, 3, dtype=np.float32)
W = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)


def traced(f: Any, *arrays: np.ndarray) -> Graph:
    return ll.function(f).get_concrete_function(*map(ll.constant, arrays)).graph


def loops(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op.name.startswith("while")]


def repeated(step: Any, n: Any = 3) -> Any:
    def f(x: Any, w: Any) -> Any:
        return ll.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, step(y, w)), (0, x))[1]

    return f


def test_what_depends_on_captures_alone_goes_first() -> None:
    graph = traced(repeated(lambda y, w: ll.tanh(y @ ll.exp(w.mT) * 2.0)), X, W)
    better, record = check(hoist, graph)
    assert ops(better) == ["matrix_transpose", "exp", "while_loop"]
    (loop,) = loops(better)
    assert "exp" not in ops(loop.params[1].graph)
    assert [change.rule for change in record.changes] == ["loop invariant"]
    assert record.rewired[loops(graph)[0]] is loop
    for before, after in zip(results(graph, [X, W]), results(better, [X, W]), strict=True):
        np.testing.assert_array_equal(before, after)


def test_the_condition_too() -> None:
    def f(x: Any, w: Any) -> Any:
        return ll.while_loop(lambda y: ll.sum(y) < ll.sum(ll.exp(w)), lambda y: (y + 1.0,), (x,))[0]

    graph = traced(f, X, W)
    better, _ = check(hoist, graph)
    assert ops(better) == ["exp", "sum", "while_loop"]
    np.testing.assert_array_equal(results(graph, [X, W])[0], results(better, [X, W])[0])


@pytest.mark.parametrize("n", [0, 1, 4])
def test_values_and_gradients(n: int) -> None:
    """Behind the pipeline, for loops of no, one and several iterations; gradients are loops, too."""

    def g(x: Any, w: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch((x, w))
            y = ll.sum(repeated(lambda y, w: ll.tanh(y @ ll.exp(w)), n)(x, w))
        return [y, *tape.gradient(y, (x, w), unconnected_gradients="zero")]

    x, w = ll.constant(X), ll.constant(W)
    for level in range(4):
        with ll.config.optimiser(level):
            for mine, eager in zip(ll.function(g)(x, w), g(x, w), strict=True):
                np.testing.assert_allclose(mine, eager, rtol=1e-5, atol=1e-6)


def test_costly_work_waits_for_a_loop_that_runs() -> None:
    large = np.ones((64, 64), np.float32)

    def f(limit: Any) -> Any:
        return lambda x, w: ll.while_loop(
            lambda i, _: i < (w[0, 0] if limit is None else limit), lambda i, y: (i + 1.0, y @ (w @ w)), (0.0, x)
        )[1]

    assert "matmul" in ops(check(hoist, traced(f(2.0), large, large))[0])
    assert "matmul" not in ops(check(hoist, traced(f(0.0), large, large))[0]), "it is known not to run"
    assert "matmul" not in ops(check(hoist, traced(f(None), large, large))[0]), "nobody knows"


@pytest.mark.parametrize("n", [0, 3])
def test_scans_too(n: int) -> None:
    xs = np.ones((n, 3), np.float32)

    def f(xs: Any, w: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            carry = ll.tanh(carry @ ll.exp(w) + row)
            return carry, carry * ll.sum(w @ w)

        with ll.GradientTape() as tape:
            tape.watch((xs, w))
            last, rows = ll.scan(step, w[0], xs)
            y = ll.sum(last) + ll.sum(rows)
        return [last, rows, *tape.gradient(y, (xs, w), unconnected_gradients="zero")]

    graph = traced(f, xs, W)
    better, record = check(hoist, graph)
    assert record.added >= 3
    assert "exp" in ops(better)
    for level in range(4):
        better = optimise(graph, level, check=True).graph
        for mine, eager in zip(results(better, [xs, W])[0], f(ll.constant(xs), ll.constant(W)), strict=True):
            np.testing.assert_allclose(mine, eager, rtol=1e-4, atol=1e-5)


def test_a_limit_of_no_iterations_counts_too() -> None:
    large = np.ones((64, 64), np.float32)

    def f(x: Any, w: Any) -> Any:
        return ll.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y @ (w @ w)), (0, x), maximum_iterations=0)[1]

    assert "matmul" not in ops(check(hoist, traced(f, large, large))[0])


def test_effects_errors_and_other_devices_stay() -> None:
    v = ll.Variable(2.0)

    def effects(y: Any, w: Any) -> Any:
        v.assign_add(1.0)
        return y * v.read_value()

    graph = traced(repeated(effects), X, W)
    assert check(hoist, graph)[0] is graph

    def failing(y: Any, w: Any) -> Any:  # an index that is not there, and a matrix that has no inverse
        return y + ll.linalg.inv(w * 0.0)[0] + ll.take(w[0], ll.astype(w[0, 0] * 100.0, "int32"))

    graph = traced(repeated(failing, 0), X, W)
    better, _ = check(hoist, graph)
    assert not {"inv", "take"} & set(ops(better))
    np.testing.assert_array_equal(results(better, [X, W])[0][0], X)

    def placed(y: Any, w: Any) -> Any:
        with ll.device("CPU:0"):
            return y + ll.exp(w[0])

    assert check(hoist, traced(repeated(placed), X, W))[1].changes == []


def test_nested_loops_hand_out_what_is_invariant_for_both() -> None:
    inner = repeated(lambda y, w: y @ ll.exp(w))
    graph = traced(repeated(inner), X, W)
    expected = results(graph, [X, W])[0][0]
    better, _ = check(hoist, graph)
    assert ops(better) == ["exp", "while_loop"]
    np.testing.assert_allclose(results(better, [X, W])[0][0], expected, rtol=1e-6)
    np.testing.assert_allclose(results(optimise(graph, check=True).graph, [X, W])[0][0], expected, rtol=1e-6)


@pytest.mark.parametrize("outer", ["scan", "map_fn", "while_loop"])
@pytest.mark.parametrize("inner", ["scan", "map_fn", "while_loop"])
def test_out_of_loops_of_every_kind_within_one_another(outer: str, inner: str) -> None:
    """The inner loop reads what the outer one changes, and something that neither does."""
    xs = np.ones((2, 3), np.float32)

    def loop(kind: str, step: Any, y: Any) -> Any:
        if kind == "scan":
            return ll.scan(lambda c, row: (step(c + row), None), y, ll.constant(xs))[0]
        if kind == "map_fn":
            return ll.sum(ll.map_fn(lambda row: step(y * row), ll.constant(xs)), 0)
        return ll.while_loop(lambda i, _: i < 2, lambda i, c: (i + 1, step(c)), (0, y))[1]

    def f(y: Any, w: Any) -> Any:
        return loop(outer, lambda c: loop(inner, lambda d: ll.tanh(d @ ll.exp(w) + c), c), y)

    graph = traced(f, X, W)
    better, record = check(hoist, graph)
    assert "exp" in ops(better)
    assert "exp" not in [node.op.name for one in nested(better) for node in one.graph.nodes]
    assert len(record.changes) == 1
    for mine in results(better, [X, W]):
        np.testing.assert_allclose(mine[0], f(ll.constant(X), ll.constant(W)), rtol=1e-5)


def on_cpu0(node: Node, params: tuple[Any, ...] | None = None) -> Node:
    specs = [value.spec for value in node.outputs]
    return Node(node.op, node.inputs, params or node.params, specs, device=devices.find("CPU:0"), after=node.after)


def test_loops_and_literals_that_somebody_has_placed_stay() -> None:
    graph = traced(repeated(lambda y, w: y @ ll.exp(w)), X, W)
    placed = on_cpu0(graph.nodes[-1])
    outputs = [placed.outputs[value.index] for value in graph.outputs]
    assert (
        check(hoist, Graph("g", graph.inputs, [*graph.nodes[:-1], placed], outputs, n_captures=graph.n_captures))[
            1
        ].changes
        == []
    )
    graph = traced(repeated(lambda y, w: y + ll.sum(ll.exp(w) * ll.constant([2.0, 3.0, 4.0]), 0)), X, W)
    (loop,) = loops(graph)
    body = loop.params[1].graph
    assert "multiply" in ops(check(hoist, graph)[0])
    literal = next(node for node in body.nodes if node.op == "constant" and node.outputs[0].spec.shape == (3,))
    rewriter = Rewriter(body)
    for node in body.nodes:
        if node is literal:
            rewriter.nodes.append(on_cpu0(node))
            rewriter.replace(node, rewriter.nodes[-1].outputs)
        else:
            rewriter.keep(node)
    loop.params = (loop.params[0], loop.params[1].with_graph(rewriter.finish()), *loop.params[2:])
    assert "multiply" not in ops(check(hoist, graph)[0])

"""Long sums of like terms, and operands that are broadcast again and again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.graph import Graph, parse
from limelight.optimise import optimise
from limelight.optimise.broadcasts import spread
from limelight.optimise.dead_code import prune
from limelight.optimise.stacked_sums import stack

sys.path.insert(0, str(Path(__file__).parent))

from applying import bits, body, check, constant, ops, results, run  # beside this file


def traced(f: Any, *shapes: tuple[int, ...]) -> tuple[Graph, list[np.ndarray]]:
    """The graph of `f` on inputs of these shapes, and random inputs."""
    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in shapes]
    return ll.function(f).get_concrete_function(*map(ll.constant, arrays)).graph, arrays


def same_results(graph: Graph, other: Graph, arrays: list[np.ndarray]) -> None:
    for before, after in zip(results(graph, arrays), results(other, arrays), strict=True):
        for one, two in zip(before, after, strict=True):
            np.testing.assert_allclose(two, one, rtol=2e-4, atol=2e-5)


def products(n: int, sign: int = 1) -> Any:
    def f(a: Any, g: Any) -> Any:
        total = ll.tanh(g[:2] * 0.5)[:, :2]
        for i in range(n):
            term = ll.sin(a * (i + 1.0)).mT @ ll.cos(g * (i + 1.0))
            total = total + term if sign > 0 else total - term
        return total

    return f


@pytest.mark.parametrize(("n", "sign", "stacked"), [(5, 1, True), (5, -1, True), (3, 1, False)])
def test_sums_of_products_are_one_product(n: int, sign: int, stacked: bool) -> None:
    graph, arrays = traced(products(n, sign), (4, 2), (4, 2))
    better, record = check(stack, graph)
    left = ops(prune(better)[0])
    assert left.count("matmul") == (1 if stacked else n)
    assert left.count("concat") == (2 if stacked else 0)
    assert bool(record.changes) == stacked
    assert "negative" not in left, "something is there to subtract from"
    if stacked:
        assert len(record.changes[0].old) == 2 * n, "n products, n additions"
        assert len(record.changes[0].new) > 2
    same_results(graph, better, arrays)


def test_signs_are_followed_through_negatives() -> None:
    def f(a: Any, g: Any) -> Any:
        terms = [ll.sin(a * (i + 1.0)).mT @ ll.cos(g * (i + 1.0)) for i in range(4)]
        return ll.negative(terms[0] + terms[1]) - (terms[2] + terms[3])

    graph, arrays = traced(f, (4, 2), (4, 2))
    better, _ = check(stack, graph)
    assert ops(prune(better)[0]).count("matmul") == 1
    same_results(graph, better, arrays)


def test_sums_of_sums_and_common_factors() -> None:
    """What the gradients of a bias and of a scale look like."""

    def f(x: Any, scale: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(scale)
            factor, h = ll.exp(scale), x
            for _ in range(6):
                h = ll.tanh(h * factor)
            loss = ll.sum(h)
        return tape.gradient(loss, scale)

    graph, arrays = traced(f, (5, 3), (3,))
    better, _ = check(stack, optimise(graph, 2).graph)
    left = ops(prune(better)[0])
    assert left.count("sum_to") == 1
    same_results(graph, better, arrays)


def test_single_rows_are_repeated() -> None:
    def f(t: Any, g: Any) -> Any:
        def term(i: float) -> Any:
            return t.mT @ ll.sin(g * i).sum_to((1, 3))

        return term(1.0) + term(2.0) + term(3.0) + term(4.0) + term(5.0)

    graph, arrays = traced(f, (1, 2), (4, 3))
    better, _ = check(stack, graph)
    left = ops(prune(better)[0])
    assert left.count("sum_to") == 0
    assert left.count("matmul") == 1
    same_results(graph, better, arrays)


def test_what_is_used_elsewhere_too_stays() -> None:
    def f(a: Any, g: Any) -> Any:
        terms = [ll.sin(a * (i + 1.0)).mT @ g for i in range(5)]
        total = terms[0] + terms[1] + terms[2] + terms[3]
        return total + terms[4], terms[2], total

    graph, arrays = traced(f, (4, 2), (4, 2))
    better, _ = check(stack, graph)
    same_results(graph, better, arrays)
    assert ops(better).count("matmul") == 5


@pytest.mark.parametrize(
    "change",
    [lambda line: line.replace("f32", "i32"), lambda line: line + "  @CPU:0" * (" = " in line), lambda line: line],
    ids=["integers", "on a device", "plain"],
)
def test_only_floats_that_may_be_anywhere_are_stacked(change: Any) -> None:
    lines = [f"%{i}: f32[3] = sum_to(%0)  {{shape=(3,)}}" for i in range(1, 5)]
    lines += ["%5: f32[3] = add(%1, %2)", "%6: f32[3] = add(%5, %3)", "%7: f32[3] = add(%6, %4)", "return %7"]
    inputs = change("  input %0: f32[2,3]  x").replace("  @CPU:0", "") + "\n"
    _, record = run(stack, body(*map(change, lines), inputs=inputs))
    assert bool(record.changes) == (change("f32[3]") == "f32[3]" and "@" not in change(" = "))


def test_operands_are_broadcast_once() -> None:
    lines = [f"%{i}: f32[2,3] = multiply(%0, %1)" for i in range(2, 6)]
    inputs = "  input %0: f32[2,3]  x\n  input %1: f32[3]  y\n"
    better, record = run(spread, body(*lines, "return %2, %3, %4, %5", inputs=inputs))
    assert ops(better) == ["broadcast_to"] + ["multiply"] * 4
    assert (record.removed, record.added, len(record.rewired)) == (0, 1, 4)
    assert {node.inputs[1] for node in better.nodes[1:]} == set(better.nodes[0].outputs)
    assert record.changes[0].source is None
    odd = [np.array([[np.nan, np.inf, -0.0], [1.0, -np.inf, 0.0]], np.float32), np.array([1.0, -0.0, -1], np.float32)]
    before, after = (results(graph, odd) for graph in (parse(body(*lines, "return %2, %5", inputs=inputs)), better))
    assert bits(before[0][1]) == bits(after[0][3]) == bits(after[1][3])
    _, record = run(spread, body(*lines[:3], "return %2, %3, %4", inputs=inputs))
    assert record.changes == []


@pytest.mark.parametrize("shape", ["?,3", "100,30"])
def test_not_to_large_or_unknown_shapes(shape: str) -> None:
    n = shape.rpartition(",")[2]
    lines = [f"%{i}: f32[{shape}] = add(%0, %1)" for i in range(2, 7)]
    inputs = f"  input %0: f32[{shape}]  x\n  input %1: f32[{n}]  y\n"
    assert run(spread, body(*lines, "return %2", inputs=inputs))[1].changes == []


def test_literals_are_spread_at_once() -> None:
    lines = [constant(1, "2.0"), *[f"%{i}: f32[3] = multiply(%0, %1)" for i in range(2, 6)]]
    better, _ = run(spread, body(*lines, "return %2, %3, %4, %5"))
    assert ops(better) == ["multiply"] * 4
    assert better.nodes[1].params[0].array.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_factor_that_many_share_is_taken_out(sign: int) -> None:
    def f(a: Any, factor: Any) -> Any:
        total = ll.tanh(a)
        for i in range(5):
            term = ll.sin(a * (i + 1.0)) * factor if i % 2 else factor * ll.sin(a * (i + 1.0))
            total = total + term if sign > 0 else total - term
        return total

    graph, arrays = traced(f, (4, 2), (4, 2))
    better, record = check(stack, graph)
    left = [node for node in prune(better)[0].nodes if node.op == "multiply" and graph.inputs[1] in node.inputs]
    assert len(left) == 1
    assert "negative" not in ops(better)
    assert len(record.changes[0].old) == 10, "five products, five additions"
    same_results(graph, better, arrays)
    assert check(stack, traced(lambda a, x: f(a, x * 1.0) * 1.0, (4, 2), (4, 2))[0])[1].changes


def test_factors_of_factors() -> None:
    """What is left of the terms is a sum again, with a factor of its own or products to be stacked."""

    def f(a: Any, b: Any, c: Any) -> Any:
        half, terms = b[:2], [(ll.sin(a * (i + 1.0)) * b) * c for i in range(4)]
        products = [(ll.sin(a * (i + 1.0)).mT @ ll.cos(a * (i + 2.0))) * half for i in range(4)]
        return sum(terms[1:], terms[0]), sum(products[1:], products[0])

    graph, arrays = traced(f, (4, 2), (4, 2), (4, 2))
    better, _ = check(stack, graph)
    left = prune(better)[0]
    assert ops(left).count("matmul") == 1
    for factor in graph.inputs[1:3]:
        assert sum(node.op == "multiply" and factor in node.inputs for node in left.nodes) == 1
    same_results(graph, better, arrays)


@pytest.mark.parametrize(
    ("kind", "device", "spreads"), [("f32", "", True), ("i32", "", False), ("f32", "  @CPU:0", False)]
)
def test_which_operands_are_broadcast_once(kind: str, device: str, spreads: bool) -> None:
    lines = [f"%{i}: {kind}[2,3] = multiply(%0, %1){device}" for i in range(2, 6)]
    inputs = f"  input %0: {kind}[2,3]  x\n  input %1: {kind}[3]  y\n"
    assert bool(run(spread, body(*lines, "return %2, %3, %4, %5", inputs=inputs))[1].changes) == spreads


def test_operands_wanted_in_two_shapes_or_once_only() -> None:
    inputs = "  input %0: f32[2,3]  x\n  input %1: f32[3]  y\n  input %2: f32[4,3]  z\n  input %3: f32[]  s\n"
    lines = [f"%{i}: f32[2,3] = multiply(%0, %1)" for i in range(4, 8)]
    lines += [f"%{i}: f32[4,3] = add(%1, %2)" for i in range(8, 12)]
    lines += [f"%{i}: f32[2,3] = subtract(%3, %0)" for i in range(12, 15)]
    better, record = run(spread, body(*lines, "return %4, %8, %12", inputs=inputs))
    assert [change.rule for change in record.changes] == ["broadcast once"] * 2
    assert ops(better).count("broadcast_to") == 2
    assert all(better.inputs[3] in node.inputs for node in better.nodes if node.op == "subtract")


def in_order(form: str) -> Any:
    """A long sum of terms of one form, of which some may be far larger than all together."""
    forms = {
        "common factor": lambda x, k, c: (x * c) * k,
        "products": lambda x, k, c: (x * c).mT @ k,
        "sums": lambda x, k, c: (x * c * k).sum_to((2,)),
    }

    def f(x: Any, k: Any, scales: Any) -> Any:
        total = forms[form](x, k, scales[0])
        for i in range(1, 5):
            total = total + forms[form](x, k, scales[i])
        return total

    return f


@pytest.mark.parametrize("form", ["common factor", "products", "sums"])
@pytest.mark.parametrize(
    ("x", "k", "scales"),
    [
        (1e38, 1e-38, [1.0, 1.1, 1.2, 1.3, 1.4]),  # the sum of the factors overflows, the products do not
        (1e19, 1e19, [3.0, -3.0, 2.0, -2.0, 3.0]),  # large terms that cancel in the order in which they are written
        (1e38, 1e3, [1.0, 1.1, 1.2, 1.3, 1.4]),  # infinite as it is written
        (np.nan, 1.0, [1.0, 1.1, 1.2, 1.3, 1.4]),
        (np.inf, 1.0, [1.0, -1.1, 1.2, 1.3, 1.4]),
        (2.0, 3.0, [1.0, 1.1, 1.2, 1.3, 1.4]),
    ],
)
def test_no_infinity_appears_or_vanishes(form: str, x: float, k: float, scales: list[float]) -> None:
    arrays = [np.full((2, 2), x, np.float32), np.full((2, 2), k, np.float32), np.array(scales, np.float32)]
    graph = ll.function(in_order(form)).get_concrete_function(*map(ll.constant, arrays)).graph
    better, record = check(stack, graph)
    assert record.changes
    assert ops(better)[-1] == "guarded_sum"
    for before, after in zip(results(graph, arrays), results(better, arrays), strict=True):
        np.testing.assert_allclose(after[0], before[0], rtol=1e-6)
    if np.isfinite(x * k) and x < 1e10:
        return
    for before, after in zip(results(graph, arrays), results(better, arrays), strict=True):
        assert bits(after[0]) == bits(before[0]), "it ran as it was written"

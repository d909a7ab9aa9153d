"""Gradient rules that a trace has met before: written again, they are what running them would have written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.graph import verify
from limelight.staging.tracer import Tracer

OPS: dict[str, Callable[[Any, Any], Any]] = {
    "tanh": lambda x, y: ll.tanh(x),
    "square": lambda x, y: x * x,
    "multiply": lambda x, y: x * y,
    "other first": lambda x, y: y * x,
    "add twice": lambda x, y: x + x,
    "subtract": lambda x, y: y - x,
    "divide": lambda x, y: x / (ll.abs(y) + 1.0),
    "zero": lambda x, y: x * 0.0,
    "negative zero": lambda x, y: x * -0.0,
    "half": lambda x, y: x * 0.5,
    "number": lambda x, y: 2.0 - x,
    "matmul": lambda x, y: x @ y,
    "transposed": lambda x, y: x.mT,
    "row": lambda x, y: x + y[0],
    "rows": lambda x, y: ll.sum(x, axis=0, keepdims=True) + y,
    "columns": lambda x, y: ll.sum(x, axis=1, keepdims=True) + y,
    "where": lambda x, y: ll.where(x > y, x, y),
    "largest": lambda x, y: x - ll.max(x, axis=0),
    "cast": lambda x, y: ll.tanh(x.astype(ll.float64)).astype(ll.float32),
    "part": lambda x, y: ll.concat([x[:1], y[1:]], axis=0),
    "clip": lambda x, y: ll.clip(x, -1.0, 1.0),
}


def gradients(words: list[str], x: Any, y: Any) -> tuple[Any, ...]:
    """Those of a program that does `words` three times, with a use of every value so far."""
    with ll.GradientTape() as tape:
        tape.watch((x, y))
        total, z = ll.sum(y), x
        for word in words * 3:
            z = ll.tanh(OPS[word](z, y))
            total = total + ll.mean(z)
    return tuple(tape.gradient(total, (x, y), unconnected_gradients="zero"))


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # one function, many programs
@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(sorted(OPS)), min_size=1, max_size=4), st.booleans())
def test_a_gradient_in_a_trace_is_the_eager_one(words, unknown):
    x, y = (ll.constant(np.random.default_rng(seed).normal(size=(3, 3)).astype(np.float32)) for seed in (1, 2))
    expected = gradients(words, x, y)
    spec = ll.TensorSpec((None, None) if unknown else (3, 3))
    staged = ll.function(lambda x, y: gradients(words, x, y), input_signature=[spec, spec])
    for found, right in zip(staged(x, y), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=2e-5, atol=2e-6)


def of_trace(function: Callable[..., Any], *arguments: Any) -> Any:
    """The graph of a gradient by the first argument."""
    return ll.function(ll.grad(function)).get_concrete_function(*arguments).graph


def test_the_graph_is_that_of_rules_that_are_run(monkeypatch):
    def program(x: Any, y: Any) -> Any:
        for word in [*OPS, *OPS, *OPS]:
            x = OPS[word](x, y)
        return ll.sum(x)

    arguments = [ll.constant(np.ones((3, 3), np.float32))] * 2
    repeated = of_trace(program, *arguments)
    monkeypatch.setattr(Tracer, "repeat", lambda self, work, how, operands, entry, stack: work(how, operands, entry))
    run = of_trace(program, *arguments)
    for of_node in (lambda n: n.op.name, lambda n: n.params, lambda n: n.stack[0], lambda n: n.scope):
        kinds = [[of_node(node) for node in graph.nodes if node.op != "constant"] for graph in (repeated, run)]
        assert kinds[0] == kinds[1]
    specs = [[str(n.outputs[0].spec) for n in graph.nodes if n.op != "constant"] for graph in (repeated, run)]
    assert specs[0] == specs[1]


@pytest.mark.parametrize("scalars", [(0.0, -0.0), (1, 1.0), (2.0, 3.0), (float("nan"), 1.0)], ids=str)
def test_numbers_that_are_saved_are_told_apart(scalars):
    def slopes(x: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            parts = [x * scalar for scalar in scalars * 4]
        return tape.gradient(parts, x, output_gradients=[ll.constant(10.0**i) for i in range(8)])

    x = ll.constant(1.0)
    assert np.array_equal(ll.function(slopes)(x).numpy(), slopes(x).numpy(), equal_nan=True)


def test_a_repeated_node_is_at_its_own_line_and_in_its_own_scope():
    def program(x: Any) -> Any:
        for name in "abcd":
            with ll.name_scope(name):
                x = ll.sin(x)
        x = ll.sin(x)
        return ll.sin(x)

    nodes = [node for node in of_trace(program, ll.constant(1.0)).nodes if node.op == "cos"]
    assert [node.scope for node in nodes] == ["gradient/", "gradient/", *[f"gradient/{name}/" for name in "dcba"]]
    lines = [node.stack[0].line for node in nodes]
    assert lines[0] == lines[1] + 1 == lines[2] + 2


def test_a_gradient_that_is_a_tensor_is_that_tensor():
    """An outer tape knows tensors by identity: what is handed through must not be another handle."""

    def second(x: Any, y: Any) -> Any:
        with ll.GradientTape() as outer:
            outer.watch(y)
            seed = y * y
        results = []
        for _ in range(4):
            with ll.GradientTape() as tape:
                tape.watch(x)
                z = x + x * 0.0
                z = x + 1.0
            results.append(tape.gradient(z, x, output_gradients=seed))
        return outer.gradient(results[-1], y)

    assert ll.function(second)(ll.constant(1.0), ll.constant(3.0)).item() == 6.0


def test_second_order_in_a_trace():
    def program(x: Any) -> Any:
        for _ in range(5):
            x = ll.tanh(x * x)
        return x

    x = ll.constant(0.9)
    twice = ll.grad(ll.grad(program))
    assert ll.function(twice)(x).item() == pytest.approx(twice(x).item(), rel=1e-5)


def test_rules_of_users_ops_are_run_each_time():
    runs = []

    def rule(g: Any) -> Any:
        runs.append(1)
        return g * float(len(runs))

    op = ll.defop("counted_rule", inputs="x", infer=lambda x: x, kernel=lambda xp, x: x + 0, vjp={"x": rule})

    def program(x: Any) -> Any:
        for _ in range(4):
            x = op(x)
        return x

    assert ll.function(ll.grad(program))(ll.constant(1.0)).item() == 24.0


def test_a_device_scope_around_a_gradient_holds_for_its_nodes():
    def program(x: Any) -> Any:
        gradients = []
        for _ in range(2):
            with ll.GradientTape(persistent=True) as tape:
                tape.watch(x)
                y = ll.sin(ll.sin(ll.sin(x)))
            gradients.append(tape.gradient(y, x))
        with ll.device("cpu:0"):
            return [*gradients, tape.gradient(y, x)]

    nodes = ll.function(program).get_concrete_function(ll.constant(1.0)).graph.nodes
    assert [node.device is None for node in nodes if node.op == "cos"] == [True] * 6 + [False] * 3


def test_types_are_told_apart():
    def program(x: Any) -> Any:
        total = x.sum()
        for part in (x, x[0], x.astype(ll.float64), x[None]):
            y = part * 2.0
            for _ in range(4):
                y = ll.sigmoid(y * y)
            total = total + y.sum().astype(ll.float32)
        return total

    x = ll.constant(np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3))
    function = ll.function(ll.grad(program))
    verify(function.get_concrete_function(x).graph)
    np.testing.assert_allclose(function(x).numpy(), ll.grad(program)(x).numpy(), rtol=1e-5)


def test_a_tensor_that_is_given_twice_is_no_pattern():
    """Where the seed is one of the factors, nobody can tell which of them a product of the rule has."""

    def program(x: Any, y: Any, z: Any) -> Any:
        gradients = []
        for seed in (y, y, y, z, z):
            with ll.GradientTape() as tape:
                tape.watch(x)
                product = x * y
            gradients.append(tape.gradient(product, x, output_gradients=seed))
        return gradients

    found = ll.function(program)(ll.constant(2.0), ll.constant(3.0), ll.constant(5.0))
    assert [g.item() for g in found] == [9.0, 9.0, 9.0, 15.0, 15.0]


def test_a_trace_that_is_over_keeps_nothing_of_what_was_saved():
    with Tracer("f") as tracer:
        x = tracer.add_input(ll.TensorSpec((2,)))
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(4):
                y = ll.sin(y)
        tape.gradient(y, x)
        assert tracer._fragments
    assert not tracer._fragments


def test_seeds_from_outside_the_trace():
    c = ll.constant([2.0, 2.0])

    @ll.function
    def f(x, y):
        with ll.GradientTape() as tape:
            tape.watch([x, y])
            a, b = -x, -y
        return tape.gradient([a, b], [x, y], output_gradients=[c, c])

    @ll.function
    def in_a_branch(x, y, seed):
        def inner():
            with ll.GradientTape() as tape:
                tape.watch([x, y])
                a, b = -x, -y
            return tape.gradient([a, b], [x, y], output_gradients=[seed, seed])

        return ll.cond(x[0] > 0, inner, lambda: [x, y])

    assert [g.tolist() for g in f(c, c * 3.0)] == [[-2.0, -2.0]] * 2
    assert [g.tolist() for g in in_a_branch(c, c * 3.0, c)] == [[-2.0, -2.0]] * 2

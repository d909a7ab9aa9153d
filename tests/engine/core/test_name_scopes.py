"""Name scopes of nodes, variables and gradients (behaviours 77 and 166)."""

from __future__ import annotations

from typing import Any

import pytest

import limelight as ll


class Dense:
    def __init__(self, name: str) -> None:
        self.name = name
        self.w: Any = None

    def __call__(self, x: Any) -> Any:
        with ll.name_scope(self.name):
            if self.w is None:
                self.w = ll.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
            return ll.tanh(x @ self.w)


def model() -> tuple[Any, Any]:
    first, second = Dense("first"), Dense("second")

    @ll.function
    def net(x: Any) -> Any:
        with ll.name_scope("encoder"):
            y = first(x)
        return second(y) + 1.0

    return net, (first, second)


def scopes(graph: Any) -> list[tuple[str, str]]:
    return [(node.op.name, node.scope) for node in graph.nodes if node.op != "constant"]


def test_166_nodes_and_variables_carry_scopes() -> None:
    net, (first, second) = model()
    net(ll.ones((1, 2)))
    found = scopes(net.trace_cache[0].graph)
    assert ("matmul", "encoder/first/") in found
    assert ("tanh", "second/") in found
    assert found[-1] == ("add", "")
    assert (first.w.name, second.w.name) == ("encoder/first/w", "second/w")
    assert "in encoder/first/" in net.trace_cache[0].graph.text()
    assert {ll.Variable(1.0).name, ll.Variable(1.0, name="v").name} == {"variable", "v"}


def test_166_identical_traces_have_identical_scopes() -> None:
    texts = set()
    for _ in range(2):
        net, _ = model()
        net(ll.ones((1, 2)))
        net.clear_cache()
        net(ll.ones((1, 2)))
        texts.add(tuple(scopes(net.trace_cache[0].graph)))
    with ll.name_scope("caller"):
        net, _ = model()
        net(ll.ones((1, 2)))
    texts.add(tuple(scopes(net.trace_cache[0].graph)))
    assert len(texts) == 1


def test_166_branches_and_bodies_begin_with_the_scope_around_them() -> None:
    @ll.function
    def f(x: Any) -> Any:
        with ll.name_scope("outer"):
            y = ll.cond(x > 0.0, lambda: ll.exp(x), lambda: -x)
            with ll.name_scope("loop"):
                return ll.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s * y), (ll.constant(0), y))[1]

    f(ll.constant(1.0))
    nodes = [node for function in f.trace_cache[0].graph.functions() for node in function.graph.nodes]
    assert {node.scope for node in nodes if node.op == "exp"} == {"outer/"}
    assert {node.scope for node in nodes if node.op == "multiply"} == {"outer/loop/"}


def test_077_gradients_are_named_after_their_ops() -> None:
    net, layers = model()

    @ll.function
    def train(x: Any) -> Any:
        with ll.GradientTape() as tape:
            with ll.name_scope("encoder"):
                y = ll.exp(x * layers[0].w)
            loss = ll.sum(y * y)
        return tape.gradient(loss, layers[0].w)

    net(ll.ones((1, 2)))
    train(ll.ones((1, 2)))
    found = scopes(train.trace_cache[0].graph)
    backward = {scope for _, scope in found if scope.startswith("gradient/")}
    assert backward == {"gradient/", "gradient/encoder/"}


def test_077_also_those_of_a_function_that_is_differentiated_from_outside() -> None:
    net, layers = model()
    net(ll.ones((1, 2)))
    with ll.GradientTape() as tape:
        y = net(ll.ones((1, 2)))
    tape.gradient(y, layers[0].w)
    graphs = [half.graph for pair in net.trace_cache[0].function.pairs.values() for half in [pair.forward]]
    halves = [half.graph for pair in net.trace_cache[0].function.pairs.values() for half, _ in pair._backward.values()]
    assert {"encoder/first/", "second/"} <= {node.scope for graph in graphs for node in graph.nodes}
    found = {node.scope for graph in halves for node in graph.nodes}
    assert {"gradient/encoder/first/", "gradient/second/"} <= found


def test_166_scopes_end_with_their_block_also_after_errors() -> None:
    with pytest.raises(ValueError, match="no"), ll.name_scope("a"):
        raise ValueError("no")
    assert ll.Variable(1.0, name="v").name == "v"

    @ll.function
    def f(x: Any) -> Any:
        try:
            with ll.name_scope("a"):
                raise KeyError
        except KeyError:
            return x + 1.0

    f(ll.constant(1.0))
    assert scopes(f.trace_cache[0].graph) == [("add", "")]
    for bad in ("", "two words", 3):
        with pytest.raises(ll.errors.ArgumentError, match="must be a word"), ll.name_scope(bad):  # type: ignore[arg-type]
            pass

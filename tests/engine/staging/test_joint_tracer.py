"""The forward half of a gradient of a call: the nodes of the graph that is called, as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core import dispatch
from limelight.core.op import get
from limelight.staging.call_gradient import pair_of
from limelight.staging.joint_tracer import JointTracer


def pair(function: Any, *arguments: Any) -> tuple[Any, Any]:
    """The graph of a function, and its forward and backward versions for all inputs."""
    graph_function = ll.function(function).get_concrete_function(*arguments).function
    return graph_function.graph, pair_of(graph_function, (True,) * len(graph_function.graph.inputs))


X = ll.constant(np.linspace(0.1, 0.9, 4, dtype=np.float32))


def test_the_nodes_are_taken_over_and_not_changed():
    def program(x: Any) -> Any:
        for _ in range(5):
            x = ll.tanh(x * 0.5) * x
        return ll.sum(x)

    graph = ll.function(program).get_concrete_function(X).graph
    before = str(graph)
    graph, made = pair(program, X)
    made.backward((True,), (True,))
    assert str(graph) == before
    assert made.forward.graph.nodes == graph.nodes
    assert all(a is b for a, b in zip(made.forward.graph.nodes, graph.nodes, strict=True))


def test_from_a_call_on_nodes_are_written_anew():
    inner = ll.function(lambda x: ll.sin(x) * x)

    def program(x: Any) -> Any:
        return ll.exp(inner(ll.tanh(x)))

    graph, made = pair(program, X)
    kinds = [node.op.name for node in made.forward.graph.nodes]
    assert [node.op.name for node in graph.nodes] == ["tanh", "call", "exp"]
    assert kinds == ["tanh", "call_forward", "exp"]
    same = [a is b for a, b in zip(graph.nodes, made.forward.graph.nodes, strict=True)]
    assert same == [True, False, False]
    assert ll.grad(ll.function(program), 0)(ll.constant(0.5)).item() == pytest.approx(
        ll.grad(program, 0)(ll.constant(0.5)).item(), rel=1e-5
    )


def test_unknown_sizes_variables_and_effects():
    v = ll.Variable([0.5, 0.25])

    def program(x: Any) -> Any:
        y = ll.sum(x * v, axis=0)
        v.assign_add(y * 0.0)
        return ll.sum(ll.reshape(x * y, (-1,)) * 2.0) + ll.sum(v * v)

    x = ll.constant(np.arange(6, dtype=np.float32).reshape(3, 2))
    staged = ll.function(program, input_signature=[ll.TensorSpec((None, 2))])
    results = []
    for function in (program, staged):
        for _ in range(2):
            with ll.GradientTape() as tape:
                tape.watch(x)
                y = function(x)
            results.append([g.numpy() for g in tape.gradient(y, (x, v))])
    for found in results[1:]:
        for a, b in zip(found, results[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_third_order_of_a_call():
    def program(x: Any) -> Any:
        for _ in range(3):
            x = ll.sin(x * x)
        return x

    staged = ll.function(program)
    x = ll.constant(0.7)
    right = ll.grad(ll.grad(ll.grad(program)))(x).item()
    assert ll.grad(ll.grad(ll.grad(staged)))(x).item() == pytest.approx(right, rel=1e-4)


def test_what_an_interpreter_above_needs_besides_is_written_between_the_nodes():
    class Asks(dispatch.BlockInterpreter):
        def process(self, op: Any, inputs: Any, attrs: Any) -> Any:
            self.below.process(get("negative"), (inputs[0],), ())
            return self.below.process(op, inputs, attrs)

    graph = ll.function(lambda x: ll.sin(ll.cos(x))).get_concrete_function(X).graph
    with JointTracer(graph) as tracer:
        inputs = tracer.add_graph_inputs()
        with Asks():
            tracer.replay(inputs)
    assert [node.op.name for node in tracer.nodes] == ["negative", "cos", "negative", "sin"]
    assert tracer.nodes[1::2] == list(graph.nodes)

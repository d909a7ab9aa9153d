"""Norms of gradients on their way back."""

from __future__ import annotations

import math

import numpy as np
import pytest

import limelight as ll


def test_a_step_for_each_gradient_from_the_results_back_at_the_line_of_its_op():
    def program(x):
        y = ll.tanh(x)
        return y * 2.0

    flow = ll.explain.gradient_flow(program, ll.ones((4,)))
    assert [one.line.text for one in flow.steps] == ["return y * 2.0", "y = ll.tanh(x)"]
    assert flow.steps[0].norm == pytest.approx(4.0)
    gradient = 2.0 * (1.0 - np.tanh(1.0) ** 2)
    assert flow.steps[-1].norm == pytest.approx(gradient * 2.0)
    assert flow.steps[-1].rms == pytest.approx(gradient)
    assert "finite, none vanishes, none explodes" in str(flow)


def test_the_first_vanishing_exploding_infinite_and_nan_are_found():
    def fading(x):
        for _ in range(5):
            x = ll.sigmoid(x * 0.01)
        return x

    vanished = ll.explain.gradient_flow(fading, ll.constant(1.0)).first("vanishing")
    assert vanished is not None
    exploded = ll.explain.gradient_flow(lambda x: x * 1e4 * 1e4, ll.constant(1.0)).first("exploding")
    assert exploded.norm == pytest.approx(1e8)
    flow = ll.explain.gradient_flow(lambda x: ll.sqrt(x * 0.0), ll.constant(1.0))
    assert flow.first("infinite").op == "divide"
    assert math.isnan(flow.first("NaN").norm)
    assert "first NaN at multiply" in str(flow)
    assert ll.explain.gradient_flow(ll.tanh, ll.constant(1.0)).first("NaN") is None


def normalised():
    net = ll.nn.Sequential(ll.nn.Dense(3), ll.nn.BatchNorm(), ll.nn.Dense(1))
    return lambda x: ll.mean(net(x, training=True) ** 2)


def attention():
    attend = ll.nn.MultiHeadAttention(2)
    return lambda x: ll.sum(attend(x[None], x[None]) ** 2)


def recurrent():
    w, u = ll.Variable(ll.eye(4), name="w"), ll.Variable(ll.eye(4), name="u")

    def program(x):
        h = ll.zeros((6, 4))
        for _ in range(2):
            h = ll.tanh(x @ w + h @ u)
        return h

    return program


@pytest.mark.parametrize(
    "model", [normalised, attention, recurrent, lambda: lambda x: ll.mean(ll.tile(x, (1 << 15, 4)))]
)
def test_gradients_that_are_zero_by_mathematics_beside_a_way_that_goes_on_have_not_vanished(model):
    x = ll.constant(np.random.default_rng(0).normal(size=(6, 4)).astype("float32"))
    flow = ll.explain.gradient_flow(model(), x)
    assert flow.first("vanishing") is None, str(flow)


def test_steps_that_are_for_one_source_name_it_and_what_fades_is_found_beside_a_way_that_does_not():
    w, v = ll.Variable(1.0, name="w"), ll.Variable(2.0, name="v")
    flow = ll.explain.gradient_flow(lambda x: x + v * ll.tanh(30.0 * x * w), ll.constant(1.0))
    first = flow.first("vanishing")
    assert (first.op, first.source) == ("multiply", "")
    assert {one.source for one in flow.steps if one.state == ""} >= {"v"}
    assert [one.source for one in flow.steps if one.state == "vanishing"].count("w") >= 1


def test_a_stack_of_layers_that_fades_says_so_from_there_to_its_first_layer():
    net = ll.nn.Sequential(*[ll.nn.Dense(3, activation="sigmoid") for _ in range(16)])
    flow = ll.explain.gradient_flow(net, ll.ones((2, 3)))
    assert flow.first("vanishing") is not None
    assert flow.steps[-1].state == "vanishing"
    assert {one.source for one in flow.steps if not one.state} >= {"layers.15.kernel", "layers.15.bias"}
    assert "layers.0.bias" in {one.source for one in flow.steps if one.state == "vanishing"}
    assert "first vanishing at" in str(flow)
    assert "layers." in str(flow).partition("\n")[0]

"""Gradients that are differentiated in their turn are a part of what is computed, and of no backward pass."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight_widgets.folds.graph import GraphFold
from limelight_widgets.folds.inner_gradients import differentiated

EITHER = pytest.mark.parametrize("version", ["traced", "optimised"])


def graph_of(function: ll.function, version: str) -> dict:
    fold = GraphFold(function)
    fold.describe_all()
    state = fold.state()
    return state["graphs"][next(v["graph"] for v in state["variants"] if v["key"] == version)]


def top(graph: dict) -> list[tuple[str, str]]:
    return [(group["lane"], group["label"]) for group in graph["groups"] if group["parent"] < 0]


@EITHER
def test_each_round_of_meta_learning_holds_its_gradient(version):
    w, b = ll.Variable(ll.ones((2, 3))), ll.Variable(ll.zeros((3,)))
    adam = ll.optim.Adam(1e-3)

    def error(w, b, x, y):
        return ll.mean((ll.tanh(x @ w + b) - y) ** 2)

    @ll.function
    def step(x, y):
        total = 0.0
        with ll.GradientTape() as outer:
            for i in range(4):
                u, c = w.read_value(), b.read_value()
                with ll.GradientTape() as inner:
                    inner.watch([u, c])
                    loss = error(u, c, x[i], y[i])
                g, h = inner.gradient(loss, [u, c])
                total = total + error(u - 0.1 * g, c - 0.1 * h, x[i], y[i])
        adam.apply(outer.gradient(total, [w, b]), [w, b])
        return total

    step(ll.ones((4, 5, 2)), ll.ones((4, 5, 3)))
    graph = graph_of(step, version)
    forward = [group for group in graph["groups"] if group["lane"] == "forward"]
    assert [group["repeat"]["count"] for group in forward if group["parent"] < 0 and "repeat" in group] == [4]
    gradients = [group["label"] for group in forward if group["kind"] == "gradient"]
    assert len(gradients) == 4
    assert gradients[0] == "∇ g, h"
    assert "backward" in {group["lane"] for group in graph["groups"]}


@EITHER
def test_the_gradients_that_a_differential_equation_is_made_of_are_of_its_loss(version, equation_step):
    groups = top(graph_of(equation_step, version))
    assert groups[0] == ("forward", "net")
    labels = [label.partition(" · ")[0] for lane, label in groups if lane == "loss"]
    assert labels == ["∇ slope", "loss"]
    assert ("backward", "net") in groups


@EITHER
def test_a_descent_that_nobody_differentiates_has_backward_passes(version):
    @ll.function
    def descend(w, x):
        for _ in range(2):
            with ll.GradientTape() as tape:
                tape.watch(w)
                loss = ll.sum(ll.tanh(x @ w))
            first = tape.gradient(loss, w)
            w = w - 0.1 * first
        with ll.GradientTape() as tape:
            tape.watch(w)
            loss = ll.sum(ll.exp(x @ w))
        second = tape.gradient(loss, w)
        return w - 0.1 * second

    descend(ll.ones((2, 3)), ll.ones((4, 2)))
    graph = graph_of(descend, version)
    assert not [group for group in graph["groups"] if group["kind"] == "gradient"]
    assert "backward" in {node["lane"] for node in graph["nodes"]}


def test_what_counts():
    """Three ops, the gradient that one line asks for, and that of another, which goes through the first."""
    gradient = [False, True, True, False, True]
    stacks = [("f",), ("f", "A"), ("f", "A"), ("loss",), ("loss", "B")]
    reads = [[-1], [0], [1], [2], [1, 3]]
    nowhere = [False] * 5
    assert differentiated(gradient, stacks, reads, nowhere) == [False, True, True, False, False]
    without_result = [*reads[:3], [0], [1, 3]]
    without_inner_value = [*reads[:4], [3]]
    for wrong in (without_result, without_inner_value):
        assert not any(differentiated(gradient, stacks, wrong, nowhere))
    assert not any(differentiated(gradient, stacks, reads, [False, False, False, True, False]))  # read by an update
    assert not any(differentiated(gradient, [*stacks[:4], ("f", "B")], reads, nowhere))  # the reader has no gradient
    assert not any(differentiated(gradient, [*stacks[:4], ("loss", "A")], reads, nowhere))

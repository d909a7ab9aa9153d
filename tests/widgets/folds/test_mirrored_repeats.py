"""Gradients of layers are one where the layers are, and stand beside them where they are not."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight import nn
from limelight_widgets.folds.graph import GraphFold


class Masked(nn.Module):
    """The first call makes the mask, which the optimiser shares with the others."""

    def __init__(self):
        self.dense = nn.Dense(4)

    def call(self, x, mask):
        return x + ll.where(ll.exp(mask)[:, None] > 0.5, self.dense(x), 0.0)


class Net(nn.Module):
    def __init__(self, layers):
        self.embed = nn.Dense(4)  # so that the gradient goes on behind the first layer as behind the others
        self.layers = [Masked() for _ in range(layers)]
        self.head = nn.Dense(2)

    def call(self, x, mask):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x)


def folded(step, lane):
    """The repeats of a lane of the optimised graph, each as the paths of its members."""
    state = GraphFold(step).state()
    groups = state["graphs"][next(one["graph"] for one in state["variants"] if one["key"] == "optimised")]["groups"]
    repeats = [group["repeat"]["members"] for group in groups if group.get("repeat") and group["lane"] == lane]
    return sorted(sorted(groups[member]["path"] for member in members) for members in repeats)


@pytest.mark.parametrize("layers", [2, 3, 6])
def test_gradients_stand_beside_layers_the_first_of_which_does_more(layers):
    net = Net(layers)
    x, mask = ll.ones((3, 4)), ll.ones((3,))
    net(x, mask)

    @ll.function
    def step(x, mask):
        with ll.GradientTape() as tape:
            loss = ll.sum(ll.square(net(x, mask)))
        return tape.gradient(loss, net.trainable_variables)

    step(x, mask)
    assert folded(step, "forward") == folded(step, "backward")
    assert sum(map(len, folded(step, "backward"))) == (layers - 1 if layers > 2 else 0)


def test_gradients_of_rounds_are_one_although_the_first_round_is_another():
    cell = nn.Dense(4, activation="tanh")
    x = ll.ones((3, 4))
    cell(x)

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            h = cell(x * 2.0)
            for _ in range(8):
                h = cell(h)
            loss = ll.sum(h)
        return tape.gradient(loss, cell.trainable_variables)

    step(x)
    assert folded(step, "backward") == folded(step, "forward") == [[f"cell#{k}" for k in range(2, 10)]]

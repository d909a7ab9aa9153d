"""Programs whose graphs several tests fold."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight import nn


@pytest.fixture
def equation_step() -> ll.function:
    """A step with one trace, whose loss is made of a gradient, as of a network that solves y' = y."""
    net = nn.Sequential(nn.Dense(4, activation="tanh"), nn.Dense(1))
    adam, x = ll.optim.Adam(1e-3), ll.ones((3, 1))
    net(x)

    @ll.function
    def step(x):
        with ll.GradientTape() as outer:
            with ll.GradientTape() as inner:
                inner.watch(x)
                value = net(x)
            slope = inner.gradient(value, x)
            loss = ll.mean((slope - value) ** 2) + ll.max(value)
        adam.apply(outer.gradient(loss, net.trainable_variables), net.trainable_variables)
        return loss

    step(x)
    return step

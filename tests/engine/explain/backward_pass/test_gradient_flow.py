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

"""Every differentiable case forward: against reverse mode, and forward-over-reverse against reverse-over-reverse."""

from __future__ import annotations

import numpy as np
import pytest
from opcase import Case, each
from test_cases import gradient_runs, pulled_back, tuple_of, weights_like

import limelight as ll
from limelight.core import dtypes

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every case is staged anew


def inner(xs, ys):
    """The real inner product, None counting as zeros."""
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not None and y is not None]
    return sum(np.sum(np.conj(x.numpy()) * y.numpy()).real for x, y in pairs)


def moving(tensors):
    return [x for x in tensors if dtypes.is_inexact(x.dtype)]


def pushed(function, tensors, directions):
    """The outputs, and their tangents."""
    ll.random.seed(3)
    with ll.ForwardAccumulator(moving(tensors), directions) as forward:
        outputs = tuple_of(function(*tensors))
    return outputs, [forward.jvp(y) for y in outputs]


def fits(outputs, tangents):
    for y, t in zip(outputs, tangents, strict=True):
        assert t is None or (t.shape == y.shape and t.dtype is y.dtype)


@each(gradient_runs())
def test_forward_is_the_transpose_of_reverse(case: Case, dtype):
    tensors = [ll.constant(array) for array in case.arrays(dtype)]
    directions = weights_like(moving(tensors), 3000)
    outputs, tangents = pushed(case.call, tensors, directions)
    fits(outputs, tangents)
    weights = weights_like(outputs)
    ll.random.seed(3)
    gradients = pulled_back(case.call, tensors, weights)
    assert any(t is not None for t in tangents), "nothing moves"
    np.testing.assert_allclose(inner(weights, tangents), inner(gradients, directions), rtol=1e-9, atol=1e-10)


@pytest.mark.slow  # stages each op
@each(gradient_runs(of_each_call=True))
def test_forward_in_a_staged_function(case: Case, dtype):
    """An accumulator around a staged function, and one inside."""
    tensors = [ll.constant(array) for array in case.arrays(dtype)]
    directions = weights_like(moving(tensors), 3000)
    _, wanted = pushed(case.call, tensors, directions)
    _, around = pushed(ll.function(case.call), tensors, directions)
    inside = ll.function(lambda *xs: [t for t in pushed(case.call, xs, directions)[1] if t is not None])(*tensors)
    for t, value in zip(around, wanted, strict=True):
        assert (t is None) == (value is None)
        if t is not None:
            np.testing.assert_allclose(t.numpy(), value.numpy(), rtol=1e-9, atol=1e-10)
    for t, value in zip(inside, [t for t in wanted if t is not None], strict=True):
        np.testing.assert_allclose(t.numpy(), value.numpy(), rtol=1e-9, atol=1e-10)


@each(gradient_runs(only_smooth=True, of_each_call=True))
def test_forward_over_reverse(case: Case, dtype):
    """The second derivative is symmetric: <u, H v> forward over reverse = <H u, v> reverse over reverse."""
    tensors = [ll.constant(array) for array in case.arrays(dtype)]
    directions = weights_like(moving(tensors), 3000)
    ll.random.seed(3)
    weights = weights_like(tuple_of(case.call(*tensors)))

    def gradient(*xs):
        ll.random.seed(3)
        return tuple(g for g in pulled_back(case.call, xs, weights) if g is not None)

    gradients, tangents = pushed(gradient, tensors, directions)
    fits(gradients, tangents)
    others = weights_like(gradients, 4000)
    twice = pulled_back(gradient, tensors, others)
    np.testing.assert_allclose(inner(others, tangents), inner(twice, directions), rtol=1e-8, atol=1e-9)

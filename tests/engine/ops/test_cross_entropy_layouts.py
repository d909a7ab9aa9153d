"""Gradients of cross entropies by class number, however the logits lie in memory."""

import numpy as np
import pytest

import limelight as ll


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("stage", [lambda f: f, ll.function])
def test_the_gradient_is_softmax_less_the_classes_along_any_axis(axis, stage):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4, 4, 4))
    labels = rng.integers(0, 4, (4, 4))
    slope = stage(ll.grad(lambda x, y: ll.sum(ll.nn.softmax_cross_entropy(x, y, axis=axis))))
    p = np.exp(logits) / np.exp(logits).sum(axis, keepdims=True)
    want = p - np.moveaxis(np.eye(4)[labels], -1, axis)
    for x in (ll.constant(logits), ll.constant(np.asfortranarray(logits))):
        np.testing.assert_allclose(slope(x, ll.constant(labels)).numpy(), want, atol=1e-12)

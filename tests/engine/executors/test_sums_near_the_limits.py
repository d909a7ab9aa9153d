"""Sums of numbers near the ends of the range: eager and staged code add in one order, and overflow alike."""

from __future__ import annotations

import functools
import itertools
import warnings

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import limelight as ll

pytestmark = pytest.mark.usefixtures("retraces_are_meant")

LARGEST = float(np.finfo(np.float32).max)
POOL = [
    LARGEST,
    -LARGEST,
    LARGEST / 2,
    -LARGEST / 2,
    1e38,
    -3e38,
    1.0,
    -1.0,
    0.0,
    -0.0,
    1e-45,
    *map(float, ["inf", "-inf", "nan"]),
]

PROGRAMS = {
    "sums of products": lambda x, y, a: ll.sum(x * 2) + ll.sum(y * 2) + ll.sum(a),
    "one sum": lambda x, y, a: ll.sum(x * 2),
    "differences": lambda x, y, a: ll.sum(-x) + ll.sum(y) - ll.sum(a),
    "by axes": lambda x, y, a: ll.sum(ll.sum(x * 2, axis=0) * ll.sum(y, axis=1)) + ll.sum(a, axis=-1, keepdims=True),
    "elements": lambda x, y, a: x + x + x + y + y + y + a,
    "one factor": lambda x, y, a: x * a[0, 0] + y * a[0, 0] + x * a[0, 0] + y * a[0, 0] + x * a[0, 0],
    "halves": lambda x, y, a: ll.sum(x / 2) + ll.sum(y / 2) + ll.sum(a),
    "repeated": lambda x, y, a: ll.sum(ll.broadcast_to(ll.sum(x), (3,))) + ll.sum(y * 2) * 3,
    "a gradient": ll.grad(lambda x, y, a: ll.sum(x * x * y) + ll.sum(x * a) + ll.sum(x * 2) * ll.sum(y)),
    "a gradient by broadcasting": ll.grad(lambda x, y, a: ll.sum((x + y) * ll.sum(a, axis=0)), argnums=(0, 2)),
}


def same(a, b):
    """Whether two arrays agree in what is infinite, and with which sign, and what is NaN; else nearly."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(all="ignore"):
        near = np.isclose(a, b, rtol=1e-4, atol=1e30, equal_nan=True)
    return bool((near & (np.isinf(a) == np.isinf(b))).all())


@functools.cache
def staged(name, level, open_sizes):
    spec = ll.TensorSpec((None, None) if open_sizes else (2, 2))
    with ll.config.optimiser(level=level):
        f = ll.function(PROGRAMS[name], input_signature=[spec] * 3)
        f(*[ll.ones((2, 2))] * 3)
    return f


def numbers(result):
    return [x.numpy() for x in ll.tree.leaves(result)]


@pytest.mark.parametrize("name", PROGRAMS)
@hypothesis.given(st.lists(st.sampled_from(POOL), min_size=12, max_size=12), st.booleans())
@hypothesis.settings(max_examples=15)
def test_every_level_overflows_where_eager_code_does(name, values, open_sizes):
    args = [ll.constant(x) for x in np.array(values, np.float32).reshape(3, 2, 2)]
    expected = numbers(PROGRAMS[name](*args))
    for level in range(4):
        got = numbers(staged(name, level, open_sizes)(*args))
        assert all(map(same, got, expected)), (level, args, got, expected)


SHAPES = [(5,), (2, 3), (3, 1), (1, 4), (1, 1), (2, 2, 2), (5000,), (70, 70)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_sum_has_the_same_bits_eagerly_and_staged(shape, dtype):
    draw = np.random.default_rng(0)
    x = ll.constant(draw.normal(size=shape) * 10.0 ** draw.integers(-8, 8, shape), dtype)
    axes = [None, *range(-len(shape), len(shape)), tuple(range(len(shape))), (0,), ()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        for axis, keepdims in itertools.product(axes, (False, True)):
            f = lambda x, axis=axis, keepdims=keepdims: ll.sum(x, axis=axis, keepdims=keepdims)  # noqa: E731
            assert_same_bits(f, x)
        for small in {tuple([1 if m >> i & 1 else n for i, n in enumerate(shape)]) for m in range(8)} | {shape[1:], ()}:
            assert_same_bits(lambda x, small=small: x.sum_to(small), x)


def assert_same_bits(f, x):
    open_ = [ll.TensorSpec((None,) * x.ndim, x.dtype)]
    for g in (ll.function(f), ll.function(f, input_signature=open_)):
        with ll.config.optimiser(level=2):
            assert g(x).numpy().tobytes() == f(x).numpy().tobytes()

"""Standard scores of columns by limelight-native: random matrices beside NumPy in float64, threads, wrong calls."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.core import native_package
from limelight.executors import base
from limelight.ops.nn import _columns, batch_norm

native = native_package.native_if_usable()
pytestmark = pytest.mark.skipif(native is None, reason="limelight-native is not installed")

EPSILON = 1e-3


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def texts(arrays):
    return [array.tobytes() for array in arrays]


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 700), st.sampled_from([1, 2, 3, 5, 8, 31, 64]), st.integers(0, 99), st.booleans())
def test_scores_and_gradients_beside_numpy(rows, width, seed, turned):
    rng = np.random.default_rng(seed)
    x, h = numbers(rng, 2, rows, width)
    scale, offset = numbers(rng, 2, width)
    wide = [z.astype(np.float64) for z in (x, scale, offset, h)]
    wanted = batch_norm._kernel(np, *wide[:3], EPSILON)
    if turned:  # in another order in memory
        x, h, scale = np.asfortranarray(x), np.asfortranarray(h), np.stack([scale, scale], 1)[:, 0]
    near = {"rtol": 1e-4, "atol": 1e-4 * math.sqrt(rows)}
    found = native.normalise_columns(x, scale, offset, EPSILON, 1)
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, two, **near)
    plain = native.normalise_columns(x, None, None, EPSILON, 1)[0]
    np.testing.assert_allclose(plain * scale + offset, wanted[0], **near)
    gradients = native.normalise_columns_gradient(h, x, *found[1:], scale, EPSILON, 1)
    wanted = batch_norm._gradient_kernel(np, wide[3], wide[0], *wanted[1:], wide[1], EPSILON)
    for one, two in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(one, two, **near)
    root = 1 / np.sqrt(found[2] + np.float32(EPSILON))
    by_scores = native.normalise_columns_gradient(h, plain, None, None, scale * root, EPSILON, 1)
    for one, two in zip(by_scores, wanted, strict=True):
        np.testing.assert_allclose(one, two, **near)


def test_all_axes_but_the_last_are_rows():
    x = numbers(np.random.default_rng(1), 4, 5, 6, 7)
    vector = x[0, 0, 0].copy()
    found = native.normalise_columns(x, vector, vector, EPSILON, 1)
    flat = native.normalise_columns(x.reshape(-1, 7), vector, vector, EPSILON, 1)
    assert [one.shape for one in found] == [x.shape, (7,), (7,)]
    assert texts(found) == texts(flat)
    gradient = native.normalise_columns_gradient(x, x, *found[1:], vector, EPSILON, 1)[0]
    assert gradient.shape == x.shape


def test_numbers_are_the_same_on_any_number_of_threads():
    x, h = numbers(np.random.default_rng(0), 2, 9000, 64)
    vector = x[0].copy()
    found = set()
    for threads in (-1, 1, 2, 5, 100):
        y, *moments = native.normalise_columns(x, vector, vector, EPSILON, threads)
        gradients = native.normalise_columns_gradient(h, x, *moments, vector, EPSILON, threads)
        found.add(b"".join(texts([y, *moments, *gradients])))
    assert len(found) == 1


X, V = np.ones((4, 3), np.float32), np.ones(3, np.float32)
SWAPPED = X.byteswap().view(X.dtype.newbyteorder())


@pytest.mark.parametrize(
    "given",
    [
        (None, V, V, EPSILON, 1),
        (X.astype(np.float64), V, V, EPSILON, 1),
        (SWAPPED, V, V, EPSILON, 1),
        (np.float32(1), V, V, EPSILON, 1),
        (X, V[:2], V, EPSILON, 1),
        (X, V, X, EPSILON, 1),
        (X, V, V.astype(np.float16), EPSILON, 1),
        (X, V, V, None, 1),
        (X, V, V, EPSILON),
    ],
)
def test_wrong_calls_are_refused(given):
    with pytest.raises(TypeError):
        native.normalise_columns(*given)


@pytest.mark.parametrize(
    "given",
    [
        (X[:3], X, V, V, V, EPSILON, 1),
        (X.reshape(2, 2, 3), X, V, V, V, EPSILON, 1),
        ("h", X, V, V, V, EPSILON, 1),
        (X, None, V, V, V, EPSILON, 1),
        (X, X, V, None, V, EPSILON, 1),
        (X, X, None, V, V, EPSILON, 1),
        (X, X, V, V[:1], V, EPSILON, 1),
        (X, X, V, V, None, EPSILON, 1),
        (SWAPPED, X, V, V, V, EPSILON, 1),
        (X, X, V, V, V, EPSILON),
    ],
)
def test_wrong_gradients_are_refused(given):
    with pytest.raises(TypeError):
        native.normalise_columns_gradient(*given)


def test_without_rows_or_columns():
    for shape in ((0, 3), (3, 0), (2, 0, 3)):
        x, vector = np.empty(shape, np.float32), np.ones(shape[-1], np.float32)
        y, mean, variance = native.normalise_columns(x, vector, vector, EPSILON, 2)
        assert (y.shape, mean.shape) == (shape, shape[-1:])
        assert np.isnan(mean).all()
        gradient, _, to_offset = native.normalise_columns_gradient(x, x, mean, variance, vector, EPSILON, 2)
        assert gradient.shape == shape
        np.testing.assert_array_equal(to_offset, np.zeros(shape[-1]))


@pytest.mark.parametrize("size", [_columns.SMALLEST, _columns.SMALLEST + 8])
def test_every_executor_goes_the_same_way(size):
    rng = np.random.default_rng(2)
    x, h = numbers(rng, 2, size // 8, 8)
    scale, offset = numbers(rng, 2, 8)

    def both(x, scale, offset, h):
        with ll.GradientTape() as tape:
            tape.watch([x, scale, offset])
            y, *moments = ll.nn.batch_norm_training(x, scale, offset, EPSILON)
            total = ll.sum(y * h)
        return [y, *moments, *tape.gradient(total, [x, scale, offset])]

    given = [ll.constant(z) for z in (x, scale, offset, h)]
    wanted = [z.numpy() for z in both(*given)]
    for executor in ("plan", "loops"):
        with base.chosen.override(executor):
            assert texts(z.numpy() for z in ll.function(both)(*given)) == texts(wanted), executor
    y, mean, variance = native.normalise_columns(x, scale, offset, EPSILON, 1)
    same = texts([y, mean, variance]) == texts(wanted[:3])
    assert same == (size > _columns.SMALLEST)

"""Sums and scores of columns by limelight-native: random matrices beside NumPy in float64, threads, wrong calls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.core import native_package

native = native_package.native_if_usable()
pytestmark = pytest.mark.skipif(native is None, reason="limelight-native is not installed")


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def sums(x, h=None, centre=None, parts=1, threads=1):
    out = np.full((parts, 2, x.shape[1]), np.nan, np.float32)
    native.column_sums(x, h, centre, out, threads)
    return out


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 700), st.sampled_from([1, 2, 3, 5, 8, 31, 64]), st.integers(1, 9), st.integers(0, 99))
def test_sums_and_scores_beside_numpy(rows, width, parts, seed):
    rng = np.random.default_rng(seed)
    x, h = numbers(rng, rows, width), numbers(rng, rows, width)
    centre, slope, level, factor = numbers(rng, 4, width)
    apart = x.astype(np.float64) - centre
    near = {"rtol": 1e-4, "atol": 1e-5 * rows**0.5 + 1e-5}
    zero = np.zeros(width)
    for given_, wanted in (
        ((x,), (x.sum(0, np.float64), zero)),
        ((x, None, centre), (zero, (apart**2).sum(0))),
        ((x, h, centre), (h.sum(0, np.float64), (h * apart).sum(0))),
    ):
        one = sums(*given_, parts=parts)
        np.testing.assert_allclose(one.sum(0, np.float64), wanted, **near)
        np.testing.assert_array_equal(one, sums(*given_, parts=parts, threads=3))
    scores = apart * slope + level
    for left, wanted in (((None, None), scores), ((h, factor), (h - scores) * factor)):
        out = np.empty_like(x)
        native.column_scores(x, left[0], centre, slope, level, left[1], out, 2)
        np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)


def test_numbers_are_the_same_on_any_number_of_threads():
    x, h = numbers(np.random.default_rng(0), 2, 9000, 64)
    centre = x[0].copy()
    found = {}
    for threads in (1, 2, 5, 100):
        out = np.empty_like(x)
        native.column_scores(x, h, centre, centre, centre, centre, out, threads)
        found[threads] = (sums(x, h, centre, 16, threads).tobytes(), out.tobytes())
    assert len(set(found.values())) == 1


X, V, OUT = np.ones((4, 3), np.float32), np.ones(3, np.float32), np.ones((2, 2, 3), np.float32)
READ_ONLY = OUT.copy()
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "given",
    [
        (None, None, None, OUT, 1),
        (X.astype(np.float64), None, None, OUT, 1),
        (X[:, ::2], None, None, OUT, 1),
        (X[0], None, None, OUT, 1),
        (X, X[:3], V, OUT, 1),
        (X, X, None, OUT, 1),
        (X, None, V[:2], OUT, 1),
        (X, None, V, OUT[:, :1], 1),
        (X, None, V, OUT[..., :2], 1),
        (X, None, V, READ_ONLY, 1),
        (X, None, V, None, 1),
        (X, "h", V, OUT, 1),
        (X, None, V, OUT),
        (X.byteswap().view(X.dtype.newbyteorder()), None, None, OUT, 1),
    ],
)
def test_wrong_sums_are_refused(given):
    with pytest.raises(TypeError):
        native.column_sums(*given)


@pytest.mark.parametrize(
    "given",
    [
        (X, None, V, V, V, None, X[:3].copy(), 1),
        (X, None, None, V, V, None, X.copy(), 1),
        (X, None, V, None, V, None, X.copy(), 1),
        (X, X, V, V, V, None, X.copy(), 1),
        (X, None, V, V, V, V, X.copy(), 1),
        (X, None, V, V[::-1], V, None, X.copy(), 1),
        (X, None, V, V, V, None, None, 1),
    ],
)
def test_wrong_scores_are_refused(given):
    with pytest.raises(TypeError):
        native.column_scores(*given)


def test_no_rows_and_no_threads():
    empty = np.empty((0, 3), np.float32)
    np.testing.assert_array_equal(sums(empty, parts=2), np.zeros((2, 2, 3)))
    native.column_scores(empty, None, V, V, V, None, empty.copy(), 0)
    np.testing.assert_array_equal(sums(X, threads=-1), [[[4, 4, 4], [0, 0, 0]]])

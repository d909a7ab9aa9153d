"""The gradient of max pools by limelight-native: the numbers of NumPy's kernel to the bit, threads, wrong calls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.core import native_package
from limelight.ops.nn import pooling

native = native_package.native_if_usable()
pytestmark = pytest.mark.skipif(native is None, reason="limelight-native is not installed")


@st.composite
def pools(draw):
    """A shape, and window, stride and margins that fit."""
    rank = draw(st.integers(1, 3))
    window, stride, pads, space = [], [], [], []
    for _ in range(rank):
        k = draw(st.integers(1, 4))
        before, behind = draw(st.integers(0, k - 1)), draw(st.integers(0, k - 1))
        window.append(k)
        stride.append(draw(st.integers(1, 5)))
        pads.append((before, behind))
        space.append(draw(st.integers(max(1, k - before - behind), 9)))
    shape = (draw(st.integers(1, 3)), *space, draw(st.sampled_from([1, 2, 5, 16])))
    return shape, (tuple(window), tuple(stride), tuple(pads))


def operands(shape, attrs, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, shape).astype(np.float32)  # many are equal
    if seed % 3 == 0:
        x.flat[seed % x.size] = np.nan
    y = pooling._max_numpy(np, x, *attrs)
    return rng.standard_normal(y.shape).astype(np.float32), x, y


def both_ways(given_, attrs, monkeypatch):
    with monkeypatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(pooling, "_WORTH_A_CALL", 0)
        one = pooling._max_gradient_numpy(np, *given_, *attrs)
        patch.setattr(pooling, "_WORTH_A_CALL", 1 << 60)
        return one, pooling._max_gradient_numpy(np, *given_, *attrs)


@settings(deadline=None, max_examples=60)
@given(pools(), st.integers(0, 99))
def test_bits_are_those_of_numpy(pool, seed):
    shape, attrs = pool
    one, two = both_ways(operands(shape, attrs, seed), attrs, pytest.MonkeyPatch())
    assert one.shape == shape
    np.testing.assert_array_equal(one, two)
    known = ~np.isnan(one)
    assert (np.signbit(one) == np.signbit(two))[known].all()


@pytest.mark.parametrize("shape", [(1, 60, 60, 48), (3, 61, 29, 33), (2, 1, 3000, 30)])
def test_cores_share_rows_and_numbers_are_the_same(shape, monkeypatch):
    attrs = ((3, 3), (2, 2), ((1, 1), (1, 1)))
    given_ = operands(shape, attrs, 1)
    _, wanted = both_ways(given_, attrs, monkeypatch)
    for threads in (-1, 1, 2, 7):
        with_axis = [z[:, None] for z in given_]
        found = native.max_pool_gradient(*with_axis, (1, 3, 3), (1, 2, 2), (0, 1, 1), threads)
        assert found.tobytes() == wanted.tobytes(), threads
    turned = [np.asfortranarray(z) for z in with_axis]
    assert native.max_pool_gradient(*turned, (1, 3, 3), (1, 2, 2), (0, 1, 1), 2).tobytes() == wanted.tobytes()


X, Y = np.ones((1, 1, 4, 4, 2), np.float32), np.ones((1, 1, 2, 2, 2), np.float32)
TWO, NONE = (1, 2, 2), (0, 0, 0)


@pytest.mark.parametrize(
    "given",
    [
        (Y, X, Y[:, :, :1], TWO, TWO, NONE, 1),
        (Y[..., :1], X, Y[..., :1], TWO, TWO, NONE, 1),
        (Y, X, Y, (1, 0, 2), TWO, NONE, 1),
        (Y, X, Y, TWO, (1, 2, 0), NONE, 1),
        (Y, X, Y, TWO, (1, 2, -2), NONE, 1),
        (Y, X, Y, TWO, TWO, (0, -1, 0), 1),
        (Y, X, Y, TWO, TWO, (0, 2, 0), 1),
        (Y, X, Y, TWO, (1, 4, 2), NONE, 1),  # the second sees nothing
        (Y, X, Y, TWO, (1, 2**62, 2), NONE, 1),
        (Y, X, Y, (1, 2**62, 2), TWO, NONE, 1),
    ],
)
def test_windows_that_do_not_fit_are_refused(given):
    with pytest.raises(ValueError, match="window"):
        native.max_pool_gradient(*given)


@pytest.mark.parametrize(
    "given",
    [
        (Y.astype(np.float64), X, Y, TWO, TWO, NONE, 1),
        (Y, X[0], Y, TWO, TWO, NONE, 1),
        (Y, X, "y", TWO, TWO, NONE, 1),
        (Y, X[:0], Y, TWO, TWO, NONE, 1),
        (Y, X, Y, (2, 2), TWO, NONE, 1),
        (Y, X.byteswap().view(X.dtype.newbyteorder()), Y, TWO, TWO, NONE, 1),
    ],
)
def test_wrong_arrays_are_refused(given):
    with pytest.raises(TypeError):
        native.max_pool_gradient(*given)

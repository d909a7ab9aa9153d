"""Pools beyond the cases: random settings against loops, ties, margins, integers, unknown sizes, errors."""

from __future__ import annotations

import looped_windows
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.ops.nn import pooling

SETTINGS = settings(max_examples=60, deadline=None)
POOLS = pytest.mark.parametrize(("pool", "reduce"), [(ll.nn.max_pool, np.max), (ll.nn.avg_pool, np.mean)])


@st.composite
def layouts(draw):
    """(x's shape, window, stride, padding) that fit together."""
    n = draw(st.integers(1, 3))
    window, stride = (tuple(draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))) for _ in range(2))
    margins = tuple((draw(st.integers(0, k - 1)), draw(st.integers(0, k - 1))) for k in window)
    padding = draw(st.sampled_from(["same", "valid", margins]))
    space = tuple(draw(st.integers(k, k + 4)) for k in window)
    return (draw(st.integers(1, 2)), *space, draw(st.integers(1, 2))), window, stride, padding


@POOLS
def test_as_loops_over_windows_say(pool, reduce):
    @SETTINGS
    @given(layouts(), st.booleans())
    def check(layout, tied):
        shape, *attrs = layout
        rng = np.random.default_rng(5)
        x = rng.integers(0, 3, shape).astype("float64") if tied else rng.uniform(-1, 1, shape)
        X = ll.constant(x)
        with ll.GradientTape() as tape:
            tape.watch(X)
            y = pool(X, *attrs)
        np.testing.assert_allclose(y.numpy(), looped_windows.pool(reduce, x, *attrs), atol=1e-12)
        g = rng.uniform(-1, 1, y.shape)
        found = tape.gradient(y, X, output_gradients=ll.constant(g))
        if reduce is np.max:
            wanted = looped_windows.max_pool_gradient(g, x, *attrs)
        else:
            wanted = looped_windows.avg_pool_gradient(g, shape, *attrs)
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)

    check()


def test_equally_large_elements_share_the_gradient():
    x = ll.constant([[[2.0], [2.0], [1.0], [5.0]]])
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.nn.max_pool(x, 2)
    assert tape.gradient(y, x)[0, :, 0].tolist() == [0.5, 0.5, 0.0, 1.0]


def test_hundreds_of_equal_elements_share_the_gradient():
    x = ll.zeros((1, 20, 17, 1))
    gradient = ll.grad(lambda x: ll.sum(ll.nn.max_pool(x, (20, 17))))(x)
    np.testing.assert_allclose(gradient.numpy(), np.full(x.shape, 1 / 340), rtol=1e-6)


@pytest.mark.parametrize("window", [2, 3])
def test_images_by_the_block_are_images_one_by_one(window, monkeypatch):
    x = ll.constant(np.random.default_rng(1).integers(-2, 2, (5, 6, 6, 2)).astype("float32"))
    gradient = ll.grad(lambda x: ll.sum(ll.nn.max_pool(x, window, stride=2) ** 3))
    whole = gradient(x).numpy()
    monkeypatch.setattr(pooling, "_BLOCK", 150)
    assert gradient(x).numpy().tobytes() == whole.tobytes()


def test_margins_are_never_the_largest_and_not_counted():
    x = ll.constant([[[-3.0], [-1.0], [-2.0]]])
    assert ll.nn.max_pool(x, 2, 1, 1)[0, :, 0].tolist() == [-3.0, -1.0, -1.0, -2.0]
    assert ll.nn.avg_pool(x, 2, 1, 1)[0, :, 0].tolist() == [-3.0, -2.0, -1.5, -2.0]
    lowest = ll.constant([[[-np.inf], [-np.inf]]])
    with ll.GradientTape() as tape:
        tape.watch(lowest)
        y = ll.nn.max_pool(lowest, 2, 2, 1)
    assert tape.gradient(y, lowest)[0, :, 0].tolist() == [1.0, 1.0]


def test_nan_is_larger_than_any_number():
    x = ll.constant([[[1.0], [np.nan], [2.0], [3.0]]])
    assert np.isnan(ll.nn.max_pool(x, 2).numpy()[0, :, 0]).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
def test_integers_have_a_largest_element(dtype):
    x = ll.constant(np.array([3, 1, 2, 7, 7], dtype).reshape(1, 5, 1))
    found = ll.nn.max_pool(x, 3, 2, 1)
    assert found.dtype == dtype
    assert found[0, :, 0].tolist() == [3, 7, 7]
    with pytest.raises(ll.errors.DTypeError, match="avg_pool needs floating"):
        ll.nn.avg_pool(x, 3)


def test_global_pools():
    x = ll.constant(np.arange(24.0).reshape(2, 3, 2, 2))
    assert ll.nn.global_max_pool(x).tolist() == [[10.0, 11.0], [22.0, 23.0]]
    assert ll.nn.global_avg_pool(x, keepdims=True).shape == (2, 1, 1, 2)
    with pytest.raises(ll.errors.ShapeError, match="global_avg_pool: x must be"):
        ll.nn.global_avg_pool(ll.ones((2, 3)))


@POOLS
def test_staged_for_any_batch_and_space(pool, reduce):
    def step(x):
        with ll.GradientTape() as tape:
            tape.watch(x)
            loss = pool(x, 3, 2, "same").square().sum()
        return tape.gradient(loss, x)

    F = ll.function(step, input_signature=[ll.TensorSpec((None, None, None, 2))])
    for shape in ((2, 5, 6, 2), (1, 8, 4, 2)):
        x = ll.random.normal(shape)
        np.testing.assert_allclose(F(x).numpy(), step(x).numpy(), rtol=1e-5, atol=1e-6)
    assert F.trace_count == 1


@POOLS
def test_what_does_not_fit(pool, reduce):
    x, name = ll.ones((1, 4, 4, 1)), pool.__name__
    for call in (lambda x: pool(x, 5), lambda x: pool(x, (2, 6), 1, (1, 0))):
        with pytest.raises(ll.errors.ShapeError, match=rf"{name}: a window of . does not fit into axis [12]") as eager:
            call(x)
        with pytest.raises(ll.errors.ShapeError) as staged:
            ll.function(call)(x)
        assert eager.value.bare == staged.value.bare
    with pytest.raises(ll.errors.ArgumentError, match=f"{name}: padding .* must be less than the window"):
        pool(x, 2, padding=2)
    with pytest.raises(ll.errors.ArgumentError, match=f"{name}: window must be"):
        pool(x, 0)
    with pytest.raises(ll.errors.ArgumentError, match=f"{name}: stride must be"):
        pool(x, 2, -1)

"""Pictures of another size, against a loop in NumPy; their gradients; what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, ShapeError


def line(values: np.ndarray, new: int, method: str) -> np.ndarray:
    """One axis of length `new`, element by element."""
    old, result = len(values), []
    for i in range(new):
        place = (i + 0.5) * old / new
        if method == "nearest":
            result.append(values[min(int(place), old - 1)])
        else:
            place = min(max(place - 0.5, 0.0), old - 1.0)
            low = int(place)
            result.append(values[low] + (values[min(low + 1, old - 1)] - values[low]) * (place - low))
    return np.array(result)


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), min_size=1, max_size=3),
    st.sampled_from(["nearest", "linear"]),
    st.booleans(),
)
def test_each_axis_is_resized_as_a_line(sizes, method, staged):
    old, new = zip(*sizes, strict=True)
    x = np.random.default_rng(0).normal(size=(2, *old, 3))
    expected = x
    for axis, n in enumerate(new, 1):
        expected = np.apply_along_axis(line, axis, expected, n, method)
    resize = ll.function(ll.nn.resize) if staged else ll.nn.resize
    np.testing.assert_allclose(resize(ll.constant(x), new, method).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("method", ["nearest", "linear"])
def test_gradients_and_dtypes(method):
    x = ll.constant(np.random.default_rng(0).normal(size=(1, 3, 4, 2)))
    ll.gradcheck(lambda x: ll.nn.resize(x, (5, 2), method), x)
    half = ll.nn.resize(ll.ones((1, 2, 2, 1), dtype="bfloat16"), 3, method)
    assert (half.dtype.name, half.shape) == ("bfloat16", (1, 3, 3, 1))
    assert ll.nn.resize(ll.ones((1, 2, 2, 1), dtype="int32"), 3).dtype.name == "int32"


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3), st.integers(1, 2))
def test_channels_become_blocks_of_space(sizes, channels):
    space, factors = zip(*sizes, strict=True)
    block = int(np.prod(factors))
    x = np.arange(2 * np.prod(space) * channels * block).reshape((2, *space, channels * block))
    y = ll.nn.pixel_shuffle(ll.constant(x), factors).numpy()
    for place in np.ndindex(y.shape):
        inside = [place[1 + i] % f for i, f in enumerate(factors)]
        at = [place[1 + i] // f for i, f in enumerate(factors)]
        channel = np.ravel_multi_index((place[-1], *inside), (channels, *factors))
        assert y[place] == x[(place[0], *at, channel)]


def test_a_batch_of_unknown_size_and_layers():
    net = ll.nn.Sequential(ll.nn.Upsample(2, "linear"), ll.nn.Identity(), ll.nn.Conv(4, 3), ll.nn.Upsample(3))
    f = ll.function(net, input_signature=[ll.TensorSpec((None, 4, 4, 1), "float32")])
    assert f(ll.ones((5, 4, 4, 1))).shape == (5, 24, 24, 4)
    assert f(ll.ones((2, 4, 4, 1))).shape == (2, 24, 24, 4)
    shuffle = ll.function(
        lambda x: ll.nn.pixel_shuffle(x, 2), input_signature=[ll.TensorSpec((None, 2, 2, 4), "int32")]
    )
    assert shuffle(ll.ones((3, 2, 2, 4), dtype="int32")).shape == (3, 4, 4, 1)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda: ll.nn.resize(ll.ones((2, 3)), 4),
            ShapeError,
            r"needs \(batch, \*space, channels\).*f32\[2,3\]",
        ),
        (lambda: ll.nn.resize(ll.ones((1, 3, 1)), (4, 4)), ArgumentError, r"size must be a positive int, or 1 of them"),
        (lambda: ll.nn.resize(ll.ones((1, 3, 1)), 0), ArgumentError, "size must be a positive int"),
        (lambda: ll.nn.resize(ll.ones((1, 3, 1)), 4, "cubic"), ArgumentError, "'nearest', 'linear'; got 'cubic'"),
        (lambda: ll.nn.resize(ll.ones((1, 3, 1), dtype="int32"), 4, "linear"), DTypeError, "resize needs floating"),
        (lambda: ll.nn.resize(ll.ones((1, 3, 0, 1)), 4, "linear"), ShapeError, "no elements along axis 2"),
        (lambda: ll.nn.pixel_shuffle(ll.ones((1, 2, 2, 3)), 2), ShapeError, "channels that are a multiple of 4"),
        (lambda: ll.nn.Upsample(0), ArgumentError, "factor must be a positive int"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call, error, said):
    with pytest.raises(error, match=said):
        call()

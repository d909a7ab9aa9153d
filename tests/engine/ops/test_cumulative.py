"""Running sums, products and extremes, margins, top_k: against NumPy, at zeros, ties and NaN, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every example is staged anew

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)
NAN = np.nan


def gradient(function, x, weights=None):
    x = ll.constant(np.asarray(x, np.float64))
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    weights = None if weights is None else ll.constant(np.asarray(weights, np.float64))
    return tape.gradient(y, x, output_gradients=weights).tolist()


@given(SHAPES, st.data())
@settings(max_examples=30, deadline=None)
def test_scans_from_either_end_with_and_without_the_element(shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(np.float64)
    for scan, ufunc, neutral in (
        (ll.cumsum, np.add, 0),
        (ll.cumprod, np.multiply, 1),
        (ll.cummax, np.maximum, -np.inf),
        (ll.cummin, np.minimum, np.inf),
    ):
        for reverse in (False, True):
            turned = np.flip(x, axis) if reverse else x
            wanted = ufunc.accumulate(turned, axis)
            shifted = np.delete(np.insert(wanted, 0, neutral, axis), -1, axis)
            for exclusive, forward in ((False, wanted), (True, shifted)):
                value = np.flip(forward, axis) if reverse else forward
                found = scan(ll.constant(x), axis=axis, reverse=reverse, exclusive=exclusive)
                np.testing.assert_array_equal(found.numpy(), value, err_msg=scan.__name__)


def test_the_gradient_of_a_running_product_at_zeros():
    """By hand: y = (a, ab, abc), so ā = 1 + b + bc, b̄ = a + ac, c̄ = ab."""
    for a, b, c in ((0, 2, 3), (2, 0, 0), (0, 0, 0)):
        assert gradient(ll.cumprod, [a, b, c]) == [1 + b + b * c, a + a * c, a * b]


def test_the_gradient_of_a_running_extreme_goes_to_the_first_of_equal_ones():
    assert gradient(ll.cummax, [1, 3, 3, 2, 4], [1, 10, 100, 1000, 10000]) == [1, 1110, 0, 0, 10000]
    assert gradient(lambda x: ll.cummin(x, reverse=True), [1, 3, 3], [1, 10, 100]) == [1, 0, 110]
    assert gradient(ll.cummax, [1, NAN, 3], [1, 10, 100]) == [1, 110, 0]


def test_exclusive_extremes_start_from_the_least_and_the_largest():
    assert ll.cummax(ll.constant([5, 2], dtype=ll.int8), exclusive=True).tolist() == [-128, 5]
    assert ll.cummin(ll.constant([5, 2], dtype=ll.uint8), exclusive=True).tolist() == [255, 5]
    assert gradient(lambda x: ll.cummax(x, exclusive=True), [1, 3, 2], [1, 10, 100]) == [10, 100, 0]


def test_cumulative_prod_is_the_array_apis():
    x = ll.constant([[2, 3], [4, 5]], dtype=ll.int8)
    assert ll.cumulative_prod(x, axis=1).dtype is ll.int32
    assert ll.cumulative_prod(x, axis=0, dtype=ll.float64, include_initial=True).tolist() == [[1, 1], [2, 3], [8, 15]]


@given(
    st.integers(0, 3),
    st.integers(1, 4),
    st.sampled_from(["reflect", "edge", "symmetric", "wrap", "constant"]),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_margins_as_in_numpy(before, n, mode, data):
    x = np.arange(float(n * 2)).reshape(n, 2)
    widths = [(before, data.draw(st.integers(0, 9))), (data.draw(st.integers(0, 2)), 0)]
    np.testing.assert_array_equal(ll.pad(ll.constant(x), widths, mode).numpy(), np.pad(x, widths, mode))
    F = ll.function(lambda x: ll.pad(x, widths, mode), input_signature=[ll.TensorSpec((None, None), "float64")])
    np.testing.assert_array_equal(F(x).numpy(), np.pad(x, widths, mode))


def test_margins_have_names_of_other_libraries_too():
    x = ll.constant([1, 2, 3])
    assert ll.pad(x, 1, "replicate").tolist() == ll.pad(x, 1, "edge").tolist() == [1, 1, 2, 3, 3]
    assert ll.pad(x, 1, "circular").tolist() == ll.pad(x, 1, "wrap").tolist() == [3, 1, 2, 3, 1]
    assert gradient(lambda x: ll.pad(x, 1, "reflect"), [1, 2, 3]) == [1, 3, 1]
    assert ll.pad(ll.constant([True]), 1, value=True).tolist() == [True] * 3


@given(st.integers(64, 200), st.integers(1, 8), st.sampled_from(["f4", "f2", "i2", "u1"]))
@settings(max_examples=30, deadline=None)
def test_the_largest_of_many_are_those_of_a_stable_sort(n, k, dtype):
    rng = np.random.default_rng(n)
    x = rng.integers(0, 9, (3, n)).astype(dtype)
    if dtype == "f4":
        x[rng.random((3, n)) < 0.02] = NAN
    places = (n - 1 - np.argsort(x[:, ::-1], axis=-1, stable=True))[:, ::-1][:, :k]
    values, found = ll.top_k(ll.constant(x), k)
    np.testing.assert_array_equal(found.numpy(), places)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, places, -1))


def test_the_gradient_of_the_largest():
    assert gradient(lambda x: ll.top_k(x, 2)[0], [1, 3, 2], [10, 1]) == [0, 10, 1]


X = ll.ones((2, 3))
REFUSED = {
    "no axis": (lambda: ll.cumsum(X), ArgumentError, r"cumsum.*2 axes.*ll.cumsum\(x, axis=0\)"),
    "cumulative_prod": (lambda: ll.cumulative_prod(X), ArgumentError, "cumulative_prod.*2 axes"),
    "axis": (lambda: ll.cummax(X, axis=2), IndexError, "axis 2 is out of range"),
    "scalar": (lambda: ll.cumprod(ll.constant(1.0)), ArgumentError, "0 axes"),
    "order": (lambda: ll.cummax(X.astype("complex64"), axis=0), DTypeError, "integer or floating"),
    "mode": (lambda: ll.pad(X, 1, "mirror"), ArgumentError, "unknown mode 'mirror'.*'reflect'"),
    "margins": (lambda: ll.pad(X, [(1, 1)] * 3), ArgumentError, "pair for each of its 2 axes"),
    "part of a place": (lambda: ll.pad(X, 0.5), ArgumentError, "whole number"),
    "negative margins": (lambda: ll.pad(X, -1), ArgumentError, "slicing"),
    "an empty axis": (lambda: ll.pad(ll.ones((0, 2)), ((1, 0), (0, 0)), "edge"), ShapeError, "axis 0.*empty"),
    "value": (lambda: ll.pad(ll.constant([1]), 1, value=0.5), DTypeError, "0.5"),
    "value's range": (lambda: ll.pad(ll.constant([1], dtype=ll.int8), 1, value=300), DTypeError, "300"),
    "k": (lambda: ll.top_k(X, -1), ArgumentError, "negative"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_why_eager_and_staged(case):
    function, error, words = REFUSED[case]
    for run in (function, ll.function(function)):
        with pytest.raises(error, match=words):
            run()

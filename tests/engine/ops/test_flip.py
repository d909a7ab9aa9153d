"""`roll` by shifts that no trace knows, or that differ between examples: as by numbers, one example at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll

SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)
SHIFTS = st.lists(st.integers(-9, 9), min_size=3, max_size=3)
DTYPES = st.sampled_from(["int8", "int32", "int64", "uint8"])


def rows(shape: tuple[int, ...], n: int = 3) -> Any:
    return ll.constant(np.random.default_rng(n).uniform(-1, 1, (n, *shape)))


@settings(max_examples=30)
@given(SHAPES, SHIFTS, DTYPES, st.data())
def test_each_example_rolls_by_its_own(shape: tuple[int, ...], shifts: list[int], dtype: str, data: Any) -> None:
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    x, n = rows(shape), ll.constant(np.array(shifts).astype(dtype))
    got = ll.vectorize(lambda x, n: ll.roll(x, n, axis=axis))(x, n)
    want = [np.roll(a, int(k), axis) for a, k in zip(x.numpy(), n.numpy(), strict=True)]
    np.testing.assert_array_equal(got.numpy(), np.stack(want))


@settings(max_examples=15)
@given(SHAPES, SHIFTS)
def test_shifts_of_a_trace(shape: tuple[int, ...], shifts: list[int]) -> None:
    x = rows(shape)[0]
    spec = ll.TensorSpec((None,) * len(shape), "float64")
    staged = ll.function(ll.roll, input_signature=[spec, ll.TensorSpec((), "int32")])
    for n in shifts:
        np.testing.assert_array_equal(staged(x, ll.constant(n)).numpy(), np.roll(x.numpy(), n))


@pytest.mark.parametrize("derive", [ll.grad, lambda f: lambda x, n: ll.jvp(lambda x: f(x, n), (x,), (ll.cos(x),))[1]])
def test_derivatives(derive: Any) -> None:
    x, n = rows((4,)), ll.constant([1, -2, 5])
    weights = ll.constant([1.0, 3.0, -2.0, 0.5], "float64")
    f = derive(lambda x, n: ll.sum(ll.sin(ll.roll(x, n)) * weights))
    want = [f(x[i], int(n[i])).numpy() for i in range(3)]
    np.testing.assert_allclose(ll.vectorize(f)(x, n).numpy(), want)
    np.testing.assert_allclose(ll.function(ll.vectorize(f))(x, n).numpy(), want)


def test_no_op_runs_example_by_example() -> None:
    rolled = ll.vectorize(ll.roll)
    rolled(rows((4,)), ll.constant([1, -2, 5]))
    assert not rolled.looped


def test_several_axes() -> None:
    x, shifts = rows((3, 4)), ll.constant([[1, 2], [0, -1], [5, 7]])
    want = np.stack([np.roll(a, tuple(k), (0, 1)) for a, k in zip(x.numpy(), shifts.numpy(), strict=True)])
    for shift in (lambda n: n, lambda n: (n[0], n[1])):
        got = ll.vectorize(lambda x, n, shift=shift: ll.roll(x, shift(n), axis=(0, 1)))(x, shifts)
        np.testing.assert_array_equal(got.numpy(), want)
    mixed = ll.vectorize(lambda x, n: ll.roll(x, (n[0], 2), axis=(0, 1)))(x, shifts)
    np.testing.assert_array_equal(mixed.numpy()[0], np.roll(x.numpy()[0], (1, 2), (0, 1)))


def test_shifts_that_are_no_integers() -> None:
    with pytest.raises(ll.errors.ArgumentError, match=r"roll: shift must be an integer.*f32\[\]"):
        ll.vectorize(ll.roll)(rows((2,)), ll.constant([1.0, 2.0, 3.0]))
    with pytest.raises(ll.errors.ArgumentError, match="roll: 2 shifts for 1 axes"):
        ll.vectorize(ll.roll)(rows((2,)), ll.constant([[1, 2]] * 3))

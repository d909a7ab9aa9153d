"""Long sorts keep the order of equal elements; classes drawn from one row of logits are those drawn from its copies."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import limelight as ll


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int8", "bfloat16"])
@pytest.mark.parametrize("kinds", [1, 3, 400, 10**6])
def test_equal_elements_stay_in_order(dtype, kinds):
    rng = np.random.default_rng(kinds)
    values = rng.integers(0, min(kinds, 127) if dtype == "int8" else kinds, (2, 700))
    given = values.astype("float32" if dtype == "bfloat16" else dtype)
    if given.dtype.kind == "f":
        given[rng.random(given.shape) < 0.1] = np.nan
        given[rng.random(given.shape) < 0.1] *= -1.0  # among them zeros
    x = ll.constant(given).astype(dtype)
    plain = x.astype("float32").numpy() if dtype == "bfloat16" else given
    for array, axis in ((x, 1), (x.T, 0)):
        wanted = np.argsort(plain if axis else plain.T, axis=axis, stable=True)
        assert np.array_equal(ll.argsort(array, axis=axis).numpy(), wanted)
    backwards = 699 - np.argsort(plain[:, ::-1], axis=1, stable=True)[:, ::-1]
    assert np.array_equal(ll.argsort(x, descending=True).numpy(), backwards)


def test_one_row_of_logits_gives_the_classes_that_its_copies_give():
    logits = ll.constant([0.5, -1.0, float("-inf"), 2.0])
    spread, copied, staged = (ll.random.Generator(5) for _ in range(3))
    found = spread.categorical(logits, (40, 10))
    assert (found == copied.categorical(ll.constant(np.tile(logits.numpy(), (40, 10, 1))))).numpy().all()
    assert (found == ll.function(lambda x: staged.categorical(x, (40, 10)))(logits)).numpy().all()
    assert set(np.unique(found.numpy())) == {0, 1, 3}


def test_classes_without_a_share_are_never_drawn():
    inf = float("inf")
    assert set(ll.random.categorical(ll.constant([-inf, 0.0, -inf]), (100,)).tolist()) == {1}
    assert set(ll.random.categorical(ll.constant([inf, 0.0]), (100,)).tolist()) == {0}
    assert ll.random.categorical(ll.zeros((0, 3))).shape == (0,)


def test_a_long_list_is_not_looked_at_number_by_number():
    calls = 0

    def count(*event):
        nonlocal calls
        calls += 1

    numbers = [[0.5] * 1000 for _ in range(20)]
    sys.setprofile(count)
    try:
        ll.constant(numbers)
    finally:
        sys.setprofile(None)
    assert calls < 1000

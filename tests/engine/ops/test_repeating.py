"""Repeating to a shape without a copy."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll


def looked_at_axes(*_):
    pytest.fail("NumPy's function takes 20 times as long as a view of one number")


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("float32", (100, 100)), ("float64", (4097,)), ("float16", (3, 4)), ("bfloat16", (3, 4)), ("complex64", (3, 4))],
)
def test_the_gradient_of_a_total_is_a_view_of_one_number(dtype, shape, monkeypatch):
    x = ll.ones(shape, dtype=dtype)
    with ll.GradientTape() as tape:
        tape.watch(x)
        total = x.sum()
    monkeypatch.setattr(np, "broadcast_to", looked_at_axes)
    g = tape.gradient(total, x)
    assert g.dtype == x.dtype
    np.testing.assert_array_equal(g.numpy(), np.ones(shape))
    assert g._data.strides == (0,) * len(shape)


def test_a_whole_number_is_repeated_as_a_view(monkeypatch):
    monkeypatch.setattr(np, "broadcast_to", looked_at_axes)
    found = ll.constant(7).broadcast_to((2, 3))
    assert found.tolist() == [[7, 7, 7], [7, 7, 7]]
    assert not found.numpy().flags.writeable

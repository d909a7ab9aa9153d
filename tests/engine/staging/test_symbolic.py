"""Symbolic tensors: what code that was written for arrays of NumPy's does with them."""

import warnings

import numpy as np
import pytest

import limelight as ll
from limelight.errors import LostChangeWarning


def test_an_array_that_is_sorted_in_place_is_told_of():
    @ll.function
    def f(values):
        values.sort()
        return values

    with pytest.warns(LostChangeWarning, match=r"sort returns a tensor.*write x = x\.sort\(\)"):
        f(np.array([3.0, 1.0, 2.0]))


def test_a_result_that_is_used_is_not():
    @ll.function
    def f(values):
        return values.sort(), values.sort(descending=True)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        up, down = f(np.array([3.0, 1.0, 2.0]))
    assert (up.tolist(), down.tolist()) == ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])

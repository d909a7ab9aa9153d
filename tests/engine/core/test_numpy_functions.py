"""NumPy's functions of arrays take eager tensors, and give what they give for the arrays."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import limelight as ll

VALUES = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, 1.5], [2.5, 0.25, 6.0]], np.float32)


def _of_one_array() -> dict[str, Any]:
    """The public functions that take an array as their only necessary argument, and that NumPy dispatches."""
    chosen = {}
    for home in (np, np.linalg, np.fft):
        for name in dir(home):
            function = getattr(home, name)
            if name[0] != "_" and hasattr(function, "_implementation"):
                parameters = list(inspect.signature(function).parameters.values())
                needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
                if len(needed) == 1:
                    chosen[f"{home.__name__}.{name}"] = function
    return chosen


FUNCTIONS = _of_one_array()


@pytest.mark.parametrize("home", sorted({name.rpartition(".")[0] for name in FUNCTIONS}))
@pytest.mark.parametrize("make", [ll.constant, ll.Variable], ids=["tensor", "variable"])
def test_functions_of_one_array(home: str, make: Any) -> None:
    for name in FUNCTIONS:
        if name.rpartition(".")[0] == home:
            gives_what_it_gives_for_the_array(name, make)


def gives_what_it_gives_for_the_array(name: str, make: Any) -> None:
    function, expected, tensor = FUNCTIONS[name], None, make(VALUES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = function(VALUES)
        except Exception as error:  # noqa: BLE001  # whatever NumPy raises for the array
            with pytest.raises(type(error)):
                function(tensor)
            return
        result = function(tensor)
    assert type(result) is type(expected)
    assert repr(result) == repr(expected) or name.endswith(("empty_like", "shares_memory"))


def test_the_walk_has_the_usual_ones() -> None:
    usual = "mean sum max min std var squeeze median cumsum ptp argsort transpose prod any all round ravel sort"
    assert {f"numpy.{name}" for name in usual.split()} <= set(FUNCTIONS)


def test_axes_lists_and_keywords() -> None:
    x: Any = ll.constant(VALUES)
    assert np.array_equal(np.mean(x, axis=1, keepdims=True), VALUES.mean(1, keepdims=True))
    assert np.array_equal(np.concatenate([x, VALUES]), np.concatenate([VALUES, VALUES]))
    assert np.array_equal(np.average(x, weights=x), np.average(VALUES, weights=VALUES))
    assert np.array_equal(np.std(a=x, axis=0, ddof=1), VALUES.std(0, ddof=1))
    assert np.sum(x, dtype=np.float64).dtype == np.float64

"""Public functions of one array given numbers, lists and NumPy's values: NumPy's results, or a refusal in words."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import LimelightError

VALUES = {
    "float": 0.5,
    "int": 1,
    "bool": True,
    "complex": 0.5 + 0.25j,
    "list": [0.5, 0.25],
    "integers": [1, 1],
    "float64": np.float64(0.5),
    "int64": np.int64(1),
    "bool_": np.bool_(True),
}
OTHERS = {"empty_like", "identity"}  # whatever lies in memory; what it is given, not a matrix


def _takes_one_array(name: str) -> bool:
    function = getattr(ll, name)
    if not callable(function) or inspect.isclass(function) or not hasattr(np, name) or name in OTHERS:
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return False
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return needed in (["x"], ["a"], ["z"], ["array"], ["value"])


FUNCTIONS = [name for name in dir(ll) if not name.startswith("_") and _takes_one_array(name)]


def _outcome(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except LimelightError as error:
        return type(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_functions_take_numbers_and_lists(value):
    for name in FUNCTIONS:
        function = getattr(ll, name)
        eager, staged = _outcome(function, value), _outcome(ll.function(lambda function=function: function(value)))
        if isinstance(eager, type):
            assert staged is eager, name
            continue
        try:
            right = getattr(np, name)(value)
        except (TypeError, AttributeError):  # NumPy wants an axis or an array, or knows no such dtype
            continue
        for found in (eager, staged):
            if isinstance(found, ll.Tensor):
                np.testing.assert_allclose(found.numpy(), right, rtol=2e-6, err_msg=name)


def test_there_are_such_functions():
    assert len(FUNCTIONS) > 80
    assert {"real", "imag", "conj", "abs", "tanh", "sum"} <= {*FUNCTIONS}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "uint8", "bool"])
def test_the_imaginary_part_of_real_numbers_is_zero(dtype):
    x = ll.constant([1, 0, 1]).astype(dtype)
    for y in (ll.imag(x), ll.function(ll.imag)(x), ll.vectorize(ll.imag)(x)):
        assert y.dtype == x.dtype
        assert not y.numpy().any()
    sized = ll.function(ll.imag, input_signature=[ll.TensorSpec((None,), x.dtype)])
    assert sized(x).shape == (3,)


@pytest.mark.parametrize(("function", "slope"), [(ll.real, 1.0), (ll.imag, 0.0), (ll.conj, 1.0)])
@pytest.mark.parametrize("staged", [False, True])
def test_parts_of_a_real_number_have_gradients(function, slope, staged):
    slope_of = ll.grad(function)
    slope_of = ll.function(slope_of) if staged else slope_of
    assert slope_of(ll.constant(np.inf)).item() == slope_of(ll.constant(2.0)).item() == slope


@pytest.mark.parametrize("function", [ll.max, ll.ceil, ll.sort, ll.exp2])
def test_a_refusal_of_complex_numbers_advises_no_cast_that_drops_a_part(function):
    with pytest.raises(LimelightError, match=r"write ll.real\(\w+\), ll.imag\(\w+\) or ll.abs\(\w+\)"):
        function(ll.constant([1j]))

"""Every function and operator of the standard gives what array_api_strict gives: values, dtypes and shapes.

Where the standard leaves the default dtypes to the library, they are 64 bits wide there and 32 here.
"""

from __future__ import annotations

import inspect
import operator
import os
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from arguments import BOOL, INEXACT, INTEGER, NUMERIC, REAL, Call, same_dtype
from calls import CALLS, CREATION, UNSIGNED
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.ops._shape_rules import TOTAL

EXAMPLES = 8 if os.environ.get("LIMELIGHT_TESTS") == "full" else 3
TESTED_ELSEWHERE = {
    "__array_namespace_info__": "test_names",
    "broadcast_shapes": "here",
    "can_cast": "test_types",
    "finfo": "test_names",
    "from_dlpack": "test_exchange",
    "get_array_api_strict_flags": "their own",
    "iinfo": "test_names",
    "isdtype": "test_types",
    "reset_array_api_strict_flags": "their own",
    "result_type": "test_types",
    "set_array_api_strict_flags": "their own",
}
TOTALS = {"sum", "prod", "cumulative_sum", "cumulative_prod"}
NARROW = {"float64": "float32", "int64": "int32", "complex128": "complex64"}


def test_every_function_is_called() -> None:
    functions = {name for name in strict.__all__ if inspect.isfunction(getattr(strict, name))}
    assert functions - set(TESTED_ELSEWHERE) <= set(CALLS)


def given_to(xp: Any, value: Any) -> Any:
    """Arguments for one of the two libraries: its arrays, its dtypes."""
    if isinstance(value, np.ndarray):
        return xp.asarray(value, copy=True)
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return [given_to(xp, part) for part in value]
    return getattr(xp, value) if isinstance(value, str) and value in NARROW | dict.fromkeys(BOOL + NUMERIC) else value


def run(xp: Any, name: str, call: Call) -> list[np.ndarray[Any, Any]]:
    """The results of a function as NumPy arrays."""
    options = {key: given_to(xp, value) for key, value in call.options.items()}
    with np.errstate(all="ignore"):
        found = getattr(xp, name)(*[given_to(xp, value) for value in call.args], **options)
    return [np.asarray(part) for part in (found if isinstance(found, (tuple, list)) else (found,))]


def dtype_here(name: str, call: Call, theirs: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that limelight gives where array_api_strict gives `theirs`."""
    if name in TOTALS and "dtype" not in call.options:
        return TOTAL[call.args[0].dtype]
    made = name in CREATION and not name.endswith("_like") and "dtype" not in call.options
    return np.dtype(NARROW.get(theirs.name, theirs.name)) if made else theirs


def agree(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> None:
    assert found.dtype == dtype
    assert found.shape == wanted.shape
    fine = 1e-12 if dtype in (np.float64, np.complex128) else 2e-6
    np.testing.assert_allclose(found, wanted, rtol=fine, atol=fine)


@pytest.mark.parametrize("name", sorted(CALLS))
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_functions(name: str, data: st.DataObject) -> None:
    call = data.draw(CALLS[name])
    wanted, found = run(strict, name, call), run(ll, name, call)
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        dtype = dtype_here(name, call, theirs.dtype)
        agree(ours, ours if name.startswith("empty") else theirs, dtype)
        assert ours.shape == theirs.shape


BINARY = {
    "add": NUMERIC,
    "sub": NUMERIC,
    "mul": NUMERIC,
    "truediv": INEXACT,
    "mod": REAL,
    "pow": UNSIGNED,
    "and_": BOOL + INTEGER,
    "or_": BOOL + INTEGER,
    "xor": BOOL + INTEGER,
    "lshift": UNSIGNED,
    "rshift": UNSIGNED,
    "lt": REAL,
    "le": REAL,
    "gt": REAL,
    "ge": REAL,
    "eq": BOOL + NUMERIC,
    "ne": BOOL + NUMERIC,
}
UNARY = {"neg": NUMERIC, "pos": NUMERIC, "abs": NUMERIC, "invert": BOOL + INTEGER}


@pytest.mark.parametrize("name", [*BINARY, *UNARY])
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_operators(name: str, data: st.DataObject) -> None:
    """Between arrays, and with a Python number on either side."""
    run = getattr(operator, name)
    x, y = data.draw(same_dtype((BINARY | UNARY)[name])).args
    number = {"b": True, "i": 2, "u": 2, "f": 0.5, "c": 0.5 + 1j}[x.dtype.kind]
    forms = [(x,)] if name in UNARY else [(x, y), (x, number), (number, x)]
    for form in forms:
        with np.errstate(all="ignore"):
            theirs, ours = [run(*[given_to(xp, part) for part in form]) for xp in (strict, ll)]
        agree(ours.numpy(), np.asarray(theirs), np.asarray(theirs).dtype)


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_matrix_products(data: st.DataObject) -> None:
    call = data.draw(CALLS["matmul"])
    theirs, ours = [operator.matmul(*[given_to(xp, part) for part in call.args]) for xp in (strict, ll)]
    agree(ours.numpy(), np.asarray(theirs), np.dtype("float64"))


def test_floor_division_of_infinities_is_the_standards() -> None:
    """NumPy, and array_api_strict with it, has NaN and -1 here."""
    inf = float("inf")
    x, y = ll.asarray([inf, inf, -inf, 1.0, -1.0, inf]), ll.asarray([2.0, -2.0, 2.0, -inf, inf, inf])
    found = (x // y).numpy()
    np.testing.assert_array_equal(found, [inf, -inf, -inf, -0.0, -0.0, np.nan])
    assert np.signbit(found[3:5]).all()


def test_shapes_that_meet() -> None:
    assert ll.broadcast_shapes() == ()
    assert ll.broadcast_shapes((3, 1), 2, (1, 1, 1)) == (1, 3, 2)
    assert ll.broadcast_shapes((None, 1), (2,)) == (None, 2)
    with pytest.raises(ll.errors.ShapeError, match=r"broadcast_shapes: shapes \(2,\) and \(3,\)"):
        ll.broadcast_shapes(2, 3)


@pytest.mark.parametrize("mask", [True, False])
def test_scalar_masks_make_an_axis(mask: bool) -> None:
    x = np.arange(6.0).reshape(2, 3)
    found, wanted = ll.asarray(x)[ll.asarray(mask)], strict.asarray(x)[strict.asarray(mask)]
    agree(found.numpy(), np.asarray(wanted), x.dtype)

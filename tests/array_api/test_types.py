"""Which dtypes meet in which: the same pairs as in array_api_strict mix, to the same dtype, and the same do not."""

from __future__ import annotations

import itertools
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, DTypeError

DTYPES = list(strict.__array_namespace_info__().dtypes())
SCALARS = (True, 2, 2.5, 2 + 1j)
KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")


def tried(function: Any) -> Any:
    """What a function returns, or None where it raises a TypeError."""
    try:
        return function()
    except TypeError:
        return None


@pytest.mark.parametrize("a", DTYPES)
def test_pairs(a: str) -> None:
    for b in DTYPES:
        promote_as_theirs(a, b)


def promote_as_theirs(a: str, b: str) -> None:
    wanted = tried(lambda: strict.result_type(getattr(strict, a), getattr(strict, b)))
    found = tried(lambda: ll.result_type(getattr(ll, a), getattr(ll, b)))
    if wanted is None:
        assert found is None
        with pytest.raises(DTypeError, match=r"write ll\.astype"):
            ll.equal(ll.ones(2, dtype=a), ll.ones(2, dtype=b))
        return
    assert found == np.dtype(str(wanted).rpartition(".")[2])
    x, y = ll.ones(2, dtype=a), ll.ones((2, 1), dtype=b)
    assert ll.result_type(x, b) is ll.result_type(a, y, x) is ll.where(ll.asarray(True), x, y).dtype is found
    if a != "bool":
        assert (x + y).dtype is found
    assert ll.concat([x, y[0]]).dtype is found
    assert ll.can_cast(a, found)
    assert ll.can_cast(a, b) is (found == np.dtype(b))


@pytest.mark.parametrize(("dtype", "scalar"), list(itertools.product(DTYPES, SCALARS)))
def test_python_numbers(dtype: str, scalar: complex) -> None:
    x, y = strict.ones(2, dtype=getattr(strict, dtype)), ll.ones(2, dtype=dtype)
    for run in (lambda a: a == scalar, lambda a: a * scalar, lambda a: scalar - a):
        wanted, found = tried(lambda run=run: run(x)), tried(lambda run=run: run(y))
        assert (wanted is None) == (found is None)
        if wanted is not None:
            assert found.dtype == np.asarray(wanted).dtype
            np.testing.assert_array_equal(found.numpy(), np.asarray(wanted))
    wanted = tried(lambda: strict.result_type(x, scalar))
    found = tried(lambda: ll.result_type(y, scalar))
    assert found == (None if wanted is None else np.dtype(str(wanted).rpartition(".")[2]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_kinds(dtype: str) -> None:
    theirs, ours = getattr(strict, dtype), getattr(ll, dtype)
    for kind in (*KINDS, ("bool", "real floating")):
        assert ll.isdtype(ours, kind) is strict.isdtype(theirs, kind)
    assert ll.isdtype(ours, ours)
    assert ll.isdtype(ours, ("bool", ours))
    assert not ll.isdtype(ours, ll.float16)


def test_what_is_no_question() -> None:
    with pytest.raises(ArgumentError, match="'float' is no kind of dtype; the kinds are 'bool'"):
        ll.isdtype(ll.float32, "float")
    with pytest.raises(ArgumentError, match="needs a tensor or a dtype"):
        ll.result_type(1, 2.0)
    with pytest.raises(DTypeError, match=r"write ll\.astype"):
        ll.result_type(ll.int32, 2.5)


def test_floats_of_16_bits_have_limits() -> None:
    assert ll.finfo(ll.float16).max == 65504.0
    assert ll.finfo(ll.bfloat16).bits == 16
    assert ll.isdtype(ll.bfloat16, "real floating")


def test_real_and_complex_operands_have_gradients() -> None:
    """The real operand's gradient is real: that of Re(sum(x z)) by x is Re(z)."""
    x, z = ll.asarray([1.0, 2.0]), ll.asarray([3 + 4j, 5 - 6j])
    for run in (lambda x, z: ll.sum(ll.real(x * z)), ll.function(lambda x, z: ll.sum(ll.real(x * z)))):
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = run(x, z)
        found = tape.gradient(y, x)
        assert found.dtype is ll.float32
        assert found.tolist() == [3.0, 5.0]

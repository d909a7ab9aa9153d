"""Python values as NumPy arrays, with limelight's default dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dtypes
from limelight.core.dtypes import DType, DTypeLike
from limelight.errors import DTypeError, ShapeError

_NO_NUMBER: Final = (
    "cannot make a tensor of None: it is no number; if it is a size of x.shape, unknown while tracing, write "
    "ll.shape_of(x)[0], or x.sizes()[0]"
)


_NUMBERS: Final = {bool, int, float, complex}


def as_array(value: Any, dtype: DTypeLike | None = None) -> np.ndarray[Any, Any]:
    """A fresh NumPy array from Python numbers, nested lists or arrays, with limelight's default dtypes.

    Python floats become float32 and ints int32 (int64 beyond 32 bits); arrays and NumPy scalars keep their dtype.
    """
    if isinstance(value, (list, tuple)):
        _refuse_tensors_inside(value)
    keeps = isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__") or hasattr(value, "dtype")
    try:
        array = np.array(value)
    except ValueError as error:
        raise ShapeError(f"a tensor must be rectangular: {error}") from None
    if array.dtype.kind == "O" and _has_none(value):
        raise DTypeError(_NO_NUMBER)
    if array.dtype.kind in "OSUMm":
        raise DTypeError(f"cannot make a tensor of {array.dtype} values; give booleans, or numbers of at most 64 bits")
    wanted = dtypes.dtype(dtype) if dtype is not None else dtypes.dtype(array.dtype) if keeps else _default(array)
    _check_conversion(array, wanted)
    return array.astype(wanted, copy=False)


def _default(array: np.ndarray[Any, Any]) -> DType:
    if array.size == 0 or array.dtype.kind == "f":
        return dtypes.float32
    if array.dtype.kind in "iu":
        fits = array.dtype != np.uint64 and -(2**31) <= array.min() and array.max() < 2**31
        return dtypes.int32 if fits else dtypes.dtype(array.dtype)
    return dtypes.complex64 if array.dtype.kind == "c" else dtypes.bool_


def _check_conversion(array: np.ndarray[Any, Any], wanted: DType) -> None:
    if array.size and not dtypes.holds(wanted, dtypes.dtype(array.dtype)):
        raise DTypeError(f"{array.dtype} values would lose information as {wanted.name}; convert them explicitly first")
    if array.size and dtypes.kind(wanted) == "integer" and array.dtype.kind in "iu":
        low, high = int(array.min()), int(array.max())
        outside = [n for n in (low, high) if not dtypes.in_range(n, wanted)]
        if outside:
            raise DTypeError(f"{outside[0]} does not fit into {wanted.name}; give a wider dtype, such as ll.int64")


def _has_none(value: Any) -> bool:
    return value is None or (isinstance(value, (list, tuple)) and any(map(_has_none, value)))


def _refuse_tensors_inside(value: Sequence[Any]) -> None:
    if not set(map(type, value)) - _NUMBERS:  # in C: a look at each of a million numbers takes longer than all else
        return
    for item in value:
        if hasattr(item, "_uid"):
            raise DTypeError("a list that holds tensors: write ll.stack([...]) to join them into one tensor")
        if isinstance(item, (list, tuple)):
            _refuse_tensors_inside(item)

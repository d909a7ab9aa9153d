"""What gradient rules share: pieces of formulas over tensors, Python numbers, and shapes known or unknown."""

from __future__ import annotations

from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from limelight.core import shapes
from limelight.core.dtypes import DType, float32
from limelight.core.tensor import Tensor, constant
from limelight.ops._shape_rules import Axis


def conj(x: Any) -> Any:
    """The complex conjugate of a saved operand, which may be a Python scalar; free for real dtypes."""
    if type(x) is Tensor and x._data.dtype is float32:  # most are
        return x
    return x.conj() if isinstance(x, Tensor) else x.conjugate()


def finite(x: Tensor) -> Tensor:
    """`x` with the largest numbers for infinities: a slope flat there has derivatives of 0, not of 0 times inf."""
    limits: Any = ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call]  # the library has no annotations here
    largest = float(limits.max)
    return x.clip(-largest, largest)


def rank(shape: Any) -> int:
    """The number of axes in a saved shape: a tuple, or a symbolic vector."""
    n_axes: int = len(shape) if isinstance(shape, tuple) else shape.shape[0]
    return n_axes


def restore(g: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    """A reduction's gradient or result with the reduced axes back, of size 1, so that it broadcasts to the input."""
    return g if keepdims or axis is None else g.expand_dims(axis)


def count(shape: Any, axis: Axis, dtype: DType) -> Any:
    """How many elements of `shape` one element of a reduction over `axis` stands for: an int, or a scalar tensor."""
    over = shapes.axes("reduction", rank(shape), axis)
    if isinstance(shape, tuple):
        return prod(shape[i] for i in over)
    return shape[list(over)].prod().astype(dtype)


def zeros(dtype: DType, shape: Any) -> Tensor:
    """Zeros of a shape that may be a symbolic vector."""
    return constant(np.zeros((), dtype)).broadcast_to(shape)


def others_product(x: Tensor, n: int) -> Tensor:
    """For each element along the last axis, of size `n` of at least 2, the product of all the others.

    No division, so it is right (as are its own derivatives) where elements are zero. Products of 1, 2, 4, ...
    neighbours in a ring are combined as the binary digits of n - 1 say: about 2 log n multiplications.
    """
    result: Tensor | None = None
    window, width, offset, left = x, 1, 1, n - 1
    while left:
        if left & 1:
            part = _rolled(window, offset, n)
            result = part if result is None else result * part
            offset += width
        left >>= 1
        if left:
            window = window * _rolled(window, width, n)
            width *= 2
    assert result is not None, "there are others only where n is 2 at least"
    return result


def _rolled(x: Tensor, shift: int, n: int) -> Tensor:
    return x[..., (np.arange(n) + shift) % n]

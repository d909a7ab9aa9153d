"""What kernels share: NumPy's reductions called directly, sums in any library, 16-bit floats computed in 32 bits.

A kernel is written once over `xp`, the array library of its operands; `special={"numpy": ...}` beside it exists for
speed alone, and the tests run both. NumPy kernels call `ufunc.reduce` themselves, as (array, axis, dtype, out,
keepdims, initial): np.sum and its kin look for other libraries' arrays first, which takes three times as long on small
arrays, and warn from a module of their own, where limelight's filter does not reach.

float16 and bfloat16 are summed, multiplied as matrices and put through softmax in float32, and rounded once: in 16 bits
the partial sums would lose too much.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.backends import is_cupy
from limelight.ops._gpu_reductions import reduced
from limelight.ops._shape_rules import SHORT, Axis

add_reduce: Final[Any] = np.add.reduce
multiply_reduce: Final[Any] = np.multiply.reduce
maximum_reduce: Final[Any] = np.maximum.reduce
minimum_reduce: Final[Any] = np.minimum.reduce
or_reduce: Final[Any] = np.logical_or.reduce
and_reduce: Final[Any] = np.logical_and.reduce

QUICK: Final = frozenset([dtypes.float32, dtypes.float64])
"""Where the product of few numbers with ones is their sum in a third of the time."""
MOST_SUMMED: Final = 4096
"""So few; more are left to NumPy, which adds in pairs and is as fast there."""


@functools.lru_cache(maxsize=1024)
def ones(size: int | tuple[int, ...], dtype: Any) -> Any:
    """A vector or matrix of ones, which nobody writes to."""
    return np.ones(size, dtype)


def sum_by_ones(x: Any, axis: int, keepdims: bool) -> Any:
    """The sum over one axis of a matrix, as a plan computes it: the order of the additions says what overflows."""
    n = x.shape[axis]
    if axis == 0:
        return ones((1, n) if keepdims else n, x.dtype).dot(x)
    return x.dot(ones((n, 1) if keepdims else n, x.dtype))


def sum_over(xp: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    """The sum over axes in the dtype of `x`, by the fastest way that the library has.

    Args:
        xp: the array library of `x`.
        x: an array.
        axis: an axis, several, or None for all.
        keepdims: whether these axes stay in place with size 1.

    Returns:
        An array, or NumPy's scalar where nothing is left.
    """
    return add_reduce(x, axis, None, None, keepdims) if xp is np else reduced(xp, "sum", x, axis, keepdims)


def largest_over(xp: Any, x: Any, axis: Axis) -> Any:
    """The largest floats along axes, which stay in place with size 1; -inf where there is none."""
    if not is_cupy(xp):
        return xp.max(x, axis=axis, keepdims=True, initial=-xp.inf)
    if x.size:  # CuPy's function takes no `initial`
        return reduced(xp, "max", x, axis, True)
    return xp.full(shapes.reduce(x.shape, shapes.axes("max", x.ndim, axis), True), -xp.inf, x.dtype)


def stable_argsort(xp: Any, x: Any, axis: int = -1) -> Any:
    """The places that sort `x`, those of equal elements in order: CuPy knows no other way, nor the word for it."""
    return xp.argsort(x, axis=axis) if is_cupy(xp) else xp.argsort(x, axis=axis, stable=True)


def wide(x: Any) -> Any:
    """`x`, in float32 where it has 16-bit floats."""
    return x.astype(dtypes.float32) if x.dtype in SHORT else x

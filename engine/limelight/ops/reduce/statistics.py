"""Means and deviations: `mean`, `var`, `std`. The gradient of `std` is 0 where all elements are equal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.dtypes import DType
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import ArgumentError
from limelight.ops._gradient_terms import count, restore
from limelight.ops._kernel_parts import add_reduce, sum_over, wide
from limelight.ops._shape_rules import SHORT, Axis, axis_attr, own_dtype, real_dtype, reduction

__all__ = ["mean", "std", "var"]


def _reduced_size(x: Any, axis: Axis) -> Any:
    """How many elements become one; a symbol where JAX traces for unknown sizes."""
    if axis is None:
        return x.size
    return math.prod([x.shape[i] for i in (axis if type(axis) is tuple else (axis,))])


# mean


def _mean_numpy(xp: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    dtype = x.dtype
    if dtype in SHORT:
        return (add_reduce(x, axis, dtypes.float32, None, keepdims) / _reduced_size(x, axis)).astype(dtype)
    return np.true_divide(add_reduce(x, axis, None, None, keepdims), _reduced_size(x, axis))


def _mean_cupy(xp: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    n = math.prod([x.shape[i] for i in shapes.axes("mean", x.ndim, axis)])
    return (sum_over(xp, wide(x), axis, keepdims) / n).astype(x.dtype, copy=False)


def _mean_gradient(g: Tensor, x_shape: Any, x_dtype: DType, axis: Axis, keepdims: bool) -> Tensor:
    each: Tensor = restore(g, axis, keepdims) / count(x_shape, axis, x_dtype)
    return each.broadcast_to(x_shape)


_mean = entry_point(defop(
    "mean",
    inputs="x",
    attrs="axis keepdims",
    infer=reduction("mean", own_dtype),
    kernel=lambda xp, x, axis, keepdims: xp.mean(x, axis=axis, keepdims=keepdims),
    special={"numpy": _mean_numpy, "cupy": _mean_cupy},
    accepts="inexact",
    integers=dtypes.float32,
    vjp={"x": _mean_gradient},
    linear="x",
    maths={"x": "x̄ = ȳ / n, repeated along the reduced axes"},
    fresh=True,
))  # fmt: skip


@method("mean")
def mean(x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean over `axis` (an axis, several, or None for all); NaN of no elements.

    Floating or complex; the mean of integers and booleans is float32.

    >>> import limelight as ll
    >>> ll.mean(ll.constant([[1.0, 2.0], [3.0, 4.0]]), axis=0).tolist()
    [2.0, 3.0]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("mean", "keepdims", keepdims)
    return _mean(x, axis_attr(axis), keepdims)


# var and std


def _var_kernel(xp: Any, x: Any, axis: Axis, keepdims: bool, correction: float) -> Any:
    wide = x.astype(dtypes.float32) if x.dtype in SHORT else x
    n = _reduced_size(x, axis)
    apart = wide - sum_over(xp, wide, axis, True) / n
    squares = sum_over(xp, apart * apart if x.dtype.kind != "c" else (apart * apart.conj()).real, axis, keepdims)
    free = max(n - correction, 0) if isinstance(n, int) else xp.maximum(xp.asarray(n - correction, squares.dtype), 0)
    return (squares / free).astype(real_dtype(x.dtype))


def _var_gradient(
    g: Tensor, x: Tensor, x_shape: Any, x_dtype: DType, axis: Axis, keepdims: bool, correction: float
) -> Tensor:
    n = count(x_shape, axis, x_dtype) - correction
    scale = 2.0 / n if isinstance(n, Tensor) or n > 0 else math.nan
    return restore(g, axis, keepdims) * scale * (x - x.mean(axis, True))


_var = entry_point(defop(
    "var",
    inputs="x",
    attrs="axis keepdims correction",
    infer=reduction("var", real_dtype),
    kernel=_var_kernel,
    accepts="inexact",
    vjp={"x": _var_gradient},
    maths={"x": "x̄ = 2 ȳ (x - mean) / (n - correction)"},
    fresh=True,
))  # fmt: skip


@method("var")
def var(
    x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, correction: float = 0.0
) -> Tensor:
    """The variance over `axis`: the sum of squared distances from the mean over `n - correction`.

    Args:
        x: floating or complex; integers and booleans have float32 variances.
        axis: an axis, several, or None (the default) for all.
        keepdims: whether these axes stay in place with size 1. False.
        correction: a number; 0 by default, 1 for the unbiased estimate from a sample.

    Returns:
        The variances, in the shape of `x` without the axes, and in its dtype; of complex `x` real ones.

    Raises:
        ArgumentError: `correction` is no number.

    >>> import limelight as ll
    >>> ll.var(ll.constant([1.0, 3.0])).item()
    1.0
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("var", "keepdims", keepdims)
    if not isinstance(correction, (int, float, np.integer, np.floating)):
        raise ArgumentError(f"var: correction must be a number, got {correction!r} ({type(correction).__name__})")
    if not isinstance(x, Tensor):
        x = as_tensor(x)
    if x.dtype.kind in "biu":  # float32 would lose the differences of large integers
        return _var(x.astype(dtypes.float64), axis_attr(axis), keepdims, correction).astype(dtypes.float32)
    return _var(x, axis_attr(axis), keepdims, correction)


@method("std")
def std(
    x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, correction: float = 0.0
) -> Tensor:
    """The standard deviation over `axis`, the square root of `var`.

    Args:
        x: as of `var`.
        axis: an axis, several, or None (the default) for all.
        keepdims: whether these axes stay in place with size 1. False.
        correction: a number; 0 by default, 1 for the estimate from a sample.

    Returns:
        The deviations, in the shape of `x` without the axes, and in the dtype of `var`. The gradient is 0 where all
        elements are equal.

    >>> import limelight as ll
    >>> ll.std(ll.constant([1.0, 3.0])).item()
    1.0
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("std", "keepdims", keepdims)
    variance = var(x, axis, keepdims, correction=correction)
    equal = variance == 0
    return equal.where(0.0, equal.where(1.0, variance).sqrt())

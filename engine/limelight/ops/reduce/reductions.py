"""Reductions over axes: `sum`, `prod`, `max`, `min`, `argmax`, `argmin`, `any`, `all`, `count_nonzero`.

Equal extremes share the gradient. `prod` pulls back through products of the other elements, not by a division, so that
zeros are right to any order of derivative: by doubling where the number of elements is known (2 log n multiplications),
else by running products from both ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.dtypes import DTypeLike
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.ops._gpu_reductions import reduced
from limelight.ops._gradient_terms import others_product, restore
from limelight.ops._kernel_parts import (
    MOST_SUMMED,
    QUICK,
    add_reduce,
    and_reduce,
    maximum_reduce,
    minimum_reduce,
    multiply_reduce,
    ones,
    or_reduce,
    sum_by_ones,
)
from limelight.ops._shape_rules import SHORT, TOTAL, Axis, axis_attr, own_dtype, reduction

__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "max", "min", "prod", "sum"]

# sum


def _sum_numpy(xp: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    dtype = x.dtype
    if dtype in QUICK and 1 < x.size <= MOST_SUMMED and x.ndim <= 2 and not keepdims and axis != ():
        if axis is None:
            return x.ravel().dot(ones(x.size, dtype))
        over, rank = axis if type(axis) is tuple else (axis,), x.ndim
        places = {one % rank for one in over if -rank <= one < rank}
        if len(places) == len(over):  # else NumPy refuses them
            return x.ravel().dot(ones(x.size, dtype)) if len(places) == rank else sum_by_ones(x, places.pop(), False)
    if dtype in SHORT:
        return add_reduce(x, axis, dtypes.float32, None, keepdims).astype(dtype)
    return add_reduce(x, axis, TOTAL[dtype], None, keepdims)


_sum = entry_point(defop(
    "sum",
    inputs="x",
    attrs="axis keepdims",
    infer=reduction("sum", TOTAL.__getitem__),
    kernel=lambda xp, x, axis, keepdims: reduced(xp, "sum", x, axis, keepdims, dtype=TOTAL[x.dtype]),
    special={"numpy": _sum_numpy},
    accepts="numeric",
    vjp={"x": lambda g, x_shape, axis, keepdims: restore(g, axis, keepdims).broadcast_to(x_shape)},
    linear="x",
    maths={"x": "x̄ = ȳ repeated along the summed axes"},
))  # fmt: skip


@method("sum")
def sum(
    x: TensorLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The sum over `axis`.

    Args:
        x: numeric. Integers are summed in at least 32 bits.
        axis: an axis, several, or None (the default) for all.
        keepdims: whether the summed axes stay in place with size 1. False.
        dtype: what elements are converted to first, and the dtype of the sum.

    Returns:
        The sums, in the shape of `x` without the axes.

    Raises:
        ArgumentError: an axis does not exist.

    >>> import limelight as ll
    >>> ll.sum(ll.constant([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("sum", "keepdims", keepdims)
    if dtype is None:
        return _sum(x, axis_attr(axis), keepdims)
    return _sum(as_tensor(x).astype(dtype), axis_attr(axis), keepdims).astype(dtype)


# prod


def _prod_numpy(xp: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    dtype = x.dtype
    if dtype in SHORT:
        return multiply_reduce(x, axis, dtypes.float32, None, keepdims).astype(dtype)
    return multiply_reduce(x, axis, TOTAL[dtype], None, keepdims)


def _others_of_any_number(x: Tensor, over: tuple[int, ...]) -> Tensor:
    """For each element the product of all others over the axes: of those before it and of those after it."""
    axis, *rest = over
    others: Tensor = x.cumprod(axis, exclusive=True) * x.cumprod(axis, reverse=True, exclusive=True)
    return others * _others_of_any_number(x.prod(axis, True), tuple(rest)) if rest else others


def _prod_gradient(g: Tensor, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    """The gradient times the product of the others, never by division: so second derivatives are right at zeros too."""
    g, shape = restore(g, axis, keepdims), x.shape
    over = shapes.axes("prod", len(shape), axis)
    n = shapes.size([shape[i] for i in over])
    if n is None:
        return g * _others_of_any_number(x, over).conj()
    if n <= 1:
        return g.broadcast_to(x.sizes())
    kept = [i for i in range(len(shape)) if i not in over]
    order = (*kept, *over)
    moved = x.transpose(order)
    others = others_product(moved.reshape((-1, n)), n).reshape(moved.sizes())
    return g * others.transpose([order.index(i) for i in range(len(shape))]).conj()


_prod = entry_point(defop(
    "prod",
    inputs="x",
    attrs="axis keepdims",
    infer=reduction("prod", TOTAL.__getitem__),
    kernel=lambda xp, x, axis, keepdims: reduced(xp, "prod", x, axis, keepdims, dtype=TOTAL[x.dtype]),
    special={"numpy": _prod_numpy},
    accepts="numeric",
    vjp={"x": _prod_gradient},
    maths={"x": "x̄ᵢ = ȳ Π of the others*"},
))  # fmt: skip


@method("prod")
def prod(
    x: TensorLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The product over `axis`.

    Args:
        x: numeric. Integers are multiplied in at least 32 bits.
        axis: an axis, several, or None (the default) for all.
        keepdims: whether these axes stay in place with size 1. False.
        dtype: what elements are converted to first, and the dtype of the product.

    Returns:
        The products, in the shape of `x` without the axes. The gradient is right where elements are zero, too.

    >>> import limelight as ll
    >>> ll.prod(ll.constant([[1, 2], [3, 4]]), axis=1).tolist()
    [2, 12]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("prod", "keepdims", keepdims)
    if dtype is None:
        return _prod(x, axis_attr(axis), keepdims)
    return _prod(as_tensor(x).astype(dtype), axis_attr(axis), keepdims).astype(dtype)


# max and min


def _extreme_gradient(g: Tensor, x: Tensor, out: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    """The gradient where the extreme is taken; equal ones share it."""
    taken = (x == restore(out, axis, keepdims)).astype(x.dtype)
    return restore(g, axis, keepdims) / taken.sum(axis, True) * taken


_max = entry_point(defop(
    "max",
    inputs="x",
    attrs="axis keepdims",
    infer=reduction("max", own_dtype, empty=False),
    kernel=lambda xp, x, axis, keepdims: reduced(xp, "max", x, axis, keepdims),
    special={"numpy": lambda xp, x, axis, keepdims: maximum_reduce(x, axis, None, None, keepdims)},
    accepts="real",
    vjp={"x": _extreme_gradient},
    maths={"x": "x̄ = ȳ where x is the largest"},
))  # fmt: skip


@method("max")
def max(x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The largest element over `axis` (an axis, several, or None for all); real. NaN where any is NaN.

    Equal largest elements share the gradient. Raises ShapeError where there are no elements.

    >>> import limelight as ll
    >>> ll.max(ll.constant([[1, 2], [3, 4]]), axis=-1).tolist()
    [2, 4]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("max", "keepdims", keepdims)
    return _max(x, axis_attr(axis), keepdims)


_min = entry_point(defop(
    "min",
    inputs="x",
    attrs="axis keepdims",
    infer=reduction("min", own_dtype, empty=False),
    kernel=lambda xp, x, axis, keepdims: reduced(xp, "min", x, axis, keepdims),
    special={"numpy": lambda xp, x, axis, keepdims: minimum_reduce(x, axis, None, None, keepdims)},
    accepts="real",
    vjp={"x": _extreme_gradient},
    maths={"x": "x̄ = ȳ where x is the smallest"},
))  # fmt: skip


@method("min")
def min(x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The smallest element over `axis` (an axis, several, or None for all); real. NaN where any is NaN.

    Equal smallest elements share the gradient. Raises ShapeError where there are no elements.

    >>> import limelight as ll
    >>> ll.min(ll.constant([[1, 2], [3, 4]]), axis=-1).tolist()
    [1, 3]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("min", "keepdims", keepdims)
    return _min(x, axis_attr(axis), keepdims)


# any and all

_any = entry_point(defop(
    "any",
    inputs="x",
    attrs="axis keepdims",
    infer=reduction("any", lambda dtype: dtypes.bool_),
    kernel=lambda xp, x, axis, keepdims: reduced(xp, "any", x, axis, keepdims),
    special={"numpy": lambda xp, x, axis, keepdims: or_reduce(x, axis, None, None, keepdims)},
    why_no_gradient="its result is boolean",
))  # fmt: skip


@method("any")
def any(x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """Whether any element over `axis` (an axis, several, or None for all) is true, or not zero. False of none.

    >>> import limelight as ll
    >>> ll.any(ll.constant([False, True])).item()
    True
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("any", "keepdims", keepdims)
    return _any(x, axis_attr(axis), keepdims)


_all = entry_point(defop(
    "all",
    inputs="x",
    attrs="axis keepdims",
    infer=reduction("all", lambda dtype: dtypes.bool_),
    kernel=lambda xp, x, axis, keepdims: reduced(xp, "all", x, axis, keepdims),
    special={"numpy": lambda xp, x, axis, keepdims: and_reduce(x, axis, None, None, keepdims)},
    why_no_gradient="its result is boolean",
))  # fmt: skip


@method("all")
def all(x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """Whether all elements over `axis` (an axis, several, or None for all) are true, or not zero. True of none.

    >>> import limelight as ll
    >>> ll.all(ll.constant([False, True])).item()
    False
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("all", "keepdims", keepdims)
    return _all(x, axis_attr(axis), keepdims)


# count_nonzero


def _count_numpy(xp: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    if axis is None and not keepdims:
        return np.int64(np.count_nonzero(x))
    return np.count_nonzero(x, axis=axis, keepdims=keepdims).astype(np.int64)


_count_nonzero = entry_point(defop(
    "count_nonzero",
    inputs="x",
    attrs="axis keepdims",
    infer=reduction("count_nonzero", lambda dtype: dtypes.int64),
    kernel=lambda xp, x, axis, keepdims: reduced(xp, "sum", x != 0, axis, keepdims, dtype=np.int64),
    special={"numpy": _count_numpy},
    why_no_gradient="it is constant between jumps",
))  # fmt: skip


def count_nonzero(x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """How many elements over `axis` (an axis, several, or None for all) are true, or not zero; int64. NaN counts.

    >>> import limelight as ll
    >>> ll.count_nonzero(ll.constant([[0, 5], [7, 1]]), axis=1).tolist()
    [1, 2]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("count_nonzero", "keepdims", keepdims)
    return _count_nonzero(x, axis_attr(axis), keepdims)


# argmax and argmin


def _arg_infer(name: str) -> Any:
    def infer(x: TensorSpec, axis: int | None, keepdims: bool) -> TensorSpec:
        return known(reduction(name, own_dtype, empty=False)(x, axis, keepdims).shape, dtypes.int64)

    return infer


_argmax = entry_point(defop(
    "argmax",
    inputs="x",
    attrs="axis keepdims",
    infer=_arg_infer("argmax"),
    kernel=lambda xp, x, axis, keepdims: x.argmax(axis, keepdims=keepdims),
    accepts="real",
    why_no_gradient="its result is an index",
    batching="argmax",
))  # fmt: skip


@method("argmax")
def argmax(x: TensorLike, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element along `axis` is, the first of equal ones; int64. None: in the flattened tensor.

    >>> import limelight as ll
    >>> ll.argmax(ll.constant([[1, 3], [4, 2]]), axis=1).tolist()
    [1, 0]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("argmax", "keepdims", keepdims)
    return _argmax(x, axis if axis is None else shapes.whole("argmax", "axis", axis), keepdims)


_argmin = entry_point(defop(
    "argmin",
    inputs="x",
    attrs="axis keepdims",
    infer=_arg_infer("argmin"),
    kernel=lambda xp, x, axis, keepdims: x.argmin(axis, keepdims=keepdims),
    accepts="real",
    why_no_gradient="its result is an index",
    batching="argmax",
))  # fmt: skip


@method("argmin")
def argmin(x: TensorLike, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element along `axis` is, the first of equal ones; int64. None: in the flattened tensor.

    >>> import limelight as ll
    >>> ll.argmin(ll.constant([[1, 3], [4, 2]]), axis=1).tolist()
    [0, 1]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("argmin", "keepdims", keepdims)
    return _argmin(x, axis if axis is None else shapes.whole("argmin", "axis", axis), keepdims)

"""Sorting along an axis: `argsort`, `sort`; and `searchsorted`, places in a sorted vector."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._kernel_parts import stable_argsort
from limelight.ops._shape_rules import SHORT
from limelight.user_code.dropped_result import warn_if_dropped

__all__ = ["argsort", "searchsorted", "sort"]

_MUCH = 256

# argsort


def _argsort_kernel(xp: Any, x: Any, axis: int, descending: bool) -> Any:
    """Stable in both directions: descending, the places of the reversed array are counted from its end."""
    if x.dtype in SHORT:
        x = x.astype(dtypes.float32)
    if not descending:
        return _stable_argsort(xp, x, axis)
    backwards = (slice(None),) * axis + (slice(None, None, -1),)
    return (x.shape[axis] - 1 - _stable_argsort(xp, x[backwards], axis))[backwards]


def _stable_argsort(xp: Any, x: Any, axis: int) -> Any:
    """The places that sort `x`, those of equal elements in order.

    NumPy has vector instructions for the sorts that are not stable only: where there is much to sort these are used,
    and then the places of equal elements put in order. Narrow integers have a radix sort, which is quicker still.
    """
    if type(x) is not np.ndarray or x.shape[axis] < _MUCH or x.dtype.itemsize < 4:
        return stable_argsort(xp, x, axis)
    x = np.moveaxis(x, axis, -1)
    places = np.argsort(x, axis=-1)
    ordered = np.take_along_axis(x, places, -1)
    same = ordered[..., 1:] == ordered[..., :-1]
    if x.dtype.kind == "f":
        same |= ordered[..., :-1] != ordered[..., :-1]  # NaN, and so are all that follow
    if same.any():
        _put_in_order(places, same)
    return np.moveaxis(places, -1, axis)


def _put_in_order(places: Any, same: Any) -> None:
    """Sorts `places` where elements are the `same` as the next, by one sort of (which group, which place)."""
    first = np.ones(places.shape, bool)
    first[..., 1:] = ~same
    several = ~first
    several[..., :-1] |= same
    group = np.cumsum(first)[several.ravel()] * places.shape[-1]
    keys = group + places[several]
    keys.sort()
    places[several] = keys - group


_argsort: EntryPoint = entry_point(defop(
    "argsort",
    inputs="x",
    attrs="axis descending",
    infer=lambda x, axis, descending: known(x.shape, dtypes.int64),
    kernel=_argsort_kernel,
    accepts="real",
    why_no_gradient="its result is an index",
    batching="along_axis",
))  # fmt: skip


@method("argsort")
def argsort(x: TensorLike, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices of the elements of `x` along `axis` in the order that sorts them.

    Args:
        x: real, any shape but that of a scalar.
        axis: the axis along which is sorted; the last by default.
        descending: whether the largest comes first. False.
        stable: makes no difference: equal elements stay in their order in any case.

    Returns:
        int64, of the shape of `x`. NaN comes after all numbers (descending: before).

    >>> import limelight as ll
    >>> ll.argsort(ll.constant([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    if type(descending) is not bool:
        descending = shapes.flag("argsort", "descending", descending)
    if type(stable) is not bool:
        stable = shapes.flag("argsort", "stable", stable)
    x = as_tensor(x)
    return _argsort(x, _axis_to_sort("argsort", x, axis), descending)


def _axis_to_sort(name: str, x: Tensor, axis: int) -> int:
    return shapes.one_axis(name, x.ndim, axis)


# sort


def _sort_kernel(xp: Any, x: Any, axis: int, descending: bool) -> Any:
    ordered = (
        xp.sort(x.astype(dtypes.float32), axis=axis).astype(x.dtype) if x.dtype in SHORT else xp.sort(x, axis=axis)
    )
    return ordered[(slice(None),) * axis + (slice(None, None, -1),)] if descending else ordered


def _sort_gradient(g: Tensor, x: Tensor, axis: int, descending: bool) -> Tensor:
    """Each element's gradient stands where sorting has put it."""
    places = _argsort(_argsort(x, axis, descending), axis, False)
    return _reorder((g, places), axis)


_sort: EntryPoint = entry_point(defop(
    "sort",
    inputs="x",
    attrs="axis descending",
    infer=lambda x, axis, descending: known(x.shape, x.dtype),
    kernel=_sort_kernel,
    accepts="real",
    vjp={"x": _sort_gradient},
    maths={"x": "x̄ = ȳ in the order that x had"},
    batching="along_axis",
))  # fmt: skip


def sort(x: TensorLike, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements of `x` along `axis` from the smallest to the largest, or the other way.

    Args:
        x: real, any shape but that of a scalar.
        axis: the axis along which is sorted; the last by default.
        descending: whether the largest comes first. False.
        stable: makes no difference: the order of equal elements is kept in any case; it shows in gradients only.

    Returns:
        A tensor of the shape and dtype of `x`. NaN comes after all numbers (descending: before). Where a line drops
        what the method returns, as NumPy's `x.sort()` may, that warns (LostChangeWarning).

    >>> import limelight as ll
    >>> ll.sort(ll.constant([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    if type(descending) is not bool:
        descending = shapes.flag("sort", "descending", descending)
    if type(stable) is not bool:
        stable = shapes.flag("sort", "stable", stable)
    x = as_tensor(x)
    return _sort(x, _axis_to_sort("sort", x, axis), descending)


@method("sort")
@functools.wraps(sort)
def _sort_of(x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    out = sort(x, axis, descending=descending, stable=stable)
    warn_if_dropped("sort returns a tensor, and this one stays as it is", "x = x.sort()")  # NumPy's is in place
    return out


# reorder

_reorder: EntryPoint = entry_point(defop(
    "reorder",
    inputs="x order:integer",
    attrs="axis",
    infer=lambda x, order, axis: known(x.shape, x.dtype),
    kernel=lambda xp, x, order, axis: xp.take_along_axis(x, order, axis),
    vjp={"x": lambda g, order, axis: _reorder((g, _argsort(order, axis, False)), axis)},
    linear="x",
    maths={"x": "x̄ = ȳ put back in order"},
    batching="operands_along_axis",
))  # fmt: skip
# `order` holds each place along the axis once, so its inverse is a reordering, too.

# searchsorted


def _searchsorted_infer(x: TensorSpec, values: TensorSpec, side: str) -> TensorSpec:
    if x.rank != 1:
        raise ShapeError(f"searchsorted: {x} must be a sorted vector; reshape it to (-1,), or search row by row")
    return known(values.shape, dtypes.int64)


_searchsorted = entry_point(defop(
    "searchsorted",
    inputs="x values",
    attrs="side",
    infer=_searchsorted_infer,
    kernel=lambda xp, x, values, side: xp.searchsorted(x, values, side=side).astype(np.int64),
    accepts="real",
    why_no_gradient="its result is an index",
    batching="searchsorted",
))  # fmt: skip


def searchsorted(x1: TensorLike, x2: TensorLike, /, side: str = "left", sorter: TensorLike | None = None) -> Tensor:
    """The positions at which the elements of `x2` would have to be inserted into the sorted vector `x1`.

    Args:
        x1: a sorted vector, real.
        x2: real, any shape.
        side: "left" (the default): before elements that are equal; "right": after them.
        sorter: the indices that sort `x1` (see `argsort`) where it is not sorted itself.

    Returns:
        int64, of the shape of `x2`.

    Raises:
        ArgumentError: there is no such side.
        ShapeError: `x1` is no vector.

    >>> import limelight as ll
    >>> ll.searchsorted(ll.constant([1, 3, 5]), ll.constant([3, 4])).tolist()
    [1, 2]
    """
    if side not in ("left", "right"):
        raise ArgumentError(f'searchsorted: side must be "left" or "right", got {side!r}')
    x1 = as_tensor(x1)
    if sorter is not None:
        x1 = x1[as_tensor(sorter)]
    return _searchsorted((x1, x2), side)

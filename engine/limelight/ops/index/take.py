"""Slices picked along one axis by index: `take`, also called `gather`; and its transpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core import shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.index_expression import signed_places
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError
from limelight.ops._given_shape import defop_with_shape
from limelight.ops.index._scatter_add import add_rows, checked_places

__all__ = ["gather", "take"]

# take


def _take_infer(x: TensorSpec, indices: TensorSpec, axis: int) -> TensorSpec:
    return known((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)


def _take_kernel(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    if xp is not np:
        return xp.take(x, checked_places(indices, x.shape[axis], axis), axis)
    try:
        return x.take(signed_places(indices), axis)
    except IndexError:
        checked_places(indices, x.shape[axis], axis)
        raise


_take = entry_point(defop(
    "take",
    inputs="x indices:integer",
    attrs="axis",
    infer=_take_infer,
    kernel=_take_kernel,
    vjp={"x": lambda g, indices, x_shape, axis: _take_scatter((g, indices), x_shape, axis)},
    linear="x",
    maths={"x": "x̄[indices] += ȳ"},
    batching="take",
))  # fmt: skip


def take(x: TensorLike, /, indices: TensorLike, axis: int = 0) -> Tensor:
    """The slices of `x` at `indices` along `axis`. `ll.take` and `ll.gather` are one function.

    Indices may repeat: their gradients add up.
    Shapes (a, n, b) and (i, j) with axis 1 give (a, i, j, b). Negative indices count from the end.
    Raises OutOfBoundsError for one that is beyond it: it names the index, its position, and the size (JAX gives NaN,
    and TensorFlow on a GPU 0); ArgumentError for an axis that is a tensor with axes, as where the axis came second.

    >>> import limelight as ll
    >>> ll.take(ll.constant([10, 20, 30]), ll.constant([2, 0])).tolist()
    [30, 10]
    """
    x = as_tensor(x)
    if isinstance(axis, Tensor) and axis.ndim:
        raise ArgumentError(
            "gather: the indices come second, and an axis third; for one element of each row, as torch.gather(x, axis, "
            "indices) has it, write ll.take_along_axis(x, indices, axis)"
        )
    return _take((x, as_tensor(indices)), shapes.one_axis("take", x.ndim, axis))


gather = take

# take_scatter


def _take_scatter_kernel(xp: Any, x: Any, indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    taken, first = range(axis, axis + indices.ndim), range(indices.ndim)
    rows = xp.moveaxis(x, taken, first).reshape(indices.size, *shape[:axis], *shape[axis + 1 :])
    places = checked_places(indices, shape[axis], axis).reshape(-1)
    return xp.moveaxis(add_rows(xp, shape[axis], places, rows), 0, axis)


def _take_scatter_infer(x: TensorSpec, indices: TensorSpec, axis: int, shape: Shape) -> TensorSpec:
    return known(shape, x.dtype)


_take_scatter: EntryPoint = defop_with_shape(
    "take_scatter",
    inputs="x indices:integer",
    attrs="axis",
    infer=_take_scatter_infer,
    kernel=_take_scatter_kernel,
    vjp={"x": lambda g, indices, axis: _take((g, indices), axis)},
    linear="x",
    maths={"x": "x̄ = ȳ[indices]"},
    batching="take_scatter",
    dynamic_batching="take_scatter_dynamic",
)

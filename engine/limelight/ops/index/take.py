"""Picking along one axis by index, and its inverse pictures."""

from __future__ import annotations

from typing import Any

from limelight.core import dtypes, shapes
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.eager import Entry, entry
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError
from limelight.ops._given_shape import shaped
from limelight.ops.index._scatter_add import add_rows, checked_places

__all__ = ["gather", "one_hot", "take"]

# take


def _take_infer(x: TensorSpec, indices: TensorSpec, axis: int) -> TensorSpec:
    return known((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)


def _take_kernel(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    try:
        return x.take(indices, axis)
    except IndexError:
        checked_places(indices, x.shape[axis], axis)
        raise


_take = entry(defop(
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


def take(x: TensorLike, indices: TensorLike, /, *, axis: int = 0) -> Tensor:
    """The slices of `x` at `indices` along `axis`; also called `gather`. Indices may repeat: their gradients add up.

    Shapes (a, n, b) and (i, j) with axis 1 give (a, i, j, b). Negative indices count from the end.
    Raises OutOfBoundsError for one that is beyond it: it names the index, its position, and the size (JAX gives NaN,
    and TensorFlow on a GPU 0).

    >>> import limelight as ll
    >>> ll.take(ll.constant([10, 20, 30]), ll.constant([2, 0])).tolist()
    [30, 10]
    """
    x = as_tensor(x)
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


_take_scatter: Entry = shaped(
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

# one_hot


def _one_hot_infer(indices: TensorSpec, depth: int, dtype: DType) -> TensorSpec:
    return known((*indices.shape, depth), dtype)


_one_hot = entry(defop(
    "one_hot",
    inputs="indices",
    attrs="depth dtype",
    infer=_one_hot_infer,
    kernel=lambda xp, indices, depth, dtype: (xp.asarray(indices)[..., None] == xp.arange(depth)).astype(dtype),
    accepts="integer",
    why_no_gradient="it is a function of integers",
    batching="last_axes",
))  # fmt: skip


def one_hot(indices: TensorLike, depth: int, /, *, axis: int = -1, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """One-hot vectors: a new axis with 1 at each index and 0 elsewhere.

    Args:
        indices: integers of any shape. Out of bounds, which negative ones are, they give zeros, as in JAX and
            TensorFlow.
        depth: the size of the new axis.
        axis: its place in the result; the last by default.
        dtype: that of the result; float32.

    Returns:
        A tensor of the shape of `indices` with an axis more.

    Raises:
        ArgumentError: the depth is negative, or the result has no such axis.

    >>> import limelight as ll
    >>> ll.one_hot(ll.constant([0, 2]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    >>> ll.one_hot(ll.constant([0, 2]), 3, axis=0, dtype=ll.int32).tolist()
    [[1, 0], [0, 0], [0, 1]]
    """
    depth = shapes.whole("one_hot", "depth", depth)
    if depth < 0:
        raise ArgumentError(f"one_hot: depth must not be negative, got {depth}")
    found = _one_hot(indices, depth, dtypes.dtype(dtype))
    if axis == -1:
        return found
    rank = found.ndim
    order = list(range(rank - 1))
    order.insert(shapes.one_axis("one_hot", rank, axis), rank - 1)
    return found.transpose(order)

"""An index of its own for each row along an axis: `take_along_axis`, its transpose, and `put_along_axis`."""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.index_expression import signed_places
from limelight.core.op import defop
from limelight.core.repeated_places import change_at, is_parallel, last_named
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import DTypeError, ShapeError
from limelight.ops._given_shape import defop_with_shape
from limelight.ops._gradient_terms import zeros
from limelight.ops.index._scatter_add import add_along, checked_places

__all__ = ["put_along_axis", "take_along_axis"]


# take_along_axis and its transpose, scatter_along_axis


def _size_1_along(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _take_infer(x: TensorSpec, indices: TensorSpec, axis: int) -> TensorSpec:
    if x.rank != indices.rank:
        raise ShapeError(
            f"take_along_axis: {x} and the indices {indices} must have as many axes as each other; use expand_dims"
        )
    around = shapes.broadcast("take_along_axis", _size_1_along(x.shape, axis), _size_1_along(indices.shape, axis))
    return known((*around[:axis], indices.shape[axis], *around[axis + 1 :]), x.dtype)


def _index_of_all_axes(xp: Any, shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """The index of every picked element, an array for each axis; axes of size 1 broadcast."""
    rank = len(shape)
    return tuple(
        [
            indices if i == axis else xp.arange(n).reshape([-1 if j == i else 1 for j in range(rank)])
            for i, n in enumerate(shape)
        ]
    )


def _take_kernel(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    if x.ndim != indices.ndim:
        raise ValueError("ranks differ")  # the shape rule says it better
    if xp is not np:
        return xp.take_along_axis(x, checked_places(indices, x.shape[axis], axis), axis)
    try:
        return xp.take_along_axis(x, signed_places(indices), axis)
    except IndexError:
        checked_places(indices, x.shape[axis], axis)
        raise


_take_along_axis: EntryPoint = entry_point(defop(
    "take_along_axis",
    inputs="x indices:integer",
    attrs="axis",
    infer=_take_infer,
    kernel=_take_kernel,
    vjp={"x": lambda g, indices, x_shape, axis: _scatter_along_axis((g, indices), x_shape, axis)},
    linear="x",
    maths={"x": "x̄[indices along the axis] += ȳ"},
    batching="operands_along_axis",
))  # fmt: skip


@method("take_along_axis")
def take_along_axis(x: TensorLike, /, indices: TensorLike, axis: int = -1) -> Tensor:
    """`out[i, j, k] = x[i, indices[i, j, k], k]` for axis 1, and likewise for others: each row has indices of its own.

    `x` and `indices` have as many axes as each other and broadcast but for `axis`. Negative indices count from the end;
    raises OutOfBoundsError for one that is out of bounds, which it names. Indices may repeat: their gradients add up.

    >>> import limelight as ll
    >>> ll.take_along_axis(ll.constant([[10, 20], [30, 40]]), ll.constant([[1], [0]])).tolist()
    [[20], [30]]
    """
    x = as_tensor(x)
    return _take_along_axis((x, as_tensor(indices)), shapes.one_axis("take_along_axis", x.ndim, axis))


def _scatter_kernel(xp: Any, x: Any, indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Adds each element of `x`, shaped as the picked ones are, where it came from in zeros of `shape`."""
    out = xp.zeros(shape, x.dtype)
    if hasattr(out, "at"):
        return out.at[_index_of_all_axes(xp, shape, indices, axis)].add(x)
    if is_parallel(out):
        where = _index_of_all_axes(xp, shape, checked_places(indices, shape[axis], axis), axis)
        change_at(xp, "add", out, where, x)
        return out
    return add_along(shape, checked_places(indices, shape[axis], axis), x, axis)


def _scatter_infer(x: TensorSpec, indices: TensorSpec, axis: int, shape: Shape) -> TensorSpec:
    return known(shape, x.dtype)


_scatter_along_axis: EntryPoint = defop_with_shape(
    "scatter_along_axis",
    inputs="x indices:integer",
    attrs="axis",
    infer=_scatter_infer,
    kernel=_scatter_kernel,
    vjp={"x": lambda g, indices, axis: _take_along_axis((g, indices), axis)},
    linear="x",
    maths={"x": "x̄ = ȳ[indices along the axis]"},
    batching="along_axis_to_shape",
    dynamic_batching="along_axis_to_shape_dynamic",
)


@method("_scatter_along_axis")
def _scatter_to(x: Tensor, indices: Tensor, shape: Any, axis: int) -> Tensor:
    """The transpose of `take_along_axis` for other families: adds `x` at `indices` in zeros of `shape`."""
    return _scatter_along_axis((x, indices), shape, axis)


# put_along_axis


def _put_infer(x: TensorSpec, values: TensorSpec, indices: TensorSpec, axis: int) -> TensorSpec:
    alike = x.rank == indices.rank and all(
        i == axis or None in (m, n) or m == n for i, (m, n) in enumerate(zip(x.shape, indices.shape, strict=False))
    )
    if not alike:
        raise ShapeError(
            f"put_along_axis: indices {indices} must have the shape of {x}, but for axis {axis}; use broadcast_to"
        )
    _check_values(values, indices)
    return known(x.shape, x.dtype)


def _check_values(values: TensorSpec, indices: TensorSpec) -> None:
    met = shapes.broadcast("put_along_axis", values.shape, indices.shape)
    if len(met) != indices.rank or any(m == 1 and n not in (1, None) for m, n in zip(indices.shape, met, strict=True)):
        raise ShapeError(f"put_along_axis: values {values} do not broadcast to the indices {indices}")


def _put_kernel(xp: Any, x: Any, values: Any, indices: Any, axis: int) -> Any:
    checked_places(indices, x.shape[axis], axis)  # JAX leaves values out whose place is not there
    where = _index_of_all_axes(xp, x.shape, indices, axis)
    if hasattr(x, "at"):
        return x.at[where].set(values)
    out = xp.array(x)
    change_at(xp, "set", out, where, values)
    return out


def _values_gradient(g: Tensor, x: Tensor, indices: Tensor, values_shape: Any, axis: int) -> Tensor:
    part = g.take_along_axis(indices, axis=axis)
    return _last_wins((x, indices), axis).where(part, zeros(g.dtype, ())).sum_to(values_shape)


def _last_wins_kernel(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    """Which of the values that go to one place stays there: the last."""
    if is_parallel(x):
        return last_named(xp, x.shape, _index_of_all_axes(xp, x.shape, indices, axis))
    order = np.arange(indices.size).reshape(indices.shape)
    seats = _put_kernel(np, np.zeros(x.shape, np.int64), order, np.asarray(indices), axis)
    return xp.asarray(np.take_along_axis(seats, np.asarray(indices), axis) == order)


_last_wins = entry_point(defop(
    "put_wins",
    inputs="x:any indices:integer",
    attrs="axis",
    infer=lambda x, indices, axis: known(indices.shape, dtypes.bool_),
    kernel=_last_wins_kernel,
    why_no_gradient="its result is boolean",
    batching="operands_along_axis",
))  # fmt: skip

_put_along_axis: EntryPoint = entry_point(defop(
    "put_along_axis",
    inputs="x values indices:integer",
    attrs="axis",
    infer=_put_infer,
    kernel=_put_kernel,
    vjp={
        "x": lambda g, indices, axis: _put_along_axis((g, zeros(g.dtype, ()), indices), axis),
        "values": _values_gradient,
    },
    maths={"x": "x̄ = ȳ, 0 at the places", "values": "v̄ = ȳ at the places, 0 for one that another has replaced"},
    batching="operands_along_axis",
))  # fmt: skip


def put_along_axis(x: TensorLike, indices: TensorLike, values: TensorLike, /, axis: int = -1) -> Tensor:
    """`x` with `values` put where `take_along_axis(x, indices, axis=axis)` would pick; `x` itself stays as it is.

    Args:
        x: any shape but that of a scalar.
        indices: integers, in the shape of `x` but for `axis`. Where one occurs several times the last value stays, and
            has the gradient.
        values: broadcast to the shape of `indices`.
        axis: the axis; the last by default.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        ShapeError: the shapes do not fit.
        DTypeError: `x` cannot hold a number among the values.
        OutOfBoundsError: the axis does not have an index, which is named.

    >>> import limelight as ll
    >>> ll.put_along_axis(ll.zeros((2, 2)), ll.constant([[1], [0]]), 5.0).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    x = as_tensor(x)
    if isinstance(values, (bool, int, float, complex)):
        if not dtypes.fits(values, x.dtype):
            raise DTypeError(f"put_along_axis: {values!r} does not fit into {x.spec}; write ll.astype(x, ...) first")
        values = zeros(x.dtype, ()) + values if dtypes.kind(x.dtype) != "bool" else as_tensor(values)
    values, indices, along = as_tensor(values), as_tensor(indices), shapes.one_axis("put_along_axis", x.ndim, axis)
    _put_infer(x.spec, values.spec, indices.spec, along)
    return _put_along_axis((x, values, indices), along)

"""Elements put at, and picked from, places of their own: `scatter`, `gather_nd`, `put_along_axis`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import Entry, entry
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import DTypeError, ShapeError
from limelight.ops._given_shape import as_shape, shaped
from limelight.ops._gradient_terms import zeros
from limelight.ops.index._scatter_add import add_rows, checked_places

__all__ = ["gather_nd", "put_along_axis", "scatter"]


def _depth(name: str, indices: TensorSpec, shape: Shape) -> int:
    """How many of the first axes of `shape` a row of `indices` names a place in."""
    depth = indices.shape[-1] if indices.rank else None
    if depth is None:
        raise ShapeError(
            f"{name}: the last axis of the indices {indices} says how many axes they name: it must be there, and known"
        )
    if depth > len(shape):
        raise ShapeError(
            f"{name}: the indices {indices} name {depth} axes of a tensor of shape {shapes.show(shape)}, "
            f"which has {len(shape)}"
        )
    return depth


def _flat(indices: Any, shape: tuple[int, ...]) -> Any:
    """Each row of `indices` as one number, a place in the flattened `shape`, whose axes it names."""
    flat = np.zeros(indices.shape[:-1], np.int64)
    for axis, size in enumerate(shape):
        flat = flat * size + checked_places(indices[..., axis], size, axis)
    return flat.reshape(-1)


# gather_nd


def _gather_infer(x: TensorSpec, indices: TensorSpec) -> TensorSpec:
    depth = _depth("gather_nd", indices, x.shape)
    return known((*indices.shape[:-1], *x.shape[depth:]), x.dtype)


def _gather_kernel(xp: Any, x: Any, indices: Any) -> Any:
    try:
        return x[tuple([indices[..., i] for i in range(indices.shape[-1])])]
    except IndexError:
        _flat(indices, x.shape[: indices.shape[-1]])
        raise


_gather_nd: Entry = entry(defop(
    "gather_nd",
    inputs="x indices:integer",
    infer=_gather_infer,
    kernel=_gather_kernel,
    vjp={"x": lambda g, indices, x_shape: _scatter((g, indices), x_shape)},
    linear="x",
    maths={"x": "x̄[indices] += ȳ"},
    batching="gather_nd",
))  # fmt: skip


def gather_nd(x: TensorLike, indices: TensorLike, /) -> Tensor:
    """The parts of `x` at places that are rows of `indices`, each of which names a place in the first axes of `x`.

    Shapes (a, b, c) and (n, 2) give (n, c). Negative indices count from the end. Raises ShapeError when the rows are
    longer than `x` has axes, OutOfBoundsError for an index out of bounds, which it names.

    >>> import limelight as ll
    >>> ll.gather_nd(ll.constant([[1, 2], [3, 4]]), ll.constant([[0, 1], [1, 0]])).tolist()
    [2, 3]
    """
    x, indices = as_tensor(x), as_tensor(indices)
    return _gather_nd((x, indices))


# scatter


def _scatter_infer(updates: TensorSpec, indices: TensorSpec, shape: Shape) -> TensorSpec:
    depth = _depth("scatter", indices, shape)
    wanted = (*indices.shape[:-1], *shape[depth:])
    fits = len(wanted) == updates.rank and all(
        None in (m, n) or m == n for m, n in zip(updates.shape, wanted, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"scatter: indices {indices} into a tensor of shape {shapes.show(shape)} need updates of shape "
            f"{shapes.show(wanted)}, got {updates}"
        )
    return known(shape, updates.dtype)


def _scatter_kernel(xp: Any, updates: Any, indices: Any, shape: tuple[int, ...]) -> Any:
    depth = indices.shape[-1] if indices.ndim else 0
    if not 0 < depth <= len(shape) or updates.shape != (*indices.shape[:-1], *shape[depth:]):
        _scatter_infer(
            known(updates.shape, updates.dtype), known(indices.shape, indices.dtype), shape
        )  # says what is wrong
    out = xp.zeros(shape, updates.dtype)
    if hasattr(out, "at"):
        return out.at[tuple([indices[..., i] for i in range(depth)])].add(updates)
    places = _flat(indices, shape[:depth])
    return add_rows(xp, prod(shape[:depth]), places, updates.reshape(places.size, *shape[depth:])).reshape(shape)


_scatter: Entry = shaped(
    "scatter",
    inputs="updates indices:integer",
    infer=_scatter_infer,
    kernel=_scatter_kernel,
    accepts="numeric",
    vjp={"updates": lambda g, indices: _gather_nd((g, indices))},
    linear="updates",
    maths={"updates": "ū = ȳ[indices]"},
    batching="scatter",
)


def scatter(indices: TensorLike, updates: TensorLike, shape: int | Sequence[int] | Tensor, /) -> Tensor:
    """Zeros of `shape` with `updates` added at the rows of `indices`: the transpose of `gather_nd`. Numeric.

    Each row of `indices` names a place in the first axes of `shape`: shapes (n, 2) and (n, c) fill (a, b, c). Where a
    place occurs several times its updates add up. Negative indices count from the end. Raises ShapeError when the
    shapes do not fit, OutOfBoundsError for an index that `shape` does not have, which it names (JAX drops such updates;
    TensorFlow raises on CPU and drops them on GPU).

    >>> import limelight as ll
    >>> ll.scatter(ll.constant([[0], [2], [0]]), ll.constant([1.0, 2.0, 3.0]), (3,)).tolist()
    [4.0, 0.0, 2.0]
    """
    return _scatter((as_tensor(updates), as_tensor(indices)), as_shape(shape))


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
    where = tuple([
        indices if i == axis else xp.arange(n).reshape([-1 if j == i else 1 for j in range(x.ndim)])
        for i, n in enumerate(x.shape)
    ])  # fmt: skip
    if hasattr(x, "at"):
        return x.at[where].set(values)
    checked_places(indices, x.shape[axis], axis)
    out = np.array(x)
    out[where] = values
    return out


def _values_gradient(g: Tensor, x: Tensor, indices: Tensor, values_shape: Any, axis: int) -> Tensor:
    part = g.take_along_axis(indices, axis=axis)
    return _put_wins((x, indices), axis).where(part, zeros(g.dtype, ())).sum_to(values_shape)


def _wins_kernel(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    """Which of the values that go to one place stays there: the last."""
    order = np.arange(indices.size).reshape(indices.shape)
    seats = _put_kernel(np, np.zeros(x.shape, np.int64), order, np.asarray(indices), axis)
    return xp.asarray(np.take_along_axis(seats, np.asarray(indices), axis) == order)


_put_wins = entry(defop(
    "put_wins",
    inputs="x:any indices:integer",
    attrs="axis",
    infer=lambda x, indices, axis: known(indices.shape, dtypes.bool_),
    kernel=_wins_kernel,
    why_no_gradient="its result is boolean",
    batching="operands_along_axis",
))  # fmt: skip

_put_along_axis: Entry = entry(defop(
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


def put_along_axis(x: TensorLike, indices: TensorLike, values: TensorLike, /, *, axis: int = -1) -> Tensor:
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

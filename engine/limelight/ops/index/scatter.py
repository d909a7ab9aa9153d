"""Elements picked from, and put at, places that rows of indices name: `gather_nd`, `scatter`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from limelight.core import shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.index_expression import signed_places
from limelight.core.op import defop
from limelight.core.repeated_places import change_at, is_parallel
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ShapeError
from limelight.ops._given_shape import as_shape, defop_with_shape
from limelight.ops.index._scatter_add import add_rows, checked_places

__all__ = ["gather_nd", "scatter"]


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
    flat: Any = 0 if is_parallel(indices) and shape else np.zeros(indices.shape[:-1], np.int64)
    for axis, size in enumerate(shape):
        places = checked_places(indices[..., axis], size, axis)
        flat = flat * size + (places.astype(np.int64) if places.dtype == np.uint64 else places)  # their sum is float64
    return flat.reshape(-1)


# gather_nd


def _gather_infer(x: TensorSpec, indices: TensorSpec) -> TensorSpec:
    depth = _depth("gather_nd", indices, x.shape)
    return known((*indices.shape[:-1], *x.shape[depth:]), x.dtype)


def _gather_kernel(xp: Any, x: Any, indices: Any) -> Any:
    if xp is not np:
        _flat(indices, x.shape[: indices.shape[-1]])
    try:
        places = signed_places(indices) if xp is np else indices
        return x[tuple([places[..., i] for i in range(indices.shape[-1])])]
    except IndexError:
        _flat(indices, x.shape[: indices.shape[-1]])
        raise


_gather_nd: EntryPoint = entry_point(defop(
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
    if xp is not np:
        _flat(indices, shape[:depth])  # JAX leaves updates out whose place is not there
    if hasattr(out, "at"):
        return out.at[tuple([indices[..., i] for i in range(depth)])].add(updates)
    if is_parallel(out):
        change_at(xp, "add", out, tuple([indices[..., i] for i in range(depth)]), updates)
        return out
    places = _flat(indices, shape[:depth])
    return add_rows(xp, prod(shape[:depth]), places, updates.reshape(places.size, *shape[depth:])).reshape(shape)


_scatter: EntryPoint = defop_with_shape(
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

"""Elements, or whole tensors, several times: `repeat`, `tile`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.ops._gradient_terms import rank

__all__ = ["repeat", "tile"]

# tile


def _tile_infer(x: TensorSpec, reps: tuple[int, ...]) -> TensorSpec:
    return known(tuple([None if n is None else n * r for n, r in zip(x.shape, reps, strict=True)]), x.dtype)


def _tile_kernel(xp: Any, x: Any, reps: tuple[int, ...]) -> Any:
    if not x.size:  # NumPy would return a view
        return xp.zeros(tuple([n * r for n, r in zip(x.shape, reps, strict=True)]), x.dtype)
    return xp.tile(x, reps)


def _tile_gradient(g: Tensor, x_shape: Any, reps: tuple[int, ...]) -> Tensor:
    """Sums over the copies, which stand on axes of their own after a reshape."""
    if isinstance(x_shape, tuple):
        apart: Any = tuple([n for pair in zip(reps, x_shape, strict=True) for n in pair])
    else:
        copies = np.array([[r, 0] for r in reps], np.int64)
        apart = (x_shape.expand_dims(1) * np.array([0, 1]) + copies).reshape((2 * len(reps),))
    return g.reshape(apart).sum(tuple(range(0, 2 * len(reps), 2)))


_tile = entry_point(defop(
    "tile",
    inputs="x",
    attrs="reps",
    infer=_tile_infer,
    kernel=_tile_kernel,
    vjp={"x": _tile_gradient},
    linear="x",
    maths={"x": "x̄ = the sum of ȳ over the copies"},
    fresh=True,
    batching="tile",
))  # fmt: skip


def tile(x: TensorLike, repetitions: int | Sequence[int], /) -> Tensor:
    """`x` laid out `repetitions[i]` times along each axis; the shorter of shape and repetitions gets ones in front.

    Raises ArgumentError for negative repetitions.

    >>> import limelight as ll
    >>> ll.tile(ll.constant([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x, reps = as_tensor(x), shapes.wholes("tile", "repetitions", repetitions)
    if any(r < 0 for r in reps):
        raise ArgumentError(f"tile: repetitions must not be negative, got {reps}")
    missing = len(reps) - x.ndim
    if missing > 0:
        x = x.expand_dims(tuple(range(missing)))
    return _tile(x, (1,) * -missing + reps)


# repeat


def _repeat_infer(x: TensorSpec, repeats: int, axis: int) -> TensorSpec:
    size = x.shape[axis]
    return known((*x.shape[:axis], None if size is None else size * repeats, *x.shape[axis + 1 :]), x.dtype)


def _repeat_gradient(g: Tensor, x_shape: Any, repeats: int, axis: int) -> Tensor:
    if isinstance(x_shape, tuple):
        apart: Any = (*x_shape[: axis + 1], repeats, *x_shape[axis + 1 :])
    else:
        n = rank(x_shape)
        places = [i if i <= axis else i - 1 for i in range(n + 1)]
        here = (np.arange(n + 1) == axis + 1).astype(np.int64)
        apart = x_shape[places] * (1 - here) + repeats * here
    return g.reshape(apart).sum(axis + 1)


_repeat = entry_point(defop(
    "repeat",
    inputs="x",
    attrs="repeats axis",
    infer=_repeat_infer,
    kernel=lambda xp, x, repeats, axis: x.repeat(repeats, axis),
    vjp={"x": _repeat_gradient},
    linear="x",
    maths={"x": "x̄ = the sum of ȳ over the copies"},
    batching="along_axis",
))  # fmt: skip


def _repeat_places_kernel(xp: Any, repeats: Any) -> Any:
    if repeats.size and (repeats.min() < 0 or int(repeats.max()) >= 2**62):  # JAX would not say so; of uint64 some wrap
        raise ValueError(f"repeats must be 0 or more, and fit in memory, got {repeats.min()} to {repeats.max()}")
    return xp.repeat(xp.arange(repeats.shape[0], dtype=np.int64), repeats.astype(np.int64))


_repeat_places = entry_point(defop(
    "repeat_places",
    inputs="repeats:integer",
    infer=lambda repeats: known((None,), dtypes.int64),
    kernel=_repeat_places_kernel,
    why_no_gradient="its result is an index",
    batching="loop",
))  # fmt: skip


def _checked_repeats(x: Tensor, repeats: Tensor, axis: int) -> Tensor:
    if dtypes.kind(repeats.dtype) != "integer":
        raise DTypeError(f"repeat: repeats must be integers, got {repeats.spec}; write ll.astype(repeats, ll.int32)")
    size = x.shape[axis]
    if repeats.ndim > 1 or (size is not None and repeats.shape not in ((), (1,), (None,), (size,))):
        raise ShapeError(
            f"repeat: axis {axis} of {x.spec} needs one number, or one for each element, got {repeats.spec}"
        )
    return repeats.broadcast_to(x.sizes()[axis : axis + 1])


def repeat(x: TensorLike, /, repeats: int | TensorLike, axis: int | None = None) -> Tensor:
    """Each element of `x` along `axis` `repeats` times in a row.

    Args:
        x: any shape and dtype.
        repeats: a number from 0 on, or an integer vector with a number for each element; in a trace the size of the
            axis is unknown then.
        axis: the axis, or None (the default) for the flattened tensor.

    Returns:
        The repeated elements.

    Raises:
        ArgumentError: `repeats` is negative.

    >>> import limelight as ll
    >>> ll.repeat(ll.constant([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    x = as_tensor(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    along = shapes.one_axis("repeat", x.ndim, axis)
    if not isinstance(repeats, int):
        counts = _checked_repeats(x, as_tensor(repeats), along)
        return x[(slice(None),) * along + (_repeat_places((counts,)),)]
    if repeats < 0:
        raise ArgumentError(f"repeat: repeats must not be negative, got {repeats}")
    return _repeat(x, repeats, along)

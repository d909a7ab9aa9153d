"""Elements repeated, reversed, rotated, and padded."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight import dtypes, shapes
from limelight.eager import Entry, entry
from limelight.errors import ArgumentError, DTypeError
from limelight.ops._rules import rank
from limelight.registry import defop
from limelight.spec import TensorSpec, known
from limelight.tensor import Tensor, TensorLike, as_tensor

__all__ = ["flip", "pad", "repeat", "roll", "tile"]

# tile


def _tile_infer(x: TensorSpec, reps: tuple[int, ...]) -> TensorSpec:
    return known(tuple([None if n is None else n * r for n, r in zip(x.shape, reps, strict=True)]), x.dtype)


def _tile_gradient(g: Tensor, x_shape: Any, reps: tuple[int, ...]) -> Tensor:
    """Sums over the copies, which stand on axes of their own after a reshape."""
    if isinstance(x_shape, tuple):
        apart: Any = tuple([n for pair in zip(reps, x_shape, strict=True) for n in pair])
    else:
        copies = np.array([[r, 0] for r in reps], np.int64)
        apart = (x_shape.expand_dims(1) * np.array([0, 1]) + copies).reshape((2 * len(reps),))
    return g.reshape(apart).sum(tuple(range(0, 2 * len(reps), 2)))


_tile = entry(defop(
    "tile",
    inputs="x",
    attrs="reps",
    infer=_tile_infer,
    kernel=lambda xp, x, reps: xp.tile(x, reps),
    vjp={"x": _tile_gradient},
    linear="x",
    maths={"x": "x̄ = the sum of ȳ over the copies"},
))  # fmt: skip


def tile(x: TensorLike, repetitions: Sequence[int], /) -> Tensor:
    """`x` laid out `repetitions[i]` times along each axis; the shorter of shape and repetitions gets ones in front.

    >>> import limelight as ll
    >>> ll.tile(ll.constant([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x, reps = as_tensor(x), tuple([r.__index__() for r in repetitions])
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


_repeat = entry(defop(
    "repeat",
    inputs="x",
    attrs="repeats axis",
    infer=_repeat_infer,
    kernel=lambda xp, x, repeats, axis: x.repeat(repeats, axis),
    vjp={"x": _repeat_gradient},
    linear="x",
    maths={"x": "x̄ = the sum of ȳ over the copies"},
))  # fmt: skip


_repeat_places = entry(defop(
    "repeat_places",
    inputs="repeats:integer",
    infer=lambda repeats: known((None,), dtypes.int64),
    kernel=lambda xp, repeats: xp.repeat(xp.arange(repeats.shape[0], dtype=np.int64), repeats),
    why_no_gradient="its result is an index",
))  # fmt: skip


def repeat(x: TensorLike, repeats: int | TensorLike, /, *, axis: int | None = None) -> Tensor:
    """Each element of `x` along `axis` `repeats` times in a row; with `axis=None` of the flattened tensor.

    `repeats` may be an integer vector, a number for each element; in a trace the size of the axis is unknown then.

    >>> import limelight as ll
    >>> ll.repeat(ll.constant([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    x = as_tensor(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    along = shapes.one_axis("repeat", x.ndim, axis)
    if not isinstance(repeats, int):
        counts = as_tensor(repeats).broadcast_to(x.sizes()[along : along + 1])
        return x[(slice(None),) * along + (_repeat_places((counts,)),)]
    if repeats < 0:
        raise ArgumentError(f"repeat: repeats must not be negative, got {repeats}")
    return _repeat(x, repeats, along)


# flip


@functools.lru_cache(maxsize=256)
def _reversal(rank: int, axes: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple([slice(None, None, -1 if i in axes else None) for i in range(rank)])


_flip: Entry = entry(defop(
    "flip",
    inputs="x",
    attrs="axes",
    infer=lambda x, axes: known(x.shape, x.dtype),
    kernel=lambda xp, x, axes: x[_reversal(x.ndim, axes)],
    vjp={"x": lambda g, axes: _flip(g, axes)},
    linear="x",
    maths={"x": "x̄ = ȳ reversed"},
))  # fmt: skip


def flip(x: TensorLike, /, *, axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` with its elements in reverse order along `axis` (an axis, several, or None for all).

    >>> import limelight as ll
    >>> ll.flip(ll.constant([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    x = as_tensor(x)
    return _flip(x, shapes.axes("flip", x.ndim, axis))


# roll

_roll: Entry = entry(defop(
    "roll",
    inputs="x",
    attrs="shift axes",
    infer=lambda x, shift, axes: known(x.shape, x.dtype),
    kernel=lambda xp, x, shift, axes: xp.roll(x, shift, axes),
    vjp={"x": lambda g, shift, axes: _roll(g, tuple([-s for s in shift]), axes)},
    linear="x",
    maths={"x": "x̄ = ȳ rolled back"},
))  # fmt: skip


def roll(x: TensorLike, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` with its elements moved along by `shift`, those that fall off coming back at the other end.

    `axis=None` rolls the flattened tensor. Several axes may have a shift each.

    >>> import limelight as ll
    >>> ll.roll(ll.constant([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    """
    x = as_tensor(x)
    if axis is None:
        return roll(x.reshape(-1), shift, axis=0).reshape(x.sizes())
    places = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(places) if isinstance(shift, int) else tuple(shift)
    if len(shifts) != len(places):
        raise ArgumentError(f"roll: {len(shifts)} shifts for {len(places)} axes; give one for each, or one for all")
    return _roll(x, shifts, tuple([shapes.one_axis("roll", x.ndim, a) for a in places]))


# pad


def _pad_infer(x: TensorSpec, widths: tuple[tuple[int, int], ...], value: Any) -> TensorSpec:
    return known(tuple([None if n is None else n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)]), x.dtype)


def _inner(widths: tuple[tuple[int, int], ...]) -> tuple[slice, ...]:
    return tuple([slice(before, -after or None) for before, after in widths])


def _pad_kernel(xp: Any, x: Any, widths: tuple[tuple[int, int], ...], value: Any) -> Any:
    if xp is not np:
        return xp.pad(x, widths, constant_values=value)
    shape = [n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)]
    out = np.full(shape, value, x.dtype) if value else np.zeros(shape, x.dtype)
    out[_inner(widths)] = x
    return out


_pad = entry(defop(
    "pad",
    inputs="x",
    attrs="widths value",
    infer=_pad_infer,
    kernel=_pad_kernel,
    vjp={"x": lambda g, widths: g[_inner(widths)]},
    maths={"x": "x̄ = ȳ without the margins"},
))  # fmt: skip


def pad(x: TensorLike, widths: int | Sequence[Any], /, *, value: complex = 0) -> Tensor:
    """`x` with margins filled with `value`.

    `widths` is (before, after) for each axis; one pair, or one number, stands for every axis. Raises ArgumentError
    for negative widths or a wrong number of them, DTypeError when `value` is not of the kind of `x`.

    >>> import limelight as ll
    >>> ll.pad(ll.constant([1, 2]), (1, 2)).tolist()
    [0, 1, 2, 0, 0]
    """
    x = as_tensor(x)
    try:
        pairs = np.broadcast_to(np.asarray(widths, dtype=np.int64), (x.ndim, 2))
    except ValueError:
        pairs = np.full((1, 2), -1)
    if (pairs < 0).any():
        raise ArgumentError(f"pad: widths {widths} must be (before, after), not negative, for each axis of {x.spec}")
    if value != 0 and not dtypes.fits(value, x.dtype):
        raise DTypeError(f"pad: the value {value!r} is not of the kind of {x.spec}")
    return _pad(x, tuple([(int(before), int(after)) for before, after in pairs]), value)

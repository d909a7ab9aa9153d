"""Elements in another order along an axis: `flip`, `roll`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

from limelight.core import dispatch, dtypes, shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop, get
from limelight.core.spec import known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, constant
from limelight.errors import ArgumentError

__all__ = ["flip", "roll"]

IntLike: TypeAlias = int | Tensor

# flip


@functools.lru_cache(maxsize=256)
def _reversing_slices(rank: int, axes: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple([slice(None, None, -1 if i in axes else None) for i in range(rank)])


_flip: EntryPoint = entry_point(defop(
    "flip",
    inputs="x",
    attrs="axes",
    infer=lambda x, axes: known(x.shape, x.dtype),
    kernel=lambda xp, x, axes: x[_reversing_slices(x.ndim, axes)],
    vjp={"x": lambda g, axes: _flip(g, axes)},
    linear="x",
    maths={"x": "x̄ = ȳ reversed"},
    view=True,
    batching="along_axis",
))  # fmt: skip


def flip(x: TensorLike, /, axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` with its elements in reverse order along `axis` (an axis, several, or None for all).

    >>> import limelight as ll
    >>> ll.flip(ll.constant([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    x = as_tensor(x)
    return _flip(x, shapes.axes("flip", x.ndim, axis))


# roll

_roll: EntryPoint = entry_point(defop(
    "roll",
    inputs="x",
    attrs="shift axes",
    infer=lambda x, shift, axes: known(x.shape, x.dtype),
    kernel=lambda xp, x, shift, axes: xp.roll(x, shift, axes),
    vjp={"x": lambda g, shift, axes: _roll(g, tuple([-s for s in shift]), axes)},
    linear="x",
    maths={"x": "x̄ = ȳ rolled back"},
    batching="along_axis",
))  # fmt: skip


def roll(x: TensorLike, /, shift: IntLike | Sequence[IntLike], axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` with its elements moved along by `shift`, those that fall off coming back at the other end.

    `axis=None` rolls the flattened tensor. Several axes may have a shift each, or share one; another number of shifts
    raises ArgumentError, as do shifts that are no integers. They may be tensors whose values a trace does not know, and
    under `vectorize` each example may have its own.

    >>> import limelight as ll
    >>> ll.roll(ll.constant([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    >>> ll.vectorize(ll.roll)(ll.constant([[1, 2, 3], [4, 5, 6]]), ll.constant([1, -1])).tolist()
    [[3, 1, 2], [5, 6, 4]]
    """
    x = as_tensor(x)
    if axis is None:
        return roll(x.reshape(-1), shift, axis=0).reshape(x.sizes())
    places = tuple([shapes.one_axis("roll", x.ndim, a) for a in shapes.wholes("roll", "axis", axis)])
    unknown = _shifts_without_values(shift)
    shifts: tuple[Any, ...] = shapes.wholes("roll", "shift", shift) if unknown is None else unknown
    if len(shifts) == 1:
        shifts *= len(places)
    if len(shifts) != len(places):
        raise ArgumentError(f"roll: {len(shifts)} shifts for {len(places)} axes; give one for each, or one for all")
    if unknown is None:
        return _roll(x, shifts, places)
    for n, place in zip(shifts, places, strict=True):
        x = _rolled_by_tensor(x, n, place)
    return x


def _shifts_without_values(shift: Any) -> tuple[Any, ...] | None:
    """The shifts, where the values of some are known only to a run, or differ between examples; None where not."""
    parts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,)
    if all(type(n) is Tensor or not isinstance(n, Tensor) for n in parts):
        return None
    if len(parts) == 1 and parts[0].ndim == 1 and parts[0].shape[0] is not None:
        parts = tuple([parts[0][i] for i in range(parts[0].shape[0])])
    for n in parts:
        if isinstance(n, Tensor) and (n.ndim or dtypes.kind(n.dtype) != "integer"):
            raise ArgumentError(f"roll: shift must be an integer, or a vector of known length, got {n.spec}")
    return tuple([n if isinstance(n, Tensor) else shapes.whole("roll", "shift", n) for n in parts])


def _rolled_by_tensor(x: Tensor, shift: Any, axis: int) -> Tensor:
    """`x` rolled along one axis: element i comes from place i - shift."""
    size: Any = x.shape[axis]
    if size is None:
        size = x.sizes()[axis].astype(dtypes.int64)
        places = dispatch.apply(get("arange_dynamic"), (constant(0, dtypes.int64), size, constant(1, dtypes.int64)))
    else:
        places = dispatch.apply(get("arange"), (), (0, 1, size, dtypes.int64))
    rolled: Tensor = dispatch.apply(get("take"), (x, (places - as_tensor(shift).astype(dtypes.int64)) % size), (axis,))
    return rolled

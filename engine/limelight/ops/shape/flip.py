"""Elements in another order along an axis: `flip`, `roll`."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from limelight.core import shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError

__all__ = ["flip", "roll"]

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


def flip(x: TensorLike, /, *, axis: int | Sequence[int] | None = None) -> Tensor:
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


def roll(x: TensorLike, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` with its elements moved along by `shift`, those that fall off coming back at the other end.

    `axis=None` rolls the flattened tensor. Several axes may have a shift each, or share one; another number of shifts
    raises ArgumentError.

    >>> import limelight as ll
    >>> ll.roll(ll.constant([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    """
    x = as_tensor(x)
    if axis is None:
        return roll(x.reshape(-1), shift, axis=0).reshape(x.sizes())
    places, shifts = shapes.wholes("roll", "axis", axis), shapes.wholes("roll", "shift", shift)
    if len(shifts) == 1:
        shifts *= len(places)
    if len(shifts) != len(places):
        raise ArgumentError(f"roll: {len(shifts)} shifts for {len(places)} axes; give one for each, or one for all")
    return _roll(x, shifts, tuple([shapes.one_axis("roll", x.ndim, a) for a in places]))

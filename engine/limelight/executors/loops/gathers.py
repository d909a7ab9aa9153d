"""Gathers and scatters: rows picked, written or added to at places that only a run knows.

Each place is checked as the table runs. Where one is not there, a guard ends the run, and the plan says what is wrong.
Rows are added in the order in which they are given, as `numpy.add.at` does, so sums are the plan's to the bit.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from limelight.executors.loops import layout, native_loops
from limelight.executors.loops.instructions import Instruction, Instructions, NotLowered, new_array
from limelight.executors.loops.layout import Sizes, View

_PLACE: Final = np.dtype(np.int64)


def take(x: View, places: View, axis: int, to: Instructions) -> View:
    """`x.take(places, axis)`: a new array in C order."""
    places = _as_places(places, to)
    if not layout.is_contiguous(x.shape[axis + 1 :], x.strides[axis + 1 :], x.dtype.itemsize):
        x = to.copied(x)
    out = new_array((*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]), x.dtype)
    _gather(x, places, axis, out, (*out.strides[:axis], _row_bytes(x, axis)), to)
    return out


def take_along_axis(x: View, places: View, axis: int, to: Instructions) -> View:
    """`numpy.take_along_axis`: a new array in C order."""
    around = layout.broadcast_shape(_with_one(x.shape, axis), _with_one(places.shape, axis))
    shape = (*around[:axis], places.shape[axis], *around[axis + 1 :])
    n = x.shape[axis]
    _check_order_of(places)
    places = _as_places(places, to)
    out = new_array(shape, x.dtype)
    own = layout.broadcast_strides(_with_one(x.shape, axis), x.strides, around)
    theirs = layout.broadcast_strides(places.shape, places.strides, shape)
    others = [i for i in range(len(shape)) if i != axis]
    sizes, steps = layout.collapsed(
        tuple([shape[i] for i in others]),
        tuple(range(len(others))),
        [tuple([strides[i] for i in others]) for strides in (own, theirs, out.strides)],
        x.dtype.itemsize,
    )
    if sizes == [1]:
        sizes, steps = [], []
    sizes.append(shape[axis])
    steps.append([0, theirs[axis], out.strides[axis]])
    _append("gather", x, places, out, n, x.strides[axis], (sizes, steps), x.dtype.itemsize, to)
    return out


def picked(x: View, parts: Sequence[Any], to: Instructions) -> View:
    """`x[parts]` with arrays of places, and whole slices: a new array, in the order of memory that NumPy gives it.

    Args:
        x: an array in C order.
        parts: for each axis a whole slice, or the view of an array of integers; these stand beside one another.
        to: where instructions are appended.

    Raises:
        NotLowered: NumPy might choose another order of memory.
    """
    first, places = _placed(x, parts, to)
    if not x.is_contiguous:
        raise NotLowered("what is indexed by an array is not in C order")
    if first == 0:
        return take(_with_places_joined(x, len(places)), _flat_place(x.shape, places, to), 0, to)
    (place, *others) = places
    if others or not place.shape:
        raise NotLowered("it is indexed by arrays behind other axes")
    rank, own = len(place.shape), len(x.shape)
    shape = (*place.shape, *x.shape[:first], *x.shape[first + 1 :])
    out = new_array(shape, x.dtype)
    _gather(x, place, first, out, (*out.strides[rank : rank + first], out.strides[rank - 1]), to)
    order = [*range(rank, rank + first), *range(rank), *range(rank + first, rank + own - 1)]
    sizes, strides = (tuple([known[i] for i in order]) for known in (shape, out.strides))
    return out._replace(shape=sizes, strides=strides)


def put(x: View, parts: Sequence[Any], value: View, to: Instructions, name: str = "put") -> None:
    """`x[parts] = value`, or for the name "add" `numpy.add.at(x, parts, value)`; `parts` as those of `picked`.

    Raises:
        NotLowered: arrays stand behind other axes, or there is no loop for the dtype.
    """
    first, places = _placed(x, parts, to)
    if first:
        raise NotLowered("it is indexed by arrays behind other axes")
    rows = _with_places_joined(x, len(places))
    place = _flat_place(x.shape, places, to)
    wanted = (*place.shape, *rows.shape[1:])
    if value.dtype != x.dtype:
        value = to.astype(value, x.dtype)
    if value.shape != wanted or not value.is_contiguous:
        whole = new_array(wanted, x.dtype)
        to.copy(value, whole)
        value = whole
    if not layout.is_contiguous(rows.shape[1:], rows.strides[1:], x.dtype.itemsize):
        raise NotLowered("what is indexed by an array is not in C order")
    width = _row_bytes(rows, 0)
    run = ([place.size], [[width, _PLACE.itemsize, 0]])
    _append(name, value, place, rows, rows.shape[0], rows.strides[0], run, width, to)


def counted_from_front(places: View, size: int, from_end: bool, to: Instructions) -> View:
    """The places of rows of an axis of `size`, as int64 from 0 on; ends the run where one is not there."""
    places = _as_places(places, to)
    out = new_array(places.shape, _PLACE)
    flag = _flag(to)
    loop = native_loops.place_loop(from_end)
    to.list.append(Instruction(loop, (places, flag, out), (places.size, size), (8, 0, 8), ()))
    to.guard(flag)
    return out


def _row_bytes(x: View, axis: int) -> int:
    return x.dtype.itemsize * math.prod(x.shape[axis + 1 :])


def _gather(x: View, places: View, axis: int, out: View, strides: Sizes, to: Instructions) -> None:
    """Picks along an axis, behind which `x` is in C order; `strides` are those of `out`, up to that of the places."""
    width = _row_bytes(x, axis)
    sizes, steps = layout.collapsed(x.shape[:axis], tuple(range(axis)), [x.strides[:axis], strides[:-1]], width)
    if sizes == [1]:
        sizes, steps = [], []
    axes = [[own, 0, theirs] for own, theirs in steps]
    run = ([*sizes, places.size], [*axes, [0, _PLACE.itemsize, strides[-1]]])
    _append("gather", x, places, out, x.shape[axis], x.strides[axis], run, width, to)


def _append(
    name: str,
    x: View,
    places: View,
    out: View,
    size: int,
    stride: int,
    run: tuple[list[int], list[list[int]]],
    width: int,
    to: Instructions,
) -> None:
    """Appends a loop over rows, and the guard behind it.

    Args:
        name: of the loop.
        x: the rows that are picked from, or given.
        places: where.
        out: the result, or what is written to.
        size: the number of rows that places are of.
        stride: the bytes between these.
        run: sizes, the slowest first, and for each the strides of `x`, `places` and `out`.
        width: the bytes of a row.
        to: where it is appended.
    """
    loop = native_loops.row_loop(name, x.dtype.num, width)
    if loop is None:
        raise NotLowered(f"rows of {x.dtype} are not added up at places")
    sizes, steps = run
    longest = max(range(len(sizes)), key=sizes.__getitem__)
    if name == "gather" and sizes[-1] == 1 and sizes[longest] > 1:  # in which order they are picked is all the same
        sizes.append(sizes.pop(longest))
        steps.append(steps.pop(longest))
    flag = _flag(to)
    axes = [word for n, (a, b, c) in zip(sizes[:-1], steps[:-1], strict=True) if n > 1 for word in (n, a, b, 0, c)]
    a, b, c = steps[-1]
    to.list.append(Instruction(loop, (x, places, flag, out), (sizes[-1], size), (a, b, 0, c, stride), tuple(axes)))
    to.guard(flag)


def _flag(to: Instructions) -> View:
    """A boolean that is true until a loop finds a place that is not there."""
    flag = new_array((), np.dtype(np.bool_))
    to.copy(_true(), flag)
    return flag


@functools.cache
def _true() -> View:
    return Instructions().constant(np.ones((), np.bool_))


def _as_places(places: View, to: Instructions) -> View:
    """Integers as int64 in C order."""
    if places.dtype.kind not in "iu":
        raise NotLowered("it is indexed by an array that is not of integers")
    if places.dtype != _PLACE:
        places = to.astype(places, _PLACE)
    return places if places.is_contiguous else to.copied(places)


def _placed(x: View, parts: Sequence[Any], to: Instructions) -> tuple[int, list[View]]:
    """The first axis that is indexed by an array, and the arrays, each in C order."""
    axes = [i for i, part in enumerate(parts) if isinstance(part, View)]
    places: list[View] = [part for part in parts if isinstance(part, View)]
    if axes[-1] - axes[0] + 1 != len(axes) or any(part != slice(None) for part in parts if not isinstance(part, View)):
        raise NotLowered("it is indexed by arrays and other things")
    for place in places:
        _check_order_of(place)
    return axes[0], [_as_places(place, to) for place in places]


def _check_order_of(places: View) -> None:
    """Places that do not lie in C order would give NumPy's result another order of memory."""
    rank = len(places.shape)
    if layout.iteration_order([places.strides], rank) != tuple(range(rank)):
        raise NotLowered("it is indexed by an array that is not in C order")


def _with_places_joined(x: View, count: int) -> View:
    """The array with its first axes as one."""
    if count == 1:
        return x
    shape = (math.prod(x.shape[:count]), *x.shape[count:])
    strides = layout.reshaped_strides(x, shape)
    if strides is None:
        raise NotLowered("what is indexed by arrays is not in C order")
    return x._replace(shape=shape, strides=strides)


def _flat_place(shape: Sizes, places: Sequence[View], to: Instructions) -> View:
    """One array of places for the first axes as one."""
    if len(places) == 1:
        return places[0]
    flat: View | None = None
    for n, place in zip(shape, places, strict=False):
        here = counted_from_front(place, n, True, to)
        if flat is not None:
            there = to.elementwise(np.multiply, (flat, to.constant(np.array(n, _PLACE))), (_PLACE,) * 3, None)
            here = to.elementwise(np.add, (there, here), (_PLACE,) * 3, None)
        flat = here
    assert flat is not None, "an index without arrays"
    return flat if flat.is_contiguous else flat._replace(strides=layout.contiguous(flat.shape, _PLACE.itemsize))


def _with_one(shape: Sizes, axis: int) -> Sizes:
    return (*shape[:axis], 1, *shape[axis + 1 :])

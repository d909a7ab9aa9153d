"""Where the elements of an array are: buffers, views of them, and the order in which NumPy runs through several.

The numbers of a table are to be the plan's to the bit, and sums depend on their order, which NumPy takes from strides.
So the layout of each intermediate is what NumPy would give it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Sizes: TypeAlias = tuple[int, ...]


class Buffer:
    """Memory that instructions read and write.

    They are made by the thousand: those of limelight-native's templates are, which sets both slots.

    Args:
        nbytes: how much of it.
    """

    __slots__ = ("nbytes", "same")

    value: Any = None
    array: Any = None
    row: Row | None = None

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.same: Buffer | None = None
        """The buffer that it turned out to be a part of: see `root`."""

    @property
    def is_made(self) -> bool:
        """Whether instructions write it."""
        return type(self) is Buffer

    @property
    def root(self) -> Buffer:
        """The buffer in whose place this one is."""
        buffer = self
        while buffer.same is not None:
            buffer = buffer.same
        return buffer


class GivenBuffer(Buffer):
    """Memory in which something is.

    Args:
        nbytes: how much of it.
        value: the value of the graph that is in it, for inputs of the stretch.
        array: the array that is in it, for constants.
        row: what it is a part of, for a row of a loop: another part in each step.
    """

    __slots__ = ("array", "row", "value")

    def __init__(self, nbytes: int, value: Any = None, array: Any = None, row: Row | None = None) -> None:
        super().__init__(nbytes)
        self.value = value
        self.array = array
        self.row = row


class View(NamedTuple):
    """An array in a buffer: its first element is `offset` bytes behind the buffer's begin; strides are in bytes."""

    buffer: Buffer
    offset: int
    shape: Sizes
    strides: Sizes
    dtype: np.dtype[Any]

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements follow one another in C order."""
        return is_contiguous(self.shape, self.strides, self.dtype.itemsize)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_whole(self) -> bool:
        """Whether it is all of a buffer that instructions write."""
        return self.buffer.is_made and self.size * self.dtype.itemsize == self.buffer.nbytes and 0 not in self.strides


class Row(NamedTuple):
    """A row of an array in each step of a loop: its first element is `offset` bytes behind the array's buffer's begin.

    In each further step it is `stride` bytes further on.
    """

    buffer: Buffer
    offset: int
    stride: int


@functools.lru_cache(maxsize=4096)
def contiguous(shape: Sizes, itemsize: int) -> Sizes:
    """The strides of an array in C order."""
    strides = []
    for n in reversed(shape):
        strides.append(itemsize)
        itemsize *= n
    return tuple(reversed(strides))


@functools.lru_cache(maxsize=4096)
def extent(shape: Sizes, strides: Sizes, itemsize: int) -> int:
    """The bytes that an array spans from its first element on; no stride is negative."""
    return itemsize + sum([(n - 1) * stride for n, stride in zip(shape, strides, strict=True)])


def is_contiguous(shape: Sizes, strides: Sizes, itemsize: int) -> bool:
    """Whether an array is in C order; axes of one element may have any stride."""
    if strides == contiguous(shape, itemsize):
        return True
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if stride != itemsize:
                return False
            itemsize *= n
    return True


@functools.lru_cache(maxsize=4096)
def broadcast_shape(*shapes: Sizes) -> Sizes:
    """The shape that these are broadcast to."""
    return np.broadcast_shapes(*shapes)


def broadcast_strides(shape: Sizes, strides: Sizes, to: Sizes) -> Sizes:
    """The strides with which an array runs through a larger shape: 0 where it has one element for all."""
    own = [0 if n == 1 else stride for n, stride in zip(shape, strides, strict=True)]
    return (0,) * (len(to) - len(shape)) + tuple(own)


def iteration_order(strides: Sequence[Sizes], rank: int) -> tuple[int, ...]:
    """The order of axes, the slowest first, in which NumPy's iterator runs through operands.

    That of their memory, and C order where they disagree: the stable insertion sort of
    `npyiter_find_best_axis_ordering`, in NumPy's nditer_constr.c.
    """
    order: list[int] = []  # the fastest first
    for axis in range(rank - 1, -1, -1):
        at = len(order)
        for i in range(len(order) - 1, -1, -1):
            is_faster = _is_faster(strides, axis, order[i])
            if is_faster is None:
                continue
            if not is_faster:
                break
            at = i
        order.insert(at, axis)
    return tuple(reversed(order))


def copy_order(strides: Sizes) -> Sizes:
    """The order of axes, the slowest first, of what NumPy makes as it casts an array: repeated ones are the fastest.

    As `PyArray_CreateSortedStrideInfo` in NumPy's shape.c, where its iterator leaves such axes in C order.
    """
    return tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))


def _is_faster(strides: Sequence[Sizes], axis: int, than: int) -> bool | None:
    """Whether the stride of one axis is the smaller one for all operands; None where none has both."""
    known = [(own[axis], own[than]) for own in strides if own[axis] and own[than]]
    return all(abs(a) < abs(b) for a, b in known) if known else None


def joined_order(arrays: Sequence[tuple[Sizes, Sizes]]) -> Sizes:
    """The order of axes, the slowest first, of what NumPy makes of several arrays that it joins.

    As `PyArray_CreateMultiSortedStridePerm` in NumPy's shape.c: that of their memory, and C order where they disagree.

    Args:
        arrays: shape and strides of each.
    """
    order: list[int] = []
    for axis in range(len(arrays[0][0])):
        at = len(order)
        for i in range(len(order) - 1, -1, -1):
            other = order[i]
            both = [strides for shape, strides in arrays if shape[axis] != 1 and shape[other] != 1]
            if both:
                if any(abs(strides[axis]) <= abs(strides[other]) for strides in both):
                    break
                at = i
        order.insert(at, axis)
    return tuple(order)


def strides_in_order(shape: Sizes, order: Sizes, itemsize: int) -> Sizes:
    """The strides of a new array whose axes are in memory in the given order, the slowest first."""
    strides = [0] * len(shape)
    for axis in reversed(order):
        strides[axis] = itemsize
        itemsize *= shape[axis]
    return tuple(strides)


def collapsed(shape: Sizes, order: Sizes, strides: Sequence[Sizes], itemsize: int) -> tuple[list[int], list[list[int]]]:
    """As few axes as do: those of one element left out, neighbours joined where all operands run through evenly.

    Returns:
        The sizes, the slowest axis first, and for each axis a list with the stride of each operand. There is always one
        axis; strides of 0 for a single element make NumPy's loops take it for a scalar, but the last operand, which is
        the result, for an array (complex numbers are multiplied otherwise if both stand still).
    """
    sizes: list[int] = []
    steps: list[list[int]] = []
    for axis in order:
        n = shape[axis]
        if n == 1:
            continue
        here = [own[axis] for own in strides]
        if sizes and all(before == n * now for before, now in zip(steps[-1], here, strict=True)):
            sizes[-1] *= n
            steps[-1] = here
        else:
            sizes.append(n)
            steps.append(here)
    return (sizes, steps) if sizes else ([1], [[0] * (len(strides) - 1) + [itemsize]])


def reshaped_strides(view: View, shape: Sizes) -> Sizes | None:
    """The strides of a view with another shape on the same memory; None where the elements must be copied.

    As `_attempt_nocopy_reshape` in NumPy's shape.c: groups of old axes that run evenly become groups of new ones.
    """
    itemsize = view.dtype.itemsize
    if view.is_contiguous:
        return contiguous(shape, itemsize)
    old = [(n, stride) for n, stride in zip(view.shape, view.strides, strict=True) if n != 1]
    strides: list[int] = []
    i = j = 0
    while i < len(old) and j < len(shape):
        i0, j0 = i, j
        left, right = old[i][0], shape[j]
        while left != right:
            if left < right:
                i += 1
                left *= old[i][0]
            else:
                j += 1
                right *= shape[j]
        group = old[i0 : i + 1]
        if any(group[k][1] != group[k + 1][0] * group[k + 1][1] for k in range(len(group) - 1)):
            return None
        strides += contiguous(tuple(shape[j0 : j + 1]), group[-1][1])
        i, j = i + 1, j + 1
    return tuple(strides) + (strides[-1] if strides else itemsize,) * (len(shape) - len(strides))


def row_of(view: View, reverse: bool) -> View:
    """The row of an array in each step."""
    shape, strides, stride = view.shape[1:], view.strides[1:], view.strides[0]
    last = (view.shape[0] - 1) * stride
    row = Row(view.buffer, view.offset + last, -stride) if reverse else Row(view.buffer, view.offset, stride)
    return View(GivenBuffer(extent(shape, strides, view.dtype.itemsize), row=row), 0, shape, strides, view.dtype)

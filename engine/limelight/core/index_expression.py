"""Index expressions as data: what stands between the brackets of `x[...]`, in a form that a graph can hold and print.

A key is a tuple with one item for each part: an int, (start, stop, step) for a slice, None for a new axis, "i" for an
axis that is indexed by an array, and in dynamic slices "t" for a position given by a tensor. There is no ellipsis.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from limelight.core import backends, shapes, value_checks
from limelight.core.shapes import Shape
from limelight.errors import ArgumentError, AxisError, OutOfBoundsError

Key = tuple[Any, ...]
_UINT64: Final = np.dtype(np.uint64)
_LARGEST: Final = 2**63 - 1


@functools.lru_cache(maxsize=4096)
def native(key: Key) -> Any:
    """The key as NumPy takes it, for a key without arrays and tensors."""
    parts = tuple([slice(*part) if isinstance(part, tuple) else part for part in key])
    return parts[0] if len(parts) == 1 and parts[0] is not None else parts


def filled(key: Key, values: Sequence[Any]) -> tuple[Any, ...]:
    """The key as NumPy takes it, with `values` at its marks in order."""
    feed = iter(values)
    return tuple([_fill(part, feed) for part in key])


def among_arrays(key: Key, arrays: Sequence[Any], positions: Sequence[Any]) -> tuple[Key, tuple[Any, ...]]:
    """The key, and its operands in order: arrays or positions; where there are both, positions become arrays.

    So has NumPy integers among arrays. Raises ArgumentError where one of the positions is a bound of a slice.
    """
    if not arrays or not positions:
        return key, tuple(arrays or positions)
    if any(isinstance(part, tuple) and "t" in part for part in key):
        raise ArgumentError("arrays and symbolic bounds of a slice in one index: write it in two steps, x[i:j][k]")
    feeds = {"i": iter(arrays), "t": iter(positions)}
    operands = tuple([next(feeds[part]) for part in key if isinstance(part, str)])
    return tuple(["i" if part == "t" else part for part in key]), operands


def partly_filled(key: Key, values: Sequence[int | None] | None) -> Key:
    """The key with those of `values` that are known at its marks in order; the others stay marks."""
    feed = iter(values or ())

    def fill(bound: Any) -> Any:
        known = next(feed, None) if isinstance(bound, str) else bound
        return bound if known is None else known

    return tuple([tuple(map(fill, part)) if isinstance(part, tuple) else fill(part) for part in key])


def _fill(part: Any, feed: Iterator[Any]) -> Any:
    if isinstance(part, tuple):
        return slice(*[next(feed) if isinstance(bound, str) else bound for bound in part])
    return next(feed) if isinstance(part, str) else part


def basic_shape(op: str, shape: Shape, key: Key) -> Shape:
    """The shape of `x[key]` for a key of ints, slices, new axes and tensors' positions."""
    sizes: list[int | None] = []
    axis = 0
    for part in key:
        if part is None:
            sizes.append(1)
            continue
        size = _size_of(op, shape, axis)
        if isinstance(part, tuple):
            sizes.append(_slice_size(size, part))
        elif part != "t":
            _check_position(op, shape, axis, part)
        axis += 1
    return (*sizes, *shape[axis:])


def dynamic_shape(shape: Shape, key: Key, content: Any) -> Shape:
    """The shape of `x[key]` for a key with marks, of whose positions some may be known, from literals."""
    result = basic_shape("x[...]", shape, key)
    try:
        return result if content is None else basic_shape("x[...]", shape, partly_filled(key, content))
    except AxisError as error:
        raise OutOfBoundsError(error.bare) from None


def as_numbers(positions: Any) -> list[Any]:
    """Positions as Python's numbers; those of a program that JAX is tracing as they are, which it can index with."""
    try:
        return [int(i) for i in backends.to_host(positions)]
    except TypeError:
        return list(positions)


def pick(x: Any, key: Key, positions: Any) -> Any:
    """`x[key]`, an array, with `positions` at the marks. Raises OutOfBoundsError, as `within` does, for one too far."""
    values = as_numbers(positions)
    if hasattr(x, "at"):  # JAX takes the nearest place
        check_positions(x.shape, filled(key, values))
    try:
        return x[filled(key, values)]
    except (IndexError, OverflowError):  # a uint64 may be too large for NumPy to look for
        dynamic_shape(x.shape, key, values)
        raise


def outside(places: Any, first: int, size: int) -> Any:
    """Which of the places, an array, are not from `first` to `size - 1`."""
    if places.dtype.kind == "u":  # JAX would take -1 beside a uint64 for 2**64 - 1
        return places >= size
    return (places < first) | (places >= size)


def signed_places(places: Any) -> Any:
    """Places that NumPy may index with: of uint64 it casts those from 2**63 on to negative ones, from the end.

    They become 2**63 - 1, which no axis has. Stand-ins for arrays (executors.loops) do the same in their table.
    """
    return np.minimum(places, _LARGEST).astype(np.int64) if places.dtype == _UINT64 else places


def check_positions(shape: Shape, index: Any) -> None:
    """Raises OutOfBoundsError for a position in an index that its axis does not have; traced ones are asked for."""
    axis = 0
    for part in index if isinstance(index, tuple) else (index,):
        if part is None:
            continue
        size = shape[axis]
        assert size is not None, "an array has all its sizes"
        if value_checks.is_traced(part):
            value_checks.any_wrong(part, functools.partial(outside, part, -size, size))
        elif not isinstance(part, slice):
            within(shape, axis, part)
        axis += 1


def within(shape: Shape, axis: int, position: Any) -> Any:
    """A position that a tensor has told, which must exist; raises OutOfBoundsError, as an op does when it runs."""
    size = shape[axis] if axis < len(shape) else None
    if size is not None and type(position) is int and not -size <= position < size:
        raise OutOfBoundsError(
            f"x[...]: index {position} is out of bounds for axis {axis} of shape {shapes.show(shape)}"
        )
    return position


def array_shape(op: str, shape: Shape, key: Key, indices: Shape) -> Shape:
    """The shape of `x[key]` with arrays of the common shape `indices` at the marks.

    NumPy's rule: the arrays' axes stand where the marks are when these (with ints) are neighbours, else in front.
    """
    sizes: list[int | None] = []
    axis, place, last, together = 0, 0, -1, True
    for i, part in enumerate(key):
        if part is None or isinstance(part, tuple):
            sizes.append(1 if part is None else _slice_size(_size_of(op, shape, axis), part))
        else:
            if part != "i":
                _check_position(op, shape, axis, part)
            _size_of(op, shape, axis)
            together = together and last in (-1, i - 1)
            place, last = (len(sizes) if last < 0 else place), i
        axis += part is not None
    at = place if together else 0
    return (*sizes[:at], *indices, *sizes[at:], *shape[axis:])


def _size_of(op: str, shape: Shape, axis: int) -> int | None:
    if axis >= len(shape):
        raise AxisError(f"{op}: too many indices for a tensor of shape {shapes.show(shape)}")
    return shape[axis]


def _slice_size(size: int | None, part: tuple[Any, ...]) -> int | None:
    if part == (None, None, None):
        return size
    if size is None or any(isinstance(bound, str) for bound in part):
        return None
    return len(range(*slice(*part).indices(size)))


def _check_position(op: str, shape: Shape, axis: int, position: int) -> None:
    size = shape[axis]
    if size is not None and not -size <= position < size:
        raise AxisError(f"{op}: index {position} is out of bounds for axis {axis} of shape {shapes.show(shape)}")

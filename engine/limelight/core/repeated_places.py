"""Changes of an array at places that an index may name several times.

NumPy goes through the places in order, so of several values the last stays. A GPU works on all of them at once. Sums
are added up by CuPy's atomic operations, whose order, and so the last bits, may differ from run to run; where these do
not know a dtype, another one takes its place. Of values to be set the last is found first, by the largest of their
numbers. Products and extremes are combined along the places, sorted: log n steps, and NaN comes through.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from limelight.core.backends import is_of_cupy

_AS_BITS: Final = np.dtype(np.int64)
_SMALL: Final = frozenset(map(np.dtype, (np.bool_, np.int8, np.int16, np.uint8, np.uint16)))


def change_at(xp: Any, how: str, out: Any, key: Any, values: Any) -> None:
    """Changes `out` in place: sets values ("set"), or combines them with what is there, by the name of a ufunc.

    Args:
        xp: the array library, whose arrays can be written to.
        how: "set", "add", "subtract", "multiply", "maximum" or "minimum".
        out: an array.
        key: an index of existing places, arrays among them.
        values: an array that broadcasts to `out[key]`.
    """
    if not is_parallel(out):
        if how == "set":
            out[key] = values
        else:
            getattr(xp, how).at(out, key, values)
    elif how == "set":
        _set(xp, out, key, values)
    elif how in ("add", "subtract"):
        _add(xp, out, key, values if how == "add" else -values)
    else:
        _combine(xp, getattr(xp, how), out, key, values)


def is_parallel(x: Any) -> bool:
    """Whether `x` is an array of CuPy, on which places that are named several times have no order."""
    return is_of_cupy(x)


def last_named(xp: Any, shape: tuple[int, ...], key: Any) -> Any:
    """Which of the places that `key` names, in an array of `shape`, are named the last time: booleans, as `x[key]`."""
    if xp is np:
        seats: Any = np.zeros(shape, np.int64)
        numbers = np.arange(seats[key].size).reshape(seats[key].shape)
        seats[key] = numbers
        return seats[key] == numbers
    last, numbers = _last(xp, shape, key)
    return last == numbers


def _last(xp: Any, shape: tuple[int, ...], key: Any) -> tuple[Any, Any]:
    """For each place that is named, the largest number of those that name it; and the numbers."""
    seats = xp.zeros(shape, np.uint32)
    part = seats[key]
    numbers = xp.arange(part.size, dtype=np.uint32).reshape(part.shape)
    xp.maximum.at(seats, key, numbers)
    return seats[key], numbers


def _set(xp: Any, out: Any, key: Any, values: Any) -> None:
    last, _ = _last(xp, out.shape, key)
    out[key] = xp.broadcast_to(values, last.shape).reshape(-1)[last.astype(np.int64)]


def _add(xp: Any, out: Any, key: Any, values: Any) -> None:
    if out.dtype.kind == "c":
        xp.add.at(out.real, key, values.real)
        xp.add.at(out.imag, key, values.imag)
    elif out.dtype == _AS_BITS:  # whose sums are those of unsigned numbers, to the bit
        xp.add.at(out.view(np.uint64), key, values.view(np.uint64))
    elif out.dtype in _SMALL:
        wide = out.astype(np.int32)
        xp.add.at(wide, key, values.astype(np.int32))
        out[...] = wide.astype(out.dtype)
    else:
        xp.add.at(out, key, values)


def _combine(xp: Any, ufunc: Any, out: Any, key: Any, values: Any) -> None:
    places = xp.arange(out.size).reshape(out.shape)[key]
    values = xp.broadcast_to(values, places.shape).reshape(-1)
    order = xp.argsort(places.reshape(-1))
    places, values = places.reshape(-1)[order], values[order]
    step = 1
    while step < len(places):  # afterwards each value has been combined with the 2 * step - 1 before it, of its place
        alike = places[step:] == places[:-step]
        values = xp.concatenate([values[:step], xp.where(alike, ufunc(values[step:], values[:-step]), values[step:])])
        step *= 2
    flat = out.reshape(-1)
    _set(xp, flat, places, ufunc(flat[places], values))
    out[...] = flat.reshape(out.shape)

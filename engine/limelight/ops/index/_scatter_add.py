"""Adding at places that may repeat, by the fastest route; and the error for a place that does not exist.

Many rows are added by a product with SciPy's sparse matrix, few by `np.add.at` on a flat view: 30 and 5 times as fast
as `np.add.at` of rows. Measured for rows of float32, one core (100,000 rows of 16 into 1,000; 20,000 of 64 into 5,000),
in milliseconds: np.add.at of rows 11.6 and 8.4, np.bincount of elements 5.3 and 2.8, sort + np.add.reduceat 12.0 and
6.2, np.add.at of elements 2.2 and 1.7, a sparse matrix product 0.4 and 0.3. For single numbers np.add.at (0.07) beats
all others, and for a few rows building the matrix (20 us) costs more than it saves.

Places out of bounds are errors: to drop them would hide a mistake.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from limelight.core import dtypes, shapes, value_checks
from limelight.core.backends import to_host
from limelight.core.index_expression import Key, outside, signed_places
from limelight.core.repeated_places import change_at, is_parallel
from limelight.ops._shape_rules import SHORT

_MANY: Final = 4096
"""Elements from which on a sparse matrix product is worth its set-up."""


def add_rows(xp: Any, size: int, places: Any, rows: Any) -> Any:
    """Zeros with each row added at its place. 16-bit floats are added up in float32.

    Args:
        xp: the array library.
        size: the number of rows of the result.
        places: (n,), integers that count from the front and exist.
        rows: (n, ...).

    Returns:
        An array (size, ...).
    """
    if xp is not np:
        out = xp.zeros((size, *rows.shape[1:]), rows.dtype)
        if hasattr(out, "at"):
            return out.at[places].add(rows)
        if is_parallel(out):
            wide = out.astype(dtypes.float32) if rows.dtype in SHORT else out
            change_at(xp, "add", wide, places, rows.astype(wide.dtype, copy=False))
            return wide.astype(rows.dtype, copy=False)
    wide = rows.astype(dtypes.float32) if rows.dtype in SHORT else rows
    return _add_rows_numpy(size, places, wide).astype(rows.dtype, copy=False)


def _add_rows_numpy(size: int, places: Any, rows: Any) -> Any:
    n, width = len(rows), prod(rows.shape[1:])
    if not isinstance(rows, np.ndarray | np.generic):  # a stand-in for an array (executors.loops)
        out = np.zeros((size, *rows.shape[1:]), rows.dtype, like=rows)
        np.add.at(out, places, rows)
        return out
    if width > 1 and rows.size >= _MANY and rows.dtype != bool:
        return _add_rows_by_matrix(size, places, rows.reshape(n, width)).reshape(size, *rows.shape[1:])
    out = np.zeros((size, *rows.shape[1:]), rows.dtype)
    if width > 1:
        flat = (places.astype(np.int64)[:, None] * width + np.arange(width)).reshape(-1)
        np.add.at(out.reshape(-1), flat, rows.reshape(-1))
    elif width:
        np.add.at(out.reshape(-1), places, rows.reshape(-1))
    return out


def _add_rows_by_matrix(size: int, places: Any, rows: Any) -> Any:
    """The same as a product with a sparse matrix that has a single 1 in each column."""
    from scipy.sparse import csc_array  # noqa: PLC0415  # slow to import, and few programs come by here

    n = len(places)
    ones = np.ones(n, rows.dtype)
    return csc_array((ones, places, np.arange(n + 1)), shape=(size, n)) @ np.ascontiguousarray(rows)


def add_along(shape: tuple[int, ...], places: Any, values: Any, axis: int) -> Any:
    """Zeros with each value added at its place along `axis`, and at its own place along the others; NumPy's arrays.

    Args:
        shape: that of the result.
        places: integers in the shape of `values`, or one that broadcasts to it.
        values: what is added.
        axis: the axis that `places` are of.

    Returns:
        An array of `shape`.
    """
    out = np.zeros(shape, values.dtype) if type(values) is np.ndarray else np.zeros(shape, values.dtype, like=values)
    rank = len(shape)
    grid: Any = 0
    for i, n in enumerate(shape):
        own = places.astype(np.int64) if i == axis else np.arange(n).reshape([-1 if j == i else 1 for j in range(rank)])
        grid = grid * n + own
    flat = np.broadcast_to(grid, values.shape).reshape(-1)
    np.add.at(out.reshape(-1), flat, values.reshape(-1))
    return out


def checked_places(places: Any, size: int, axis: int, *, from_end: bool = True) -> Any:
    """Places counted from the front. Those of JAX and CuPy are looked into (`value_checks`), and returned as they are.

    CuPy takes a place that is not there for another one, and JAX for the nearest, so somebody must look, although on a
    GPU that waits for the device.

    Args:
        places: integers.
        size: that of the axis.
        axis: which axis it is, for the message.
        from_end: whether negative places count from the end.

    Returns:
        `places`, of NumPy without negative ones.

    Raises:
        IndexError: there is no such place; the first one is named. Whoever runs a kernel makes that an
            OutOfBoundsError, which names the op.
    """
    first = -size if from_end else 0
    least = 0 if places.dtype.kind == "u" else first
    if not isinstance(places, np.ndarray | np.generic):
        if hasattr(places, "counted_from_front"):  # a stand-in for an array (executors.loops): its table asks
            return signed_places(places).counted_from_front(size, from_end)
        looks = hasattr(places, "at") or is_parallel(places)
        if not looks or not value_checks.any_wrong(places, lambda: outside(places, first, size)):
            return places
        places = to_host(places)
    if not places.size or np.maximum.reduce(_unsigned(places), None) < size:
        return places
    low, high = places.min(), places.max()
    if low < least or high >= size:
        places = np.asarray(places)
        wrong = np.argwhere(outside(places, first, size))[0].tolist()
        allowed = f"allowed: from {first} to {size - 1}" if size else "it has none"
        index = places[tuple(wrong)]
        raise IndexError(
            f"index {index} is out of bounds for axis {axis} with size {size} ({_position(wrong)}{allowed})"
        )
    return places if low >= 0 else np.where(places < 0, places + size, places)


def _unsigned(places: Any) -> Any:
    """The same bits without a sign: places below 0 become huge, so that one comparison finds all that are outside."""
    return places.view(f"u{places.dtype.itemsize}") if places.dtype.kind == "i" else places


def _position(place: list[int]) -> str:
    return f"at position {place[0] if len(place) == 1 else shapes.show(place)} of the indices; " if place else ""


def check_places_of_key(shape: tuple[int, ...], indices: Any, key: Key) -> None:
    """Raises IndexError for the first of the arrays in an index that names a place that its axis does not have.

    Where libraries other than NumPy compute, that is to be called first: JAX takes the nearest place.
    """
    arrays = iter([indices] if key.count("i") == 1 else indices)
    axis = 0
    for part in key:
        if part == "i":
            checked_places(next(arrays), shape[axis], axis)
        axis += part is not None

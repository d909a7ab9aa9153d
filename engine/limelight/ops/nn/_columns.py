"""Large matrices, column by column: sums over the rows, and what is computed of each number and its column.

Batch normalisation and its gradient are made of these. limelight-native walks over float32 numbers once for each; NumPy
goes piece by piece, so that one function finds in the cache what another wrote. The cores share the rows. Numbers do
not depend on how many cores there are, as sums are cut by shapes alone.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from limelight.core import dtypes, native_package
from limelight.core.cores import for_each, threads
from limelight.ops._kernel_parts import add_reduce
from limelight.ops._shape_rules import SHORT

PIECE: Final = 1 << 16
"""Elements of a piece."""
PARTS: Final = 16
"""Of which each has sums of columns of its own: so many at most, so that few are added up in the end."""
ROWS: Final = 16
"""Of a part, at least: the sums are to be less than what is summed."""


def is_large(x: Any) -> bool:
    """Whether an array is worth pieces. One of 16-bit floats is not: it is computed in 32 bits, and so in a copy."""
    return x.size > PIECE and x.dtype not in SHORT


def row_pieces(rows: int, width: int) -> list[slice]:
    """All rows of a matrix, in pieces."""
    step = max(PIECE // max(width, 1), 1)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def mean_and_variance(x: Any) -> tuple[Any, Any]:
    """Of each column of a matrix."""
    mean = _sums(x)[0] / len(x)
    return mean, _sums(x, mean)[1] / len(x)


def sums_of_products(x: Any, centre: Any, h: Any) -> tuple[Any, Any]:
    """The sums of `h` and of `h * (x - centre)` over the rows of matrices."""
    total, product = _sums(x, centre, h)
    return total, product


def scores(x: Any, centre: Any, slope: Any, level: Any, below: tuple[Any, Any] | None = None) -> Any:
    """`(x - centre) * slope + level`; with `below`, a pair `h, factor`, `(h - that) * factor`.

    Args:
        x: a matrix, as `h` is; the others are vectors with a number for each column.
        centre: what is taken from `x`.
        slope: what that is multiplied by.
        level: what is added.
        below: what the result is taken from, and what the difference is multiplied by.
    """
    out = np.empty(x.shape, x.dtype)
    h, factor = (None, None) if below is None else below
    if _is_native(x):
        operands = map(_in_order, (x, h, centre, slope, level, factor))
        native_package.native().column_scores(*operands, out, threads())
        return out

    def compute(piece: slice) -> None:
        part = np.subtract(x[piece], centre, out=out[piece])
        part *= slope
        part += level
        if h is not None:
            np.subtract(h[piece], part, out=part)
            part *= factor

    for_each(compute, row_pieces(*x.shape), x.size)
    return out


def _sums(x: Any, centre: Any = None, h: Any = None) -> Any:
    """Two rows: the sums over the rows of `x` or `h`, and of the squares or products of what is above the centre."""
    rows, width = x.shape
    pieces = row_pieces(rows, width)
    count = max(min(PARTS, len(pieces), rows // ROWS), 1)
    parts = np.zeros((count, 2, width), x.dtype)
    if _is_native(x):
        native_package.native().column_sums(*map(_in_order, (x, h, centre)), parts, threads())
        return add_reduce(parts, 0)

    def add_up(part: int) -> None:
        for piece in pieces[len(pieces) * part // count : len(pieces) * (part + 1) // count]:
            if centre is None:
                parts[part, 0] += add_reduce(x[piece], 0)
                continue
            apart = np.subtract(x[piece], centre)
            apart *= apart if h is None else h[piece]
            parts[part, 1] += add_reduce(apart, 0)
            if h is not None:
                parts[part, 0] += add_reduce(h[piece], 0)

    for_each(add_up, range(count), x.size)
    return add_reduce(parts, 0)


def _is_native(x: Any) -> bool:
    return x.dtype is dtypes.float32 and native_package.native_if_usable() is not None


def _in_order(x: Any) -> Any:
    """An array, or None, as the package reads it."""
    return None if x is None else np.require(x, requirements=("C", "A"))

"""Large matrices whose columns are made standard scores, and the gradient of that.

Batch normalisation is made of these. limelight-native does all of it in one call for float32 numbers; NumPy goes piece
by piece, so that one function finds in the cache what another wrote. The cores share the rows. Numbers do not depend on
how many cores there are, as sums are cut by shapes alone.
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
SMALLEST: Final = 1 << 12
"""Elements up to which NumPy's functions are taken: in a table they are quicker than a call of limelight-native."""
PARTS: Final = 16
"""Of which each has sums of columns of its own: so many at most, so that few are added up in the end."""
ROWS: Final = 16
"""Of a part, at least: the sums are to be less than what is summed."""


def is_large(x: Any) -> bool:
    """Whether an array is worth pieces. One of 16-bit floats is not: it is computed in 32 bits, and so in a copy."""
    return x.size > PIECE and x.dtype not in SHORT


def is_worth_a_call(x: Any) -> bool:
    """Whether an array is worth `normalised` and its gradient: where it is one call, those that are smaller, too."""
    return is_large(x) if _native(x) is None else x.size > SMALLEST


def _native(x: Any) -> Any:
    """limelight-native, where it is there and takes such numbers; else None."""
    return native_package.native_if_usable() if x.dtype is dtypes.float32 else None


def row_pieces(rows: int, width: int) -> list[slice]:
    """All rows of a matrix, in pieces."""
    step = max(PIECE // max(width, 1), 1)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def normalised(x: Any, scale: Any, offset: Any, epsilon: float) -> tuple[Any, Any, Any]:
    """`(x - mean) / sqrt(variance + epsilon) * scale + offset`, the mean and the variance, over all axes but the last.

    Args:
        x: the last axis is that of the columns.
        scale: a number for each column; None for ones.
        offset: the same; None for zeros.
        epsilon: added to the variance.
    """
    if (native := _native(x)) is not None:
        return native.normalise_columns(x, scale, offset, epsilon, threads())  # type: ignore[no-any-return]
    rows = x.reshape(-1, x.shape[-1])
    mean, variance = _mean_and_variance(rows)
    slope = (1.0 if scale is None else scale) / np.sqrt(variance + epsilon)
    y = _scores(rows, mean, slope, np.zeros_like(mean) if offset is None else offset)
    return y.reshape(x.shape), mean, variance


def normalised_gradient(
    h: Any, x: Any, moments: tuple[Any, Any] | None, scale: Any, epsilon: float
) -> tuple[Any, Any, Any]:
    """The gradients for `x`, `scale` and `offset` where `h` is that of the first result of `normalised`.

    Args:
        h: as `x`.
        x: what was normalised.
        moments: its mean and variance; None where `x` are the scores themselves.
        scale: a number for each column.
        epsilon: what was added to the variance.
    """
    mean, variance = (None, None) if moments is None else moments
    if (native := _native(x)) is not None:
        return native.normalise_columns_gradient(  # type: ignore[no-any-return]
            h, x, mean, variance, scale, epsilon, threads()
        )
    rows, gradients = x.reshape(-1, x.shape[-1]), h.reshape(-1, x.shape[-1])
    centre = np.zeros_like(scale) if mean is None else mean
    n, root = len(rows), 1.0 if variance is None else 1.0 / np.sqrt(variance + epsilon)
    to_offset, common = _sums(rows, centre, gradients)
    to_scale = common * root
    out = _scores(rows, centre, root * to_scale / n, to_offset / n, (gradients, scale * root))
    return out.reshape(x.shape), to_scale, to_offset


def _mean_and_variance(x: Any) -> tuple[Any, Any]:
    """Of each column of a matrix."""
    mean = _sums(x)[0] / len(x)
    return mean, _sums(x, mean)[1] / len(x)


def _scores(x: Any, centre: Any, slope: Any, level: Any, below: tuple[Any, Any] | None = None) -> Any:
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

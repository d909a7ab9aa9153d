"""A small portrait of a tensor's values: figures, and a grid of at most 8 by 8 samples in 64 shades.

A recording of a thousand steps is to stay below 300 kB, so each value takes a few hundred bytes, however large it is.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import dtypes
from limelight.core.backends import to_host
from limelight.core.spec import known

SHADES: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
NAN, INFINITY, MINUS_INFINITY = "!", "^", "~"
SIDE: Final = 8
FEW: Final = 8
_MOST_READ: Final = 1 << 16
"""How many elements the figures are taken of: of a larger tensor, evenly spaced ones."""


class Portrait(NamedTuple):
    """What a tensor holds: `numbers` written out where they are few, else `rows` by `columns` samples as `shades`.

    `low`, `high` and `mean` are those of the finite numbers (of magnitudes, where complex), None where there are none;
    `nans` and `infinities` count the others. `sampled`: only some of the elements have been read.
    """

    spec: str
    low: float | None
    high: float | None
    mean: float | None
    nans: int
    infinities: int
    numbers: tuple[str, ...]
    rows: int
    columns: int
    shades: str
    sampled: bool

    def __str__(self) -> str:
        if self.numbers:
            return f"{self.spec} = {', '.join(self.numbers)}"
        parts = [] if self.low is None else [f"from {self.low:.4g} to {self.high:.4g}, mean {self.mean:.4g}"]
        parts += [f"{self.nans} NaN"] if self.nans else []
        parts += [f"{self.infinities} infinite"] if self.infinities else []
        return f"{self.spec} {', '.join(parts)}".rstrip() + (" (sampled)" if self.sampled else "")


def portrait(payload: Any) -> Portrait | None:
    """The portrait of an array on any device; None for what is no array of numbers."""
    if not hasattr(payload, "shape") or not hasattr(payload, "dtype"):
        return None
    if getattr(payload.dtype, "kind", "V") in "OUSmM":
        return None
    spec = str(known(payload.shape, dtypes.dtype(payload.dtype)))
    few = _evenly(payload)
    array = np.asarray(to_host(few))
    if array.dtype.kind not in "biufcV":
        return None
    wide = np.abs(array).astype(np.float64) if array.dtype.kind == "c" else np.asarray(array, np.float64)
    finite = wide[np.isfinite(wide)]
    low, high, mean = (None,) * 3 if not finite.size else (float(finite.min()), float(finite.max()), _mean(finite))
    nans = int(np.isnan(wide).sum())
    is_small = payload.size <= FEW
    rows, columns, shades = (0, 0, "") if is_small else _shaded(wide, low, high)
    return Portrait(
        spec, low, high, mean, nans, int(wide.size - finite.size) - nans, _written(array) if is_small else (),
        rows, columns, shades, array.size < payload.size,
    )  # fmt: skip


def _written(array: Any) -> tuple[str, ...]:
    return tuple([str(x) if array.dtype.kind in "bc" else f"{x:.5g}" for x in array.ravel()])


def _mean(finite: Any) -> float:
    with np.errstate(over="ignore"):
        return float(finite.mean())


def _evenly(payload: Any) -> Any:
    """`payload`, or a part of it with at most as many elements as are read: some of each axis."""
    while payload.size > _MOST_READ:
        axis = int(np.argmax(payload.shape))
        payload = payload[(slice(None),) * axis + (slice(None, None, 2),)]
    return payload


def _shaded(wide: Any, low: float | None, high: float | None) -> tuple[int, int, str]:
    """Samples of the array as a picture: the last axis across, all others down."""
    table = wide.reshape(-1, wide.shape[-1]) if wide.ndim > 1 else wide.reshape(1, -1)
    if table.shape[0] == 1 and table.shape[1] > SIDE:  # a long row wraps
        table = table[0, np.linspace(0, table.shape[1] - 1, min(table.shape[1], SIDE * SIDE)).astype(int)]
        columns = SIDE
        table = table.reshape(1, -1)
        cells = table[0]
        rows = -(-len(cells) // columns)
    else:
        picked = [np.unique(np.linspace(0, n - 1, min(n, SIDE)).astype(int)) for n in table.shape]
        table = table[np.ix_(*picked)]
        rows, columns = table.shape
        cells = table.ravel()
    return rows, columns, "".join([_shade(float(x), low, high) for x in cells])


def _shade(x: float, low: float | None, high: float | None) -> str:
    if np.isnan(x):
        return NAN
    if low is None or high is None or np.isinf(x):
        return INFINITY if x > 0 else MINUS_INFINITY
    span = high / 2 - low / 2  # halves: the difference of the extremes may overflow
    return SHADES[0 if span <= 0 else min(63, int((x / 2 - low / 2) / span * 63.999))]

"""Reductions in CuPy: over leading axes in two stages.

CuPy gives each result to the threads of one block. Few sums of many elements that lie apart, such as the moments of
channels, leave most of a GPU idle so: over the first three axes of f32[32,112,112,64], 103 MB, an H200 took 9.06 ms,
and 0.08 in two stages.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

from limelight.core import dtypes, shapes
from limelight.core.backends import is_cupy
from limelight.ops._shape_rules import SHORT, Axis

RESULTS: Final = 1 << 16
"""Of the first stage, about; with four times as many the second one takes longer than is won."""
FEWEST: Final = 64
"""Rows of a part, and parts: with fewer one stage is as quick."""


def reduced(xp: Any, name: str, x: Any, axis: Axis, keepdims: bool, **dtype: Any) -> Any:
    """A reduction by a function of the array library.

    Args:
        xp: the array library of `x`.
        name: of its function, for which parts may be reduced first: "sum", "prod", "max", "min", "any" or "all".
        x: an array.
        axis: an axis, several, or None for all.
        keepdims: whether these axes stay in place with size 1.
        dtype: of the result, where that is not the function's own.

    Returns:
        An array.
    """
    function = getattr(xp, name)
    if is_cupy(xp) and x.size >= RESULTS and x.flags.c_contiguous:
        over = shapes.axes(name, x.ndim, axis)
        rows, width = math.prod(x.shape[: len(over)]), math.prod(x.shape[len(over) :])
        leading = len(over) < x.ndim and over == tuple(range(len(over)))  # of all axes CuPy's way is quick
        count = _parts(rows, width) if leading else 1
        if count > 1:
            result = dtype.get("dtype", x.dtype)
            if name in ("sum", "prod") and result in SHORT:
                dtype = {"dtype": dtypes.float32}  # as in one stage: parts of 16 bits would overflow
            parts = function(x.reshape(count, rows // count, width), axis=1, **dtype)
            out = function(parts, axis=0, **dtype).reshape(shapes.reduce(x.shape, over, keepdims))
            return out.astype(result, copy=False) if dtype else out
    return function(x, axis=axis, keepdims=keepdims, **dtype)


@functools.lru_cache(maxsize=1024)
def _parts(rows: int, width: int) -> int:
    """Into how many equal parts `rows` rows of `width` elements are cut: 1 where one stage is as quick."""
    most = min(RESULTS // max(width, 1), rows // FEWEST)
    return next((n for n in range(most, FEWEST - 1, -1) if rows % n == 0), 1)

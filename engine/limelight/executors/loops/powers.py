"""Powers whose exponents only a run knows: what the op's kernel decides by a look at them, as instructions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from limelight.executors.loops.traced_array import TracedArray


def power(x: TracedArray, y: TracedArray) -> TracedArray:
    """IEEE 754's pow: see the op's kernel (`ops.elementwise.powers`), which mends the square roots of 0 and -inf."""
    out: Any = np.power(x, y)  # these functions ask their operands
    if out.dtype.kind != "f" or (out.size > 1 and y.shape == x.shape) or _is_positive(x):
        return cast(TracedArray, out)
    edges = np.logical_or(np.equal(x, 0.0), np.equal(x, -np.inf))
    chosen: Any = np.where(np.logical_and(np.equal(y, 0.5), edges), np.abs(x), out)
    return cast(TracedArray, chosen)


def _is_positive(x: TracedArray) -> bool:
    """Whether all elements are known, and above 0."""
    array = x.view.buffer.array
    return array is not None and bool((array > 0).all())

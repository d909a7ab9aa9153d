"""When two results of random programs are the same: rounding differs with the order of additions."""

from __future__ import annotations

from typing import Final

import numpy as np

TOLERANCES: Final = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-8, "float16": 2e-2, "bfloat16": 1e-1}
"""Relative to a number itself, or to the largest one beside it. Other dtypes are exact."""


def close(mine: np.ndarray, theirs: np.ndarray, what: str) -> None:
    """Fails, with `what`, unless both have the same dtype and shape, and nearly the same numbers."""
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), what
    tolerance = TOLERANCES.get(mine.dtype.name)
    if tolerance is None:
        assert np.array_equal(mine, theirs), what
        return
    wide = "complex128" if mine.dtype.kind == "c" else "float64"
    with np.errstate(all="ignore"):
        mine, theirs = mine.astype(wide), theirs.astype(wide)
        finite = np.abs(theirs[np.isfinite(theirs)])
        size = finite.max() if finite.size else 0.0
        assert np.allclose(mine, theirs, rtol=tolerance, atol=tolerance * (1 + size), equal_nan=True), what

"""Norms of arrays on any device."""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core.backends import to_host


def norm(array: np.ndarray[Any, Any]) -> float:
    """The root of the sum of squares of real numbers; infinite or NaN where that is.

    >>> norm(np.array([3.0, -4.0]))
    5.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sqrt(np.sum(array * array)))


def widened(array: Any) -> np.ndarray[Any, Any]:
    """An array of real numbers in 64 bits, on the host."""
    return np.asarray(to_host(array)).astype(np.float64)

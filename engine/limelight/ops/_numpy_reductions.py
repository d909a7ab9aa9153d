"""NumPy's reductions without the detours of np.sum and its kin.

Those look for other libraries' arrays first, and warn from a module of their own, where limelight's filter does not
reach. These are called (array, axis, dtype, out, keepdims, initial).
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from limelight.core import dtypes

add_reduce: Final[Any] = np.add.reduce
multiply_reduce: Final[Any] = np.multiply.reduce
maximum_reduce: Final[Any] = np.maximum.reduce
minimum_reduce: Final[Any] = np.minimum.reduce
or_reduce: Final[Any] = np.logical_or.reduce
and_reduce: Final[Any] = np.logical_and.reduce

QUICK: Final = frozenset([dtypes.float32, dtypes.float64])
"""Where a short vector's product with ones is its sum in a third of the time."""


@functools.lru_cache(maxsize=1024)
def ones(size: int, dtype: Any) -> Any:
    """A vector of ones, which nobody writes to."""
    return np.ones(size, dtype)

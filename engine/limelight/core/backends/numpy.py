"""The CPU: NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

xp = np


def from_numpy(array: np.ndarray[Any, Any]) -> Any:
    return array


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    return np.asarray(array)


def copy(array: Any) -> Any:
    return np.array(array, copy=True)


def from_dlpack(array: Any) -> Any:
    """An array of another library, in the memory that it has on the host."""
    return np.from_dlpack(array)


def prepared(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return kernel

"""The CPU: NumPy."""

from __future__ import annotations

import os
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


def total_memory(index: int) -> int | None:
    """That of the machine, which all CPU devices share; None on a system that does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None

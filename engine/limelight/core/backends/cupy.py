"""NVIDIA GPUs: CuPy. Needs the `cuda` extra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy as xp
import numpy as np


def from_numpy(array: np.ndarray[Any, Any]) -> Any:
    return xp.asarray(array)


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    host_array: np.ndarray[Any, Any] = xp.asnumpy(array)
    return host_array


def copy(array: Any) -> Any:
    return xp.array(array, copy=True)


def prepared(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return kernel


def device_count() -> int:
    """The GPUs that CUDA reports; 0 where there is no driver."""
    try:
        return int(xp.cuda.runtime.getDeviceCount())
    except xp.cuda.runtime.CUDARuntimeError:
        return 0

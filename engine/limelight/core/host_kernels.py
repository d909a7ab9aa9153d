"""Kernels that run on the host, for ops on a GPU which are made there, or for which CuPy has no function.

Each copy is noted, with its cause, as is any other between devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limelight.core import device_copies, devices
from limelight.core.backends import is_of_cupy
from limelight.core.devices import CPU0, Device
from limelight.user_code import source_line


def by_host(kernel: Callable[..., Any], cause: str) -> Callable[..., Any]:
    """A kernel for CuPy that copies its operands to the host, runs there, and copies what comes out back.

    Args:
        kernel: `kernel(np, *operands, *attrs)`, whose result is an array or a tuple of them.
        cause: why there, in words, for the notes of the copies.

    Returns:
        `run(xp, *operands, *attrs)`. It raises DeviceError where copies are forbidden.
    """

    def run(xp: Any, *arguments: Any) -> Any:
        gpu, line = _current(xp), source_line.user_line()
        given = [device_copies.copied(x, gpu, CPU0, cause, line) if is_of_cupy(x) else x for x in arguments]
        results = kernel(np, *given)
        if isinstance(results, tuple):
            return tuple([device_copies.copied(np.asarray(r), CPU0, gpu, cause, line) for r in results])
        return device_copies.copied(np.asarray(results), CPU0, gpu, cause, line)

    return run


def to_gpu(xp: Any, array: Any, cause: str) -> Any:
    """An array of the host on the current GPU."""
    return device_copies.copied(array, CPU0, _current(xp), cause, source_line.user_line())


def _current(xp: Any) -> Device:
    return devices.find(f"GPU:{xp.cuda.Device().id}")

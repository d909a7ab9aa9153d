"""An accelerator without hardware: a device whose arrays NumPy computes, and whose kernels take no others.

Operands that are not on it, and results that are read without a copy, are errors: as on a real one.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from limelight.core import backends, devices, placement
from limelight.core.devices import Device


class FarArray(np.ndarray):
    """An array in the memory of the accelerator."""


def far(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return type(result)(map(far, result))
    return np.asarray(result).view(FarArray) if isinstance(result, (np.ndarray, np.generic)) else result


def prepared(kernel: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(kernel, updated=())
    def run(*operands: Any) -> Any:
        return far(kernel(*operands))

    return run


def backend() -> Any:
    module: Any = types.ModuleType("limelight.core.backends.far")
    module.xp = types.SimpleNamespace(**{name: getattr(np, name) for name in dir(np) if name not in ("tanh", "random")})
    module.from_numpy = lambda array: np.array(array).view(FarArray)
    module.to_numpy = lambda array: np.array(np.asarray(array))
    module.copy = lambda array: np.array(array).view(FarArray)
    module.prepared = prepared
    module.device_count = lambda: 1
    module.total_memory = lambda index: 2**30
    return module


def install(monkeypatch: pytest.MonkeyPatch) -> Device:
    """Adds the device GPU:0 for one test; its library has no tanh, and no bfloat16."""
    monkeypatch.setitem(sys.modules, "limelight.core.backends.far", backend())
    monkeypatch.setitem(backends.MISSING_DTYPES, "far", frozenset(["bfloat16"]))
    monkeypatch.setitem(backends.TITLES, "far", "FarArray")
    device = Device("GPU", 0)
    device.backend = "far"
    here = [one for one in devices.list_devices() if one.kind != "GPU"]
    monkeypatch.setattr(devices, "_local", [*here, device])
    monkeypatch.setattr(devices, "_in_use", False)
    placement.why_no_kernel.cache_clear()
    return device

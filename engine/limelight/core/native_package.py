"""The package limelight-native, the engine's C part: it may be missing, or of another limelight or another NumPy."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import Any


def is_installed() -> bool:
    """Whether the package limelight-native is there."""
    return importlib.util.find_spec("limelight_native") is not None


@functools.cache
def native() -> Any:
    """The module, which is compiled and has no types. Raises ImportError where it is that of another limelight."""
    module = importlib.import_module("limelight_native")
    if not hasattr(module, "max_pool_gradient"):
        raise ImportError("limelight-native is older than limelight; build it anew: pip install ./engine/native")
    return module


@functools.cache
def native_if_usable() -> Any:
    """The module, or None where it is not there or cannot be loaded."""
    try:
        return native()
    except Exception:  # noqa: BLE001  # whatever a module may raise that was built for something else
        return None

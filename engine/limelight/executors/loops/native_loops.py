"""The loops that tables call, by ufunc and dtypes; `limelight_native` is imported when the first one is asked for."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from limelight.core import native_package, storage

is_installed = native_package.is_installed


def is_usable() -> bool:
    """Whether it is there, and can be loaded: it may be that of another limelight, or of another NumPy."""
    try:
        native()
    except Exception:  # noqa: BLE001  # whatever a module may raise that was built for something else
        return False
    return True


@functools.cache
def native() -> Any:
    """The module, told what variables are. Raises ImportError where it is that of another limelight."""
    module = native_package.native()
    module.use_storage(storage.Storage, storage.told)
    return module


@functools.lru_cache(maxsize=4096)
def ufunc_loop(ufunc: np.ufunc, types: bytes) -> Any:
    """NumPy's loop for these type numbers, results last; None where it has none."""
    return native().ufunc_loop(ufunc, types)


@functools.lru_cache(maxsize=256)
def copy_loop(source: int, target: int) -> Any:
    """A loop that copies, and casts from one type number to another; None where there is none."""
    return native().copy_loop(source, target)


@functools.lru_cache(maxsize=64)
def where_loop(number: int) -> Any:
    """A loop that chooses between two arrays of a type; None where there is none."""
    return native().where_loop(number)


@functools.lru_cache(maxsize=4096)
def row_loop(name: str, number: int, nbytes: int) -> Any:
    """A loop over rows of so many bytes of a type, at places; None where there is none."""
    return native().row_loop(name, number, nbytes)


@functools.cache
def place_loop(from_end: bool) -> Any:
    """A loop that counts places from the front."""
    return native().place_loop(from_end)

"""Array libraries that compute: one module each, imported only when a device asks for it.

A backend module has `xp` (the library's array namespace), `from_numpy(array)`, `to_numpy(array)`, `copy(array)` (real
bytes, on the same device), `prepared(kernel)` (the kernel with what it needs around it) and `device_count()`. It may
have `total_memory(index)`: the bytes of a device.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol, cast

import numpy as np


class Backend(Protocol):
    """What `limelight.core.backends.<name>` must have."""

    xp: Any

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any: ...
    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]: ...
    def copy(self, array: Any) -> Any: ...
    def prepared(self, kernel: Callable[..., Any]) -> Callable[..., Any]: ...
    def device_count(self) -> int: ...


TITLES: Final = {"numpy": "NumPy", "cupy": "CuPy", "jax": "JAX"}
MISSING_DTYPES: Final[dict[str, frozenset[str]]] = {"cupy": frozenset(["bfloat16"])}
"""Dtypes that a library has not, by its name: ops on them run elsewhere (`core.placement`)."""
_set_flags: Final[Callable[[Any, bool], None]] = cast(Any, np.ndarray.setflags)
"""Sets "writeable", its first parameter; by position this takes a fifth of the time of `array.flags.writeable = x`."""


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A view of `array` for others to look at. The memory's owner is locked too, or the view could be unlocked."""
    view = array.view()
    _set_flags(view, False)
    base = view.base
    while isinstance(base, np.ndarray):
        _set_flags(base, False)
        base = base.base
    return view


def total_memory(name: str, index: int) -> int | None:
    """The bytes that a device of a backend has in all, by its `total_memory(index)`; None where it does not say."""
    ask = getattr(load(name), "total_memory", None)
    return None if ask is None else ask(index)


@cache
def load(name: str) -> Backend:
    """The backend module called `name`: "numpy", "cupy" or "jax"."""
    module: Backend = importlib.import_module(f"limelight.core.backends.{name}")
    return module

"""Array libraries that compute: one module each, imported only when a device asks for it.

A backend has `xp` (the library's array namespace), `from_numpy(array)`, `to_numpy(array)`, `copy(array)` (real bytes,
on the same device), `from_dlpack(array)` (the same memory) and `prepared(kernel)` (the kernel with what it needs around
it); it may have `total_memory(index)`, the bytes of a device. It is a module, or, where the library has several
devices, what the module's `on_device(index)` gives.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol, cast

import numpy as np

from limelight.errors import DTypeError


class Backend(Protocol):
    """What `limelight.core.backends.<name>`, or its `on_device(index)`, must have."""

    xp: Any

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any: ...
    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]: ...
    def copy(self, array: Any) -> Any: ...
    def from_dlpack(self, array: Any) -> Any: ...
    def prepared(self, kernel: Callable[..., Any]) -> Callable[..., Any]: ...


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
    """The backend called `name`: "numpy", "jax", "cupy" for the first GPU, "cupy:1" for the next."""
    library, _, index = name.partition(":")
    module: Any = importlib.import_module(f"limelight.core.backends.{library}")
    backend: Backend = module.on_device(int(index or 0)) if hasattr(module, "on_device") else module
    return backend


def lacking(dtype: Any) -> DTypeError:
    """The error for a dtype that CuPy has not: it takes NumPy's, and bfloat16 in part, from version 14 on."""
    return DTypeError(
        f"a {dtype.name} tensor cannot be on a GPU, as this CuPy has no such dtype; convert it first, "
        "x.astype(ll.float32)"
    )


def is_cupy(xp: Any) -> bool:
    """Whether an array library is CuPy."""
    return getattr(xp, "__name__", "") == "cupy"


def is_of_cupy(x: Any) -> bool:
    """Whether `x` is an array of CuPy, which nobody imports to find out."""
    return isinstance(x, getattr(sys.modules.get("cupy"), "ndarray", ()))


def to_host(x: Any) -> Any:
    """An array of CuPy as one of NumPy; any other as it is."""
    return x.get() if is_of_cupy(x) else x


def library_of(name: str) -> str:
    """The array library of a backend: "cupy" for each GPU."""
    return name.partition(":")[0]


def is_imported(name: str) -> bool:
    """Whether anybody has imported the array library of a backend: before that nothing can be on its devices."""
    return library_of(name) in sys.modules


def moved(array: Any, home: str, to: str) -> Any:
    """A copy of an array of the backend `home` as one of the backend `to`: by way of the host if there is no other."""
    here, there = load(home), load(to)
    if here is there:
        return here.copy(array)
    if library_of(home) == library_of(to):
        return cast(Any, there).from_peer(array, here)
    return there.from_numpy(here.to_numpy(array))

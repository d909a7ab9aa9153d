"""XLA by way of JAX: single ops compile one by one and are slow, graphs compile whole. Needs the `xla` extra.

JAX narrows dtypes of 64 bits unless it is told not to. It is told so around whatever limelight has it do, for the
thread that does it: a program that uses JAX by itself keeps its own setting.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as xp
import numpy as np


def wide() -> AbstractContextManager[Any]:
    """With dtypes of 64 bits."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)  # type: ignore[no-any-return]  # JAX has no types here
    from jax.experimental import enable_x64  # its place before version 0.8

    return enable_x64(True)  # type: ignore[no-any-return]


def from_numpy(array: np.ndarray[Any, Any]) -> Any:
    """A copy: JAX would share memory that is aligned."""
    with wide():
        return xp.array(array, copy=True)


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    return np.asarray(array)


def copy(array: Any) -> Any:
    with wide():
        return xp.array(array, copy=True)


def prepared(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel in a scope of dtypes of 64 bits."""

    @functools.wraps(kernel, updated=())
    def run(*operands: Any) -> Any:
        with wide():
            return kernel(*operands)

    return run


def device_count() -> int:
    return 1

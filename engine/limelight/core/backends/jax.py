"""XLA by way of JAX: single ops compile one by one and are slow, graphs compile whole. Needs the `xla` extra.

JAX narrows dtypes of 64 bits unless it is told not to. It is told so around whatever limelight has it do, for the
thread that does it: a program that uses JAX by itself keeps its own setting.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as xp
import numpy as np

# Otherwise JAX takes three quarters of a GPU's memory when it first looks at it, which is after this.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


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


def from_dlpack(array: Any) -> Any:
    """An array of another library, in the memory that it has, if JAX can use that; else a copy."""
    with wide():
        return xp.from_dlpack(array)


def prepared(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel in a scope of dtypes of 64 bits."""

    @functools.wraps(kernel, updated=())
    def run(*operands: Any) -> Any:
        with wide():
            return kernel(*operands)

    return run

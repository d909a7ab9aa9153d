"""Tensors given to other libraries: to functions of NumPy, as any array-like or else with an error; and by DLPack.

Ufuncs (np.exp) do not come by here. They refuse tensors by themselves, because `Tensor.__array_ufunc__` is None, which
is how `ndarray + tensor` becomes the tensor's business.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from limelight.errors import DTypeError, LimelightError
from limelight.tensor import Tensor, method

KNOWS_DLPACK_1: Final = hasattr(np, "unstack")
"""From NumPy 2.1 on: versions, copies and devices in DLPack."""


@method("__array_function__")
def of_numpy(self: Tensor, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's protocol for `func(*args, **kwargs)`. Raises DTypeError where that takes no tensors."""
    try:
        return func._implementation(*args, **kwargs)  # type: ignore[attr-defined]  # what would run without us
    except TypeError as error:
        if isinstance(error, LimelightError):
            raise
        raise DTypeError(_instead_of(func)) from error


@method("__dlpack__")
def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The data for another library, whose `from_dlpack` calls this: a copy, which that library may write to.

    With `copy=False` the memory is shared, marked as read-only for libraries that understand the mark (`max_version`
    of 1 at least). PyTorch takes the mark without heeding it, so a tensor is not lent unless it is asked for.
    """
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
    if self._device.backend != "numpy":
        return self._data.__dlpack__(**options, copy=copy)
    if copy is not False:
        data = np.array(self._data)
    elif max_version is not None and max_version[0] >= 1 and KNOWS_DLPACK_1:
        data = self.numpy()
    else:
        data = np.asarray(self._data)
    return data.__dlpack__(**options) if KNOWS_DLPACK_1 else data.__dlpack__(stream=stream)


@method("__dlpack_device__")
def dlpack_device(self: Tensor) -> tuple[int, int]:
    """What kind of device the data is on, and its number, in the terms of DLPack."""
    holder = self.numpy() if self._device.backend == "numpy" else self._data
    found: tuple[int, int] = holder.__dlpack_device__()
    return found


def _instead_of(func: Callable[..., Any]) -> str:
    name, home = func.__name__, func.__module__.replace("numpy", "np", 1)
    ours = home == "np" and hasattr(sys.modules["limelight"], name)
    write = f"ll.{name}(x), or " if ours else ""
    return f"{home}.{name} does not take tensors: write {write}{home}.{name}(x.numpy()), which has no gradient"

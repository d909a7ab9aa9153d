"""Tensors given to functions of NumPy: as any array-like, or else an error that says what to write.

Ufuncs (np.exp) do not come by here. They refuse tensors by themselves, because `Tensor.__array_ufunc__` is None, which
is how `ndarray + tensor` becomes the tensor's business.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from limelight.errors import DTypeError, LimelightError
from limelight.tensor import Tensor, method


@method("__array_function__")
def of_numpy(self: Tensor, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's protocol for `func(*args, **kwargs)`. Raises DTypeError where that takes no tensors."""
    try:
        return func._implementation(*args, **kwargs)  # type: ignore[attr-defined]  # what would run without us
    except TypeError as error:
        if isinstance(error, LimelightError):
            raise
        raise DTypeError(_instead_of(func)) from error


def _instead_of(func: Callable[..., Any]) -> str:
    name, home = func.__name__, func.__module__.replace("numpy", "np", 1)
    ours = home == "np" and hasattr(sys.modules["limelight"], name)
    write = f"ll.{name}(x), or " if ours else ""
    return f"{home}.{name} does not take tensors: write {write}{home}.{name}(x.numpy()), which has no gradient"

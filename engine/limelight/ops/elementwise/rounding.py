"""Rounding to whole numbers: `floor`, `ceil`, `round`, `trunc`. None is connected: they are constant between jumps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import ArgumentError
from limelight.ops._shape_rules import same

__all__ = ["ceil", "floor", "round", "trunc"]

KEEPS_INTEGERS = np.floor(np.int8(1)).dtype == np.int8
"""NumPy 2.0 makes floats of the integers that it rounds, later ones do not."""


def _rounding_kernel(name: str) -> Callable[[Any, Any], Any]:
    """A rounding function of xp that leaves integers alone, which some versions turn into floats."""

    def kernel(xp: Any, x: Any) -> Any:
        return x if x.dtype.kind in "iu" else getattr(xp, name)(x)

    return kernel


# floor

_floor = entry_point(defop(
    "floor",
    inputs="x",
    infer=same,
    kernel=_rounding_kernel("floor"),
    special={"numpy": "floor"} if KEEPS_INTEGERS else {},
    accepts="real",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip


def floor(x: TensorLike, /) -> Tensor:
    """The largest whole number not above each element, in the same dtype; real. Not differentiable.

    >>> import limelight as ll
    >>> ll.floor(ll.constant([1.7, -1.2])).tolist()
    [1.0, -2.0]
    """
    return _floor(x)


# ceil

_ceil = entry_point(defop(
    "ceil",
    inputs="x",
    infer=same,
    kernel=_rounding_kernel("ceil"),
    special={"numpy": "ceil"} if KEEPS_INTEGERS else {},
    accepts="real",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip


def ceil(x: TensorLike, /) -> Tensor:
    """The smallest whole number not below each element, in the same dtype; real. Not differentiable.

    >>> import limelight as ll
    >>> ll.ceil(ll.constant([1.2, -1.7])).tolist()
    [2.0, -1.0]
    """
    return _ceil(x)


# round

_round = entry_point(defop(
    "round",
    inputs="x",
    infer=same,
    kernel=_rounding_kernel("rint"),
    accepts="numeric",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip


@method("round")
def round(x: TensorLike, /, decimals: int = 0) -> Tensor:  # the Array API's name
    """The nearest whole number, halves to the even one, in the same dtype; numeric. Not differentiable.

    With `decimals` the nearest multiple of 10 ** -decimals. Of complex numbers both parts are rounded. Raises
    ArgumentError for `decimals` that are no int, or negative where `x` is of integers.

    >>> import limelight as ll
    >>> ll.round(ll.constant([1.2, 2.5])).tolist()
    [1.0, 2.0]
    """
    return _rounded(x, decimals) if decimals else _round(x)


@method("__round__")
def _python_round(x: Tensor, ndigits: int | None = None) -> Tensor:
    """What Python's `round(x, 2)` calls."""
    return _rounded(x, ndigits) if ndigits else _round(x)


def _rounded(x: TensorLike, decimals: Any) -> Tensor:
    """`x`, rounded to other places than whole numbers, as NumPy does it: scaled, rounded, and scaled back."""
    x, decimals = as_tensor(x), shapes.whole("round", "decimals", decimals)
    if dtypes.kind(x.dtype) == "integer":
        if decimals < 0:
            raise ArgumentError(
                f"round: {x.spec} is of integers, which are not rounded to tens; write ll.round(ll.astype(x, "
                f"ll.float64), {decimals})"
            )
        return x
    scale = 10.0 ** abs(decimals)
    rounded: Tensor = _round(x * scale) / scale if decimals > 0 else _round(x / scale) * scale
    return rounded


# trunc

_trunc = entry_point(defop(
    "trunc",
    inputs="x",
    infer=same,
    kernel=_rounding_kernel("trunc"),
    special={"numpy": "trunc"} if KEEPS_INTEGERS else {},
    accepts="real",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip


def trunc(x: TensorLike, /) -> Tensor:
    """Each element without its fraction, in the same dtype; real. Not differentiable.

    >>> import limelight as ll
    >>> ll.trunc(ll.constant([1.7, -1.7])).tolist()
    [1.0, -1.0]
    """
    return _trunc(x)

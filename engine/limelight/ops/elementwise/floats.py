"""Floating-point numbers as they are made: `isnan`, `isinf`, `isfinite`, `signbit`, `copysign`, `nextafter`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._shape_rules import broadcast, predicate

__all__ = ["copysign", "isfinite", "isinf", "isnan", "nextafter", "signbit"]


def _predicate_kernel(name: str, of_integers: bool) -> Callable[[Any, Any], Any]:
    """A predicate of xp, whose answer is always the same for integers."""

    def kernel(xp: Any, x: Any) -> Any:
        return xp.full(x.shape, of_integers) if x.dtype.kind in "iu" else getattr(xp, name)(x)

    return kernel


# isnan

_isnan = entry_point(defop(
    "isnan",
    inputs="x",
    infer=predicate,
    kernel=_predicate_kernel("isnan", False),
    special={"numpy": "isnan"},
    accepts="numeric",
    why_no_gradient="its result is boolean",
))  # fmt: skip


def isnan(x: TensorLike, /) -> Tensor:
    """Whether each element is "not a number"; numeric.

    >>> import limelight as ll
    >>> ll.isnan(ll.constant([1.0, float('nan')])).tolist()
    [False, True]
    """
    return _isnan(x)


# isinf

_isinf = entry_point(defop(
    "isinf",
    inputs="x",
    infer=predicate,
    kernel=_predicate_kernel("isinf", False),
    special={"numpy": "isinf"},
    accepts="numeric",
    why_no_gradient="its result is boolean",
))  # fmt: skip


def isinf(x: TensorLike, /) -> Tensor:
    """Whether each element is infinite; numeric.

    >>> import limelight as ll
    >>> ll.isinf(ll.constant([1.0, -float('inf')])).tolist()
    [False, True]
    """
    return _isinf(x)


# isfinite

_isfinite = entry_point(defop(
    "isfinite",
    inputs="x",
    infer=predicate,
    kernel=_predicate_kernel("isfinite", True),
    special={"numpy": "isfinite"},
    accepts="numeric",
    why_no_gradient="its result is boolean",
))  # fmt: skip


def isfinite(x: TensorLike, /) -> Tensor:
    """Whether each element is neither infinite nor "not a number"; numeric.

    >>> import limelight as ll
    >>> ll.isfinite(ll.constant([1.0, float('inf')])).tolist()
    [True, False]
    """
    return _isfinite(x)


# copysign


def _sign_of(x: Any) -> Any:
    """1 with the sign of each element, or of a Python number."""
    return _copysign(1.0, x) if isinstance(x, Tensor) else math.copysign(1.0, x)


_copysign = entry_point(defop(
    "copysign",
    inputs="x y",
    infer=broadcast("copysign"),
    kernel="copysign",
    accepts="floating",
    vjp={
        "x": lambda g, x, y, x_shape: (g * (_sign_of(x) * _sign_of(y))).sum_to(x_shape),
        "y": lambda: None,
    },
    maths={"x": "x̄ = z̄ where the signs of x and y agree, -z̄ where they differ", "y": "ȳ: not connected"},
))  # fmt: skip


def copysign(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The magnitude of `x` with the sign of `y`, that of zeros and NaNs too, broadcasting; floating.

    >>> import limelight as ll
    >>> ll.copysign(ll.constant([1.0, 2.0]), ll.constant([-0.0, 5.0])).tolist()
    [-1.0, 2.0]
    """
    return _copysign(x, y)


# nextafter

_nextafter = entry_point(defop(
    "nextafter",
    inputs="x y",
    infer=broadcast("nextafter"),
    kernel="nextafter",
    accepts="floating",
    vjp={"x": lambda g, x_shape: g.sum_to(x_shape), "y": lambda: None},
    maths={"x": "x̄ = z̄", "y": "ȳ: not connected"},
))  # fmt: skip


def nextafter(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The next number of the dtype after `x` in the direction of `y`, broadcasting; floating.

    >>> import limelight as ll
    >>> (ll.nextafter(ll.constant([1.0]), 2.0) - 1.0).tolist() == [2.0**-23]
    True
    """
    return _nextafter(x, y)


# signbit

_signbit = entry_point(defop(
    "signbit",
    inputs="x",
    infer=predicate,
    kernel="signbit",
    accepts="floating",
    why_no_gradient="its result is boolean",
))  # fmt: skip


def signbit(x: TensorLike, /) -> Tensor:
    """Whether each element carries a minus sign, as -0.0 does; floating.

    >>> import limelight as ll
    >>> ll.signbit(ll.constant([-0.0, 0.0, -3.0])).tolist()
    [True, False, True]
    """
    return _signbit(x)

"""Floating-point numbers as they are made: their sign, their neighbours, their length without overflow."""

from __future__ import annotations

import math
from typing import Any

from limelight.core.eager import entry
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._shape_rules import broadcast, predicate

__all__ = ["copysign", "hypot", "nextafter", "signbit"]

# copysign


def _unit(x: Any) -> Any:
    """1 with the sign of each element, or of a Python number."""
    return _copysign(1.0, x) if isinstance(x, Tensor) else math.copysign(1.0, x)


_copysign = entry(defop(
    "copysign",
    inputs="x y",
    infer=broadcast("copysign"),
    kernel="copysign",
    accepts="floating",
    vjp={
        "x": lambda g, x, y, x_shape: (g * (_unit(x) * _unit(y))).sum_to(x_shape),
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


# hypot


def _cosine(x: Any, out: Tensor) -> Any:
    return x / (out == 0.0).where(1.0, out)


_hypot = entry(defop(
    "hypot",
    inputs="x y",
    infer=broadcast("hypot"),
    kernel="hypot",
    accepts="floating",
    vjp={
        "x": lambda g, x, out, x_shape: (g * _cosine(x, out)).sum_to(x_shape),
        "y": lambda g, y, out, y_shape: (g * _cosine(y, out)).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ x / z", "y": "ȳ = z̄ y / z"},
))  # fmt: skip


def hypot(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The square root of x² + y², element by element, without overflow, broadcasting; floating. Its gradient is 0 at 0.

    >>> import limelight as ll
    >>> ll.hypot(ll.constant([3.0]), 4.0).tolist()
    [5.0]
    """
    return _hypot(x, y)


# nextafter

_nextafter = entry(defop(
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

_signbit = entry(defop(
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

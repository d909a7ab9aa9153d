"""Trigonometric functions: `sin`, `cos`, `tan`, their inverses, `atan2`, and `hypot`."""

from __future__ import annotations

from typing import Any

from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.ops._domains import BETWEEN_ONES
from limelight.ops._gradient_terms import finite
from limelight.ops._shape_rules import broadcast, same

__all__ = ["acos", "asin", "atan", "atan2", "cos", "hypot", "sin", "tan"]

# sin

_sin = entry_point(defop(
    "sin",
    inputs="x",
    infer=same,
    kernel="sin",
    accepts="inexact",
    vjp={"x": lambda g, x: g * x.cos().conj()},
    maths={"x": "x̄ = ȳ cos(x)*"},
))  # fmt: skip


@method("sin")
def sin(x: TensorLike, /) -> Tensor:
    """The sine of each element, in radians; floating or complex.

    >>> import limelight as ll
    >>> ll.sin(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _sin(x)


# cos

_cos = entry_point(defop(
    "cos",
    inputs="x",
    infer=same,
    kernel="cos",
    accepts="inexact",
    vjp={"x": lambda g, x: -g * x.sin().conj()},
    maths={"x": "x̄ = -ȳ sin(x)*"},
))  # fmt: skip


@method("cos")
def cos(x: TensorLike, /) -> Tensor:
    """The cosine of each element, in radians; floating or complex.

    >>> import limelight as ll
    >>> ll.cos(ll.constant([0.0])).tolist()
    [1.0]
    """
    return _cos(x)


# tan

_tan = entry_point(defop(
    "tan",
    inputs="x",
    infer=same,
    kernel="tan",
    accepts="inexact",
    vjp={"x": lambda g, out: g * (out * out + 1.0).conj()},
    maths={"x": "x̄ = ȳ (1 + y²)*"},
))  # fmt: skip


def tan(x: TensorLike, /) -> Tensor:
    """The tangent of each element, in radians; floating or complex.

    >>> import limelight as ll
    >>> ll.tan(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _tan(x)


# asin

_asin = entry_point(defop(
    "asin",
    inputs="x",
    infer=same,
    kernel="arcsin",
    accepts="inexact",
    vjp={"x": lambda g, x: g / (1.0 - x * x).sqrt().conj()},
    maths={"x": "x̄ = ȳ / √(1 - x²)*"},
    domain=BETWEEN_ONES,
))  # fmt: skip


def asin(x: TensorLike, /) -> Tensor:
    """The angle between -π/2 and π/2 whose sine is x; floating or complex. NaN for real numbers outside [-1, 1].

    >>> import limelight as ll
    >>> ll.asin(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _asin(x)


# acos

_acos = entry_point(defop(
    "acos",
    inputs="x",
    infer=same,
    kernel="arccos",
    accepts="inexact",
    vjp={"x": lambda g, x: -g / (1.0 - x * x).sqrt().conj()},
    maths={"x": "x̄ = -ȳ / √(1 - x²)*"},
    domain=BETWEEN_ONES,
))  # fmt: skip


def acos(x: TensorLike, /) -> Tensor:
    """The angle between 0 and π whose cosine is x; floating or complex. NaN for real numbers outside [-1, 1].

    >>> import limelight as ll
    >>> ll.acos(ll.constant([1.0])).tolist()
    [0.0]
    """
    return _acos(x)


# atan


def _atan_gradient(g: Tensor, x: Tensor) -> Tensor:
    if x.dtype.kind == "c":
        return g / (x * x + 1.0).conj()
    near = finite(x)
    return g / (near * near + 1.0)


_atan = entry_point(defop(
    "atan",
    inputs="x",
    infer=same,
    kernel="arctan",
    accepts="inexact",
    vjp={"x": _atan_gradient},
    maths={"x": "x̄ = ȳ / (1 + x²)*"},
))  # fmt: skip


def atan(x: TensorLike, /) -> Tensor:
    """The angle between -π/2 and π/2 whose tangent is x; floating or complex.

    >>> import limelight as ll
    >>> ll.atan(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _atan(x)


# atan2

_atan2 = entry_point(defop(
    "atan2",
    inputs="y x",
    infer=broadcast("atan2"),
    kernel="arctan2",
    accepts="floating",
    vjp={
        "y": lambda g, y, x, y_shape: (g * (x / (x * x + y * y))).sum_to(y_shape),
        "x": lambda g, y, x, x_shape: (-g * (y / (x * x + y * y))).sum_to(x_shape),
    },
    maths={"y": "ȳ = z̄ x / (x² + y²)", "x": "x̄ = -z̄ y / (x² + y²)"},
))  # fmt: skip


def atan2(y: TensorLike, x: TensorLike, /) -> Tensor:
    """The angle of the point (x, y) with the positive x axis, between -π and π, broadcasting; floating.

    >>> import limelight as ll
    >>> ll.atan2(ll.constant([0.0]), ll.constant([1.0])).tolist()
    [0.0]
    """
    return _atan2(y, x)


# hypot


def _ratio_or_zero(x: Any, out: Tensor) -> Any:
    return x / (out == 0.0).where(1.0, out)


_hypot = entry_point(defop(
    "hypot",
    inputs="x y",
    infer=broadcast("hypot"),
    kernel="hypot",
    accepts="floating",
    vjp={
        "x": lambda g, x, out, x_shape: (g * _ratio_or_zero(x, out)).sum_to(x_shape),
        "y": lambda g, y, out, y_shape: (g * _ratio_or_zero(y, out)).sum_to(y_shape),
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

"""Hyperbolic functions and their inverses: `sinh`, `cosh`, `tanh`, `asinh`, `acosh`, `atanh`.

Where NumPy differs from the standard for complex infinities (`tanh`), an op of its own takes complex operands
(`entry(op, of_complex=...)`), so that for real ones the kernel stays NumPy's ufunc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from limelight.core.eager import entry_point
from limelight.core.op import Domain, defop
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.ops._domains import BETWEEN_ONES
from limelight.ops._gradient_terms import finite
from limelight.ops._shape_rules import same

__all__ = ["acosh", "asinh", "atanh", "cosh", "sinh", "tanh"]

# sinh

_sinh = entry_point(defop(
    "sinh",
    inputs="x",
    infer=same,
    kernel="sinh",
    accepts="inexact",
    vjp={"x": lambda g, x: g * cosh(x).conj()},
    maths={"x": "x̄ = ȳ cosh(x)*"},
))  # fmt: skip


def sinh(x: TensorLike, /) -> Tensor:
    """The hyperbolic sine of each element; floating or complex.

    >>> import limelight as ll
    >>> ll.sinh(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _sinh(x)


# cosh

_cosh = entry_point(defop(
    "cosh",
    inputs="x",
    infer=same,
    kernel="cosh",
    accepts="inexact",
    vjp={"x": lambda g, x: g * sinh(x).conj()},
    maths={"x": "x̄ = ȳ sinh(x)*"},
))  # fmt: skip


def cosh(x: TensorLike, /) -> Tensor:
    """The hyperbolic cosine of each element; floating or complex.

    >>> import limelight as ll
    >>> ll.cosh(ll.constant([0.0])).tolist()
    [1.0]
    """
    return _cosh(x)


# tanh


def _tanh_of_complex_kernel(xp: Any, x: Any) -> Any:
    """Where the real part is infinite, the imaginary part is a zero of the operand's sign, as the Array API has it."""
    result = xp.tanh(x)
    infinite = xp.isinf(x.real)
    if xp is np and not infinite.any():  # elsewhere to ask would wait for the device, or cannot be done in a trace
        return result
    upper = xp.where(infinite, result.real, 0) + 1j * xp.zeros_like(x.real)
    settled = xp.where(x.imag < 0, upper.conj(), upper).astype(x.dtype)
    return xp.where(infinite, settled, result)


_tanh_of_complex = defop(
    "tanh_of_complex",
    inputs="x",
    infer=same,
    kernel=_tanh_of_complex_kernel,
    accepts="complex",
    vjp={"x": lambda g, out: g * (1.0 - out * out).conj()},
    maths={"x": "x̄ = ȳ (1 - y²)*"},
)

_tanh = entry_point(defop(
    "tanh",
    inputs="x",
    infer=same,
    kernel="tanh",
    accepts="floating",
    vjp={"x": lambda g, out: g * (1.0 - out * out)},
    maths={"x": "x̄ = ȳ (1 - y²)"},
), of_complex=_tanh_of_complex)  # fmt: skip


@method("tanh")
def tanh(x: TensorLike, /) -> Tensor:
    """The hyperbolic tangent of each element; floating or complex.

    >>> import limelight as ll
    >>> ll.tanh(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _tanh(x)


# asinh


def _asinh_gradient(g: Tensor, x: Tensor) -> Tensor:
    """ȳ / √(x² + 1)*, where x² may be out of range: both are scaled down first."""
    if x.dtype.kind == "c":
        return g / (x * x + 1.0).sqrt().conj()
    near = finite(x)
    size = abs(near)
    scale = 1.0 / (size > 1.0).where(size, 1.0)
    scaled = near * scale
    slope: Tensor = scale / (scaled * scaled + scale * scale).sqrt()
    return g * (abs(x) == math.inf).where(0.0, slope)


_asinh = entry_point(defop(
    "asinh",
    inputs="x",
    infer=same,
    kernel="arcsinh",
    accepts="inexact",
    vjp={"x": _asinh_gradient},
    maths={"x": "x̄ = ȳ / √(x² + 1)*"},
))  # fmt: skip


def asinh(x: TensorLike, /) -> Tensor:
    """The inverse hyperbolic sine of each element; floating or complex.

    >>> import limelight as ll
    >>> ll.asinh(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _asinh(x)


# acosh


def _acosh_gradient(g: Tensor, x: Tensor) -> Tensor:
    """ȳ / (√(x - 1) √(x + 1))*, with its limit, zero, at infinity: the derivatives of it are zero there as well."""
    if x.dtype.kind == "c":
        return g / ((x - 1.0).sqrt() * (x + 1.0).sqrt()).conj()
    infinite = x == math.inf
    near = infinite.where(2.0, x)
    return g * infinite.where(0.0, (1.0 / (near - 1.0).sqrt()) * (1.0 / (near + 1.0).sqrt()))


_acosh = entry_point(defop(
    "acosh",
    inputs="x",
    infer=same,
    kernel="arccosh",
    accepts="inexact",
    vjp={"x": _acosh_gradient},
    maths={"x": "x̄ = ȳ / (√(x - 1) √(x + 1))*"},
    domain=Domain(0, "{x} > 1", "2", "the slope is infinite at 1, below it is NaN", "{ll}.maximum({x}, 1.000001)"),
))  # fmt: skip


def acosh(x: TensorLike, /) -> Tensor:
    """The inverse hyperbolic cosine of each element; floating or complex. NaN for real numbers below 1.

    >>> import limelight as ll
    >>> ll.acosh(ll.constant([1.0])).tolist()
    [0.0]
    """
    return _acosh(x)


# atanh

_atanh = entry_point(defop(
    "atanh",
    inputs="x",
    infer=same,
    kernel="arctanh",
    accepts="inexact",
    vjp={"x": lambda g, x: g / (1.0 - x * x).conj()},
    maths={"x": "x̄ = ȳ / (1 - x²)*"},
    domain=BETWEEN_ONES,
))  # fmt: skip


def atanh(x: TensorLike, /) -> Tensor:
    """The inverse hyperbolic tangent of each element; floating or complex. Infinite at -1 and 1, NaN beyond.

    >>> import limelight as ll
    >>> ll.atanh(ll.constant([0.0, 1.0])).tolist()
    [0.0, inf]
    """
    return _atanh(x)

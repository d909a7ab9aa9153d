"""The inverses of the hyperbolic functions."""

from __future__ import annotations

from limelight.core.eager import entry
from limelight.core.op import Domain, defop
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._domains import BETWEEN_ONES
from limelight.ops._shape_rules import same

__all__ = ["acosh", "asinh", "atanh"]

# asinh

_asinh = entry(defop(
    "asinh",
    inputs="x",
    infer=same,
    kernel="arcsinh",
    accepts="inexact",
    vjp={"x": lambda g, x: g / (x * x + 1.0).sqrt().conj()},
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

_acosh = entry(defop(
    "acosh",
    inputs="x",
    infer=same,
    kernel="arccosh",
    accepts="inexact",
    vjp={"x": lambda g, x: g / ((x - 1.0).sqrt() * (x + 1.0).sqrt()).conj()},
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

_atanh = entry(defop(
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

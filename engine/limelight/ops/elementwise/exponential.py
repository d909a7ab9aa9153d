"""Powers of e, logarithms and roots of each element."""

from __future__ import annotations

from typing import Any

from limelight.core.eager import entry
from limelight.core.op import Domain, defop
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.ops._domains import LOGARITHM
from limelight.ops._shape_rules import same

__all__ = ["exp", "expm1", "log", "log1p", "reciprocal", "rsqrt", "sigmoid", "sqrt"]

# sqrt

_sqrt = entry(defop(
    "sqrt",
    inputs="x",
    infer=same,
    kernel="sqrt",
    accepts="inexact",
    vjp={"x": lambda g, out: g * 0.5 / out.conj()},
    maths={"x": "x̄ = ȳ / 2y*"},
    domain=Domain(
        0,
        "{x} > 0",
        "1",
        "the square root of a negative number is NaN, and its slope at 0 infinite (ll.linalg.norm(x) has 0 there)",
    ),
))  # fmt: skip


@method("sqrt")
def sqrt(x: TensorLike, /) -> Tensor:
    """The square root of each element; floating or complex. NaN for negative real numbers.

    >>> import limelight as ll
    >>> ll.sqrt(ll.constant([4.0, 9.0])).tolist()
    [2.0, 3.0]
    """
    return _sqrt(x)


# rsqrt

_rsqrt = entry(defop(
    "rsqrt",
    inputs="x",
    infer=same,
    kernel=lambda xp, x: xp.reciprocal(xp.sqrt(x)),
    accepts="inexact",
    vjp={"x": lambda g, out: g * -0.5 * (out * out * out).conj()},
    maths={"x": "x̄ = -ȳ y³* / 2"},
    domain=Domain(0, "{x} > 0", "1", "1/sqrt(x) is infinite at 0, and NaN below"),
))  # fmt: skip


def rsqrt(x: TensorLike, /) -> Tensor:
    """One over the square root of each element; floating or complex.

    >>> import limelight as ll
    >>> ll.rsqrt(ll.constant([4.0, 16.0])).tolist()
    [0.5, 0.25]
    """
    return _rsqrt(x)


# reciprocal

_reciprocal = entry(defop(
    "reciprocal",
    inputs="x",
    infer=same,
    kernel="reciprocal",
    accepts="inexact",
    vjp={"x": lambda g, out: -g * (out * out).conj()},
    maths={"x": "x̄ = -ȳ y²*"},
    domain=Domain(0, "{x} != 0", "1", "1/x is infinite at 0, and so is its gradient"),
))  # fmt: skip


def reciprocal(x: TensorLike, /) -> Tensor:
    """One over each element; floating or complex.

    >>> import limelight as ll
    >>> ll.reciprocal(ll.constant([2.0, -4.0])).tolist()
    [0.5, -0.25]
    """
    return _reciprocal(x)


# exp

_exp = entry(defop(
    "exp",
    inputs="x",
    infer=same,
    kernel="exp",
    accepts="inexact",
    vjp={"x": lambda g, out: g * out.conj()},
    maths={"x": "x̄ = ȳ y*"},
))  # fmt: skip


@method("exp")
def exp(x: TensorLike, /) -> Tensor:
    """E to the power of each element; floating or complex.

    >>> import limelight as ll
    >>> ll.exp(ll.constant([0.0, -float("inf")])).tolist()
    [1.0, 0.0]
    """
    return _exp(x)


# expm1


def _expm1_of_complex_kernel(xp: Any, x: Any) -> Any:
    """Infinities and NaNs by way of exp, whose rules for them are the standard's."""
    found = xp.expm1(x)
    finite = xp.isfinite(found)
    found = found if finite.all() else xp.where(finite, found, xp.exp(x) - 1)
    return xp.where(x == 0, x - x.real, found)  # of a negative zero 0, not -0


_expm1_of_complex = defop(
    "expm1_of_complex",
    inputs="x",
    infer=same,
    kernel=_expm1_of_complex_kernel,
    accepts="complex",
    vjp={"x": lambda g, out: g * (out + 1.0).conj()},
    maths={"x": "x̄ = ȳ (y + 1)*"},
)

_expm1 = entry(defop(
    "expm1",
    inputs="x",
    infer=same,
    kernel="expm1",
    accepts="floating",
    vjp={"x": lambda g, out: g * (out + 1.0)},
    maths={"x": "x̄ = ȳ (y + 1)"},
), of_complex=_expm1_of_complex)  # fmt: skip


def expm1(x: TensorLike, /) -> Tensor:
    """exp(x) - 1 for each element, accurate near 0; floating or complex.

    >>> import limelight as ll
    >>> ll.expm1(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _expm1(x)


# log

_log = entry(defop(
    "log",
    inputs="x",
    infer=same,
    kernel="log",
    accepts="inexact",
    vjp={"x": lambda g, x: g / x.conj()},
    maths={"x": "x̄ = ȳ / x*"},
    domain=LOGARITHM,
))  # fmt: skip


@method("log")
def log(x: TensorLike, /) -> Tensor:
    """The natural logarithm of each element; floating or complex. -inf at 0, NaN below.

    >>> import limelight as ll
    >>> ll.log(ll.constant([1.0, 0.0])).tolist()
    [0.0, -inf]
    """
    return _log(x)


# log1p

_log1p = entry(defop(
    "log1p",
    inputs="x",
    infer=same,
    kernel="log1p",
    accepts="inexact",
    vjp={"x": lambda g, x: g / (x + 1.0).conj()},
    maths={"x": "x̄ = ȳ / (1 + x)*"},
    domain=Domain(0, "{x} > -1", "0", "log(1 + x) and its slope are infinite at -1, below it is NaN"),
))  # fmt: skip


def log1p(x: TensorLike, /) -> Tensor:
    """log(1 + x) for each element, accurate near 0; floating or complex.

    >>> import limelight as ll
    >>> ll.log1p(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _log1p(x)


# sigmoid


def _sigmoid_kernel(xp: Any, x: Any) -> Any:
    return xp.reciprocal(xp.exp(-x) + 1)  # exp may overflow to inf, whose reciprocal is the right 0


_sigmoid = entry(defop(
    "sigmoid",
    inputs="x",
    infer=same,
    kernel=_sigmoid_kernel,
    accepts="floating",
    vjp={"x": lambda g, out: g * (out * (1.0 - out))},
    maths={"x": "x̄ = ȳ y (1 - y)"},
))  # fmt: skip


@method("sigmoid")
def sigmoid(x: TensorLike, /) -> Tensor:
    """1 / (1 + exp(-x)) for each element; floating.

    >>> import limelight as ll
    >>> ll.sigmoid(ll.constant([0.0])).tolist()
    [0.5]
    """
    return _sigmoid(x)

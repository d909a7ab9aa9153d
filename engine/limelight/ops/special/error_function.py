"""The error function (`erf`, `erfc`, `erfcx`, `erfinv`) and the normal distribution (`ndtr`, `ndtri`, `log_ndtr`)."""

from __future__ import annotations

import math
from typing import Any, Final

from limelight.core import shapes
from limelight.core.dtypes import float32, float64
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._shape_rules import SHORT, same
from limelight.ops.special._scipy import alike, functions, kernels, scaled_erfc, unary
from limelight.ops.special._tail_integrals import erfcx_slope

__all__ = ["erf", "erfc", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]

_SLOPE: Final = 2.0 / math.sqrt(math.pi)  # of erf at 0
_HALF_WIDTH: Final = math.sqrt(2.0 * math.pi)
_ROOT_HALF: Final = math.sqrt(0.5)

_FLAT: Final = 64.0
"""From here on exp(-x²/2) is 0 in every dtype."""

_STRAIGHT: Final = 1e8
"""Below minus this, log_ndtr is a parabola to the last bit: its slope is -x."""
_STRAIGHT_SHORT: Final = 1e4
"""The same in 32 bits and less."""


def _bell(x: Tensor, factor: float) -> Tensor:
    """exp(factor x²), of which each derivative is 0 at infinity."""
    near = x.clip(-_FLAT, _FLAT)
    return (factor * near * near).exp()


# erf

_erf = entry_point(defop(
    "erf",
    inputs="x",
    infer=same,
    **kernels(unary, "erf"),
    accepts="floating",
    vjp={"x": lambda g, x: g * _SLOPE * _bell(x, -1.0)},
    maths={"x": "x̄ = 2 ȳ exp(-x²) / √π"},
))  # fmt: skip


def erf(x: TensorLike, /) -> Tensor:
    """The error function, 2/√π times the integral of exp(-t²) from 0 to each element; floating.

    >>> import limelight as ll
    >>> ll.erf(ll.constant([0.0, float("inf")])).tolist()
    [0.0, 1.0]
    """
    return _erf(x)


# erfc

_erfc = entry_point(defop(
    "erfc",
    inputs="x",
    infer=same,
    **kernels(unary, "erfc"),
    accepts="floating",
    vjp={"x": lambda g, x: g * -_SLOPE * _bell(x, -1.0)},
    maths={"x": "x̄ = -2 ȳ exp(-x²) / √π"},
))  # fmt: skip


def erfc(x: TensorLike, /) -> Tensor:
    """1 - erf(x) for each element, accurate for large x; floating.

    >>> import limelight as ll
    >>> ll.erfc(ll.constant([0.0, float("inf")])).tolist()
    [1.0, 0.0]
    """
    return _erfc(x)


# erfcx


def _erfcx_kernel(xp: Any, x: Any, order: int) -> Any:
    """The derivative of the given order."""
    if order:
        return erfcx_slope(xp, x, order)
    return scaled_erfc(xp, x.astype(float32) if x.dtype in SHORT else x).astype(x.dtype)


_erfcx: EntryPoint = entry_point(defop(
    "erfcx",
    inputs="x",
    attrs="order",
    infer=same,
    kernel=_erfcx_kernel,
    accepts="floating",
    vjp={"x": lambda g, x, order: g * _erfcx(x, order + 1)},
    maths={"x": "x̄ = ȳ erfcx⁽ⁿ⁺¹⁾(x)"},
))  # fmt: skip


def erfcx(x: TensorLike, /) -> Tensor:
    """exp(x²) erfc(x) for each element, without overflow for large x; floating.

    >>> import limelight as ll
    >>> ll.erfcx(ll.constant([0.0])).tolist()
    [1.0]
    """
    return _erfcx(x, 0)


# erfinv

_erfinv = entry_point(defop(
    "erfinv",
    inputs="x",
    infer=same,
    **kernels(unary, "erfinv"),
    accepts="floating",
    vjp={"x": lambda g, out: g / _SLOPE * (out * out).exp()},
    maths={"x": "x̄ = ȳ exp(y²) √π / 2"},
))  # fmt: skip


def erfinv(x: TensorLike, /) -> Tensor:
    """The inverse of `erf` for each element; floating. Infinite at -1 and 1, NaN beyond.

    >>> import limelight as ll
    >>> ll.erfinv(ll.constant([0.0, 1.0, 2.0])).tolist()
    [0.0, inf, nan]
    """
    return _erfinv(x)


# ndtr

_ndtr = entry_point(defop(
    "ndtr",
    inputs="x",
    infer=same,
    **kernels(unary, "ndtr"),
    accepts="floating",
    vjp={"x": lambda g, x: g / _HALF_WIDTH * _bell(x, -0.5)},
    maths={"x": "x̄ = ȳ exp(-x²/2) / √2π"},
))  # fmt: skip


def ndtr(x: TensorLike, /) -> Tensor:
    """The probability that a normally distributed number is below each element; floating.

    >>> import limelight as ll
    >>> ll.ndtr(ll.constant([0.0, float("inf")])).tolist()
    [0.5, 1.0]
    """
    return _ndtr(x)


# ndtri

_ndtri = entry_point(defop(
    "ndtri",
    inputs="p",
    infer=same,
    **kernels(unary, "ndtri"),
    accepts="floating",
    vjp={"p": lambda g, out: g * _HALF_WIDTH * (0.5 * out * out).exp()},
    maths={"p": "p̄ = ȳ √2π exp(y²/2)"},
))  # fmt: skip


def ndtri(p: TensorLike, /) -> Tensor:
    """The number that a normally distributed one is below with each probability: the inverse of `ndtr`; floating.

    Infinite at 0 and 1, NaN beyond.

    >>> import limelight as ll
    >>> ll.ndtri(ll.constant([0.5, 0.0])).tolist()
    [0.0, -inf]
    """
    return _ndtri(p)


# log_ndtr


def _log_ndtr_slope(g: Tensor, x: Tensor) -> Tensor:
    """The gradient times density over probability, in the form that keeps its own derivatives finite on either side."""
    above = x > 0
    straight = _STRAIGHT if x.dtype == float64 else _STRAIGHT_SHORT
    low, high = x.clip(-straight, 0.0), x.clip(0.0, _FLAT)
    left = (x < -straight).where(-x, (2.0 / _HALF_WIDTH) / _erfcx(low * -_ROOT_HALF, 0))
    right = (-0.5 * high * high - _log_ndtr(high)).exp() / _HALF_WIDTH
    return g * above.where(right, left)


_log_ndtr: EntryPoint = entry_point(defop(
    "log_ndtr",
    inputs="x",
    infer=same,
    **kernels(unary, "log_ndtr"),
    accepts="floating",
    vjp={"x": _log_ndtr_slope},
    maths={"x": "x̄ = ȳ exp(-x²/2) / (√2π ndtr(x))"},
))  # fmt: skip


def log_ndtr(x: TensorLike, /) -> Tensor:
    """log(ndtr(x)) for each element, accurate far below 0; floating.

    >>> import limelight as ll
    >>> round(ll.log_ndtr(ll.constant(-100.0)).item(), 2)
    -5005.52
    """
    return _log_ndtr(x)


# truncated_normal_quantile


def _between(u: TensorSpec, low: TensorSpec, high: TensorSpec) -> TensorSpec:
    name = "random.truncated_normal"
    return known(shapes.broadcast(name, shapes.broadcast(name, low.shape, high.shape), u.shape), u.dtype)


def _quantile_kernel(xp: Any, u: Any, low: Any, high: Any) -> Any:
    """By logarithms of probabilities, on the side of 0 where they are accurate, in 64 bits."""
    lib = functions(xp)
    u, a, b = (xp.asarray(x) for x in (u, low, high))
    dtype = u.dtype
    u, a, b = (x.astype(float64) for x in (u, a, b))
    flip = a + b > 0
    u, a, b = xp.where(flip, 1.0 - u, u), xp.where(flip, -b, a), xp.where(flip, -a, b)
    below, above = lib.log_ndtr(a), lib.log_ndtr(b)
    share = xp.where(below == -xp.inf, xp.log(u), below - above + xp.log1p(u * xp.expm1(above - below)))
    quantile = lib.ndtri_exp(above + share) if hasattr(lib, "ndtri_exp") else lib.ndtri(xp.exp(above + share))
    quantile = xp.clip(quantile, a, b)
    return xp.where(flip, -quantile, quantile).astype(dtype)


def _low_slope(g: Tensor, u: Any, low: Any, out: Tensor, low_shape: Any) -> Tensor:
    slope: Tensor = g * (1.0 - u) * (0.5 * (out - low) * (out + low)).exp()
    return slope.sum_to(low_shape)


def _high_slope(g: Tensor, u: Any, high: Any, out: Tensor, high_shape: Any) -> Tensor:
    slope: Tensor = g * u * (0.5 * (out - high) * (out + high)).exp()
    return slope.sum_to(high_shape)


def _share_slope(g: Tensor, low: Any, high: Any, out: Tensor, u_shape: Any) -> Tensor:
    slope: Tensor = g * _HALF_WIDTH * (_ndtr(high) - _ndtr(low)) * (0.5 * out * out).exp()
    return slope.sum_to(u_shape)


_truncated_normal_quantile = entry_point(defop(
    "truncated_normal_quantile",
    inputs="u low high",
    infer=_between,
    kernel=_quantile_kernel,
    accepts="floating",
    vjp={"u": _share_slope, "low": _low_slope, "high": _high_slope},
    maths={
        "u": "ū = ȳ √2π (ndtr(high) - ndtr(low)) exp(y²/2)",
        "low": "low' = ȳ (1 - u) exp((y² - low²)/2)",
        "high": "high' = ȳ u exp((y² - high²)/2)",
    },
    batching="elementwise",
))  # fmt: skip


def truncated_normal_quantile(u: TensorLike, low: TensorLike, high: TensorLike, /) -> Tensor:
    """The number that a standard normal one between `low` and `high` is below with probability `u`; floating.

    Accurate far from 0, where the probability of the interval itself is too small for a number.
    """
    return _truncated_normal_quantile(alike(u, low, high))

"""How the incomplete gamma and beta functions change with their parameters: integrals over a tail of their densities.

With t = log x (gamma) or t = logit x (beta) both functions are integrals F(t) of a log-concave weight exp h(s) from
-inf to t, divided by a normaliser. Each derivative in a parameter brings a factor down into the integral; the factors
add up to Bell polynomials of the log-density's derivatives in its parameters, its cumulants. The integral runs over the
tail on the far side of the mode from t (the whole integrates to a constant), where the weight falls from its value at
t, so that nothing cancels, over- or underflows. The substitution s = t ± c exp(v - exp(-v)) (Takahasi and Mori 1974,
for integrands that decay exponentially) makes equally spaced points converge like exp(-n / log n): with the step below
to about 12 digits (8 at the extremes: parameters of 1e6, or 1e-3 beside 1e4). These derivatives give the implicit
reparameterisation gradients of Figurnov et al. (2018); Moore (1982) has series, which serve small parameters only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from limelight.core.backends import is_cupy
from limelight.core.dtypes import float64
from limelight.ops.special._scipy import functions, scaled_erfc

_STEP: Final = 0.06
_V: Final = np.arange(-3.72, 3.78, _STEP)
_POINTS: Final = np.exp(_V - np.exp(-_V))
_WEIGHTS: Final = _STEP * _POINTS * (1.0 + np.exp(-_V))
_BLOCK: Final = 2048
"""Elements for which all points are held at a time."""
_NEWTON: Final = 9

Cumulant = Callable[[int, int], Any]
Fall = Callable[[Any], tuple[Any, Any]]
"""How far log-density falls over a distance, and how steeply it does there."""


def bell(m: int, n: int, cumulant: Cumulant) -> Any:
    """The (m, n)-th derivative of exp(f(a, b)) over itself; `cumulant(i, j)` are f's own derivatives, 1 <= i + j."""

    @functools.cache
    def moment(m: int, n: int) -> Any:
        if m == n == 0:
            return 1.0
        if m:
            places = [(i, j) for i in range(m) for j in range(n + 1)]
            terms = [(comb(m - 1, i) * comb(n, j), (m - 1 - i, n - j), (i + 1, j)) for i, j in places]
        else:
            terms = [(comb(n - 1, j), (0, n - 1 - j), (0, j + 1)) for j in range(n)]
        return sum(cumulant(*order) * moment(*rest) * factor for factor, rest, order in terms)

    comb = math.comb
    return moment(m, n)


def gamma_tail(xp: Any, a: Any, t: Any, order: int) -> Any:
    """How gammainc(a, exp t) changes with a, over its derivative in t.

    Args:
        xp: the array library.
        a: the parameter.
        t: the logarithm of the argument.
        order: of the derivative in a, at least 1.

    Returns:
        An array of the operands' common shape.
    """
    return _blocks(xp, functools.partial(_gamma, xp, order), a, t)


def beta_tail(xp: Any, a: Any, b: Any, x: Any, m: int, n: int) -> Any:
    """How betainc(a, b, x) changes with a and b, over its derivative in logit x.

    Args:
        xp: the array library.
        a: the first parameter.
        b: the second parameter.
        x: the argument, from 0 to 1.
        m: the order of the derivative in a.
        n: the order of the derivative in b.

    Returns:
        An array of the operands' common shape.
    """
    return _blocks(xp, functools.partial(_beta, xp, m, n), a, b, x)


def erfcx_slope(xp: Any, x: Any, order: int) -> Any:
    """The `order`-th derivative of exp(x²) erfc(x), at least the first."""
    return _blocks(xp, functools.partial(_erfcx, xp, order), x)


def _blocks(xp: Any, run: Callable[..., Any], *operands: Any) -> Any:
    """`run` on the broadcast operands in 64 bits, a few at a time where they are many; in the operands' dtype.

    `run` gets them with a last axis of size 1, for the points.
    """
    dtype = next(x.dtype for x in operands if hasattr(x, "dtype"))
    arrays = xp.broadcast_arrays(*[xp.asarray(x).astype(float64) for x in operands])
    if getattr(xp, "__name__", "") == "jax.numpy" or arrays[0].size <= _BLOCK:
        return run(*[x[..., None] for x in arrays]).astype(dtype)
    flat = [x.reshape(-1, 1) for x in arrays]
    parts = [run(*[x[i : i + _BLOCK] for x in flat]) for i in range(0, len(flat[0]), _BLOCK)]
    return xp.concatenate(parts).reshape(arrays[0].shape).astype(dtype)


def _erfcx(xp: Any, order: int, x: Any) -> Any:
    """For positive x the tail of a normal density with powers, below the recurrence, where all terms have one sign."""
    right = xp.clip(x, 0.0, 1e150)
    width = 1.0 / (right + xp.sqrt(right * right + 1.0))
    d = width * xp.asarray(_POINTS)
    total = xp.sum((-2.0 * d) ** order * xp.exp(-d * (d + 2.0 * right)) * xp.asarray(_WEIGHTS), axis=-1, keepdims=True)
    slope = 2.0 / math.sqrt(math.pi)
    left = xp.minimum(x, 0.0)
    before, last = scaled_erfc(xp, left), 0.0
    before, last = 2.0 * left * before - slope, before
    for n in range(1, order):
        before, last = 2.0 * left * before + 2.0 * n * last, before
    return xp.where(x > 0, slope * width * total, xp.where(xp.isnan(x), x, before))[..., 0]


def _gamma(xp: Any, order: int, a: Any, t: Any) -> Any:
    lib = functions(xp)
    t = xp.where(a > 0, t, xp.nan)
    inside, outside = xp.isfinite(t) & xp.isfinite(a), xp.where(xp.isnan(a + t), xp.nan, 0.0)
    a, t = xp.where(inside, a, 1.0), xp.where(inside, t, 0.0)
    x = xp.exp(t)
    side = xp.where(x > a, 1.0, -1.0)

    def fall(d: Any) -> tuple[Any, Any]:
        return x * xp.expm1(side * d) - side * a * d, side * (x * xp.exp(side * d) - a)

    most = xp.where(side > 0, xp.log1p(1.0 / x) + 1.0, xp.inf)
    width = _width(xp, fall, xp.abs(x - a), x, most)
    d = width * xp.asarray(_POINTS)
    constants = {k: -_polygamma(xp, k - 1, a) for k in range(2, order + 1)}
    cumulants = {1: t - lib.digamma(a) + side * d} | constants
    factor = bell(order, 0, lambda i, j: cumulants[i])
    integral = -side * width * xp.sum(factor * xp.exp(-fall(d)[0]) * xp.asarray(_WEIGHTS), axis=-1, keepdims=True)
    return xp.where(inside, integral, outside)[..., 0]


def _beta(xp: Any, m: int, n: int, a: Any, b: Any, x: Any) -> Any:
    lib = functions(xp)
    sound = (a > 0) & (b > 0) & (x >= 0) & (x <= 1) & xp.isfinite(a + b)
    inside = sound & (x > 0) & (x < 1)
    a, b, x = xp.where(inside, a, 1.0), xp.where(inside, b, 1.0), xp.where(inside, x, 0.5)
    up = (a + b) * x > a
    rate, near = xp.where(up, b, a), xp.where(up, 1.0 - x, x)  # how fast the tail falls; what is left on that side

    def fall(d: Any) -> tuple[Any, Any]:
        shrunk = near * xp.expm1(-d)
        steepness = rate - (a + b) * near * xp.exp(-d) / (1.0 + shrunk)
        close = (a + b) * xp.log1p((1.0 - near) * xp.expm1(xp.minimum(d, 1.0))) - (a + b - rate) * d
        return xp.where(d < 1.0, close, (a + b) * xp.log1p(shrunk) + rate * d), steepness

    width = _width(xp, fall, xp.abs((a + b) * x - a), (a + b) * x * (1.0 - x), xp.inf)
    d = width * xp.asarray(_POINTS)
    common = -xp.log1p(near * xp.expm1(-d)) + lib.digamma(a + b)
    cumulants = {
        (1, 0): xp.log(x) - xp.where(up, 0.0, d) + common - lib.digamma(a),
        (0, 1): xp.log1p(-x) - xp.where(up, d, 0.0) + common - lib.digamma(b),
    }
    polygamma = functools.partial(_polygamma, xp)
    factor = bell(m, n, lambda i, j: cumulants[i, j] if i + j == 1 else constant_cumulant(polygamma, a, b, i, j))
    area = width * xp.sum(factor * xp.exp(-fall(d)[0]) * xp.asarray(_WEIGHTS), axis=-1, keepdims=True)
    return xp.where(inside, xp.where(up, -area, area), xp.where(sound, 0.0, xp.nan))[..., 0]


def _polygamma(xp: Any, n: int, x: Any) -> Any:
    return functions(xp).polygamma(xp.asarray(n, dtype=x.dtype) if is_cupy(xp) else n, x)  # CuPy's takes no number


def constant_cumulant(polygamma: Callable[[int, Any], Any], a: Any, b: Any, i: int, j: int) -> Any:
    """The derivative of -log B(a, b), the logarithm of the beta density's normaliser.

    Args:
        polygamma: `polygamma(n, x)` for arrays, or for tensors.
        a: the first parameter.
        b: the second parameter.
        i: the order of the derivative in a.
        j: the order of the derivative in b; together they are 2 at least.

    Returns:
        An array or tensor of the operands' common shape.
    """
    both = polygamma(i + j - 1, a + b)
    if i and j:
        return both
    return both - polygamma(i + j - 1, a if i else b)


def _width(xp: Any, fall: Fall, slope: Any, curvature: Any, most: Any) -> Any:
    """The distance over which the log-density falls by 1, by Newton's method from its first two derivatives."""
    d = xp.minimum(2.0 / (slope + xp.sqrt(slope * slope + 2.0 * curvature)), most)
    for _ in range(_NEWTON):
        value, steepness = fall(d)
        d = xp.maximum(d - (value - 1.0) / xp.where(steepness > 0, steepness, 1.0), 0.1 * d)
    return d

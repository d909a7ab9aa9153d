"""Special functions: the kernels of limelight over values of the graph, in float64, and fits of SciPy's functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from limelight.core.dtypes import float64
from limelight.export.to_onnx.arrays import (
    cast,
    equal,
    expand,
    is_nan,
    like,
    maximum,
    minimum,
    shape_of,
    unary,
    unsqueeze,
    where,
)
from limelight.export.to_onnx.builder import Var
from limelight.export.to_onnx.lowerings.elementwise import expm1, is_infinite, log1p
from limelight.export.to_onnx.lowerings.fitted_functions import Namespace
from limelight.export.to_onnx.registry import Site, lowers
from limelight.ops.special import _tail_integrals, sinc


def _wide(site: Site, *operands: Var) -> tuple[Namespace, list[Var]]:
    """The library, and the operands in float64."""
    return Namespace(site.builder), [cast(x, float64) for x in operands]


@lowers("logit")
def _logit(site: Site, p: Var) -> Var:
    _, (wide,) = _wide(site, p)
    return unary("Log", wide) - log1p(-wide)


@lowers("zero_over")
def _zero_over(site: Site, x: Var, y: Var) -> Var:
    ratio = x / y
    return where(equal(x, 0) & is_nan(ratio) & ~is_nan(y), like(x, 0), ratio)


@lowers("xlogy", "xlog1py")
def _xlogy(site: Site, x: Var, y: Var) -> Var:
    xp, (x, y) = _wide(site, x, y)
    return getattr(xp.special_functions, site.node.op.name)(x, y)  # type: ignore[no-any-return]


@lowers("entr")
def _entr(site: Site, p: Var) -> Var:
    _, (p,) = _wide(site, p)
    inside = -p * unary("Log", p)
    edge = where(equal(p, 0), like(p, 0), where(p < 0, like(p, -math.inf), p))
    return where(p > 0, inside, edge)


@lowers("erf", "erfc", "erfinv", "ndtr", "ndtri", "log_ndtr", "lgamma", "digamma")
def _unary(site: Site, x: Var) -> Var:
    name = site.node.op.name
    if name == "erf" and x.dtype != float64:
        return unary("Erf", x)
    xp, (x,) = _wide(site, x)
    return getattr(xp.special_functions, name)(x)  # type: ignore[no-any-return]


@lowers("polygamma")
def _polygamma(site: Site, x: Var, n: int) -> Var:
    xp, (x,) = _wide(site, x)
    return xp.special_functions.polygamma(n, x)


@lowers("betaln")
def _betaln(site: Site, a: Var, b: Var) -> Var:
    xp, (a, b) = _wide(site, a, b)
    return xp.special_functions.betaln(a, b)


@lowers("sinc")
def _sinc(site: Site, x: Var, order: int) -> Var:
    return sinc._sinc_kernel(Namespace(site.builder), cast(x, float64), order)  # type: ignore[no-any-return]


@lowers("truncated_normal_quantile")
def _quantile(site: Site, u: Var, low: Var, high: Var) -> Var:
    """By logarithms of probabilities, on the side of 0 where they are accurate."""
    xp, (u, low, high) = _wide(site, u, low, high)
    lib = xp.special_functions
    flip = low + high > 0
    u = where(flip, like(u, 1.0) - u, u)
    a, b = where(flip, -high, low), where(flip, -low, high)
    below, above = lib.log_ndtr(a), lib.log_ndtr(b)
    share = below - above + log1p(u * expm1(above - below))
    share = where(equal(below, -math.inf), unary("Log", u), share)
    quantile = minimum(maximum(lib.ndtri_exp(above + share), a), b)
    return where(flip, -quantile, quantile)


@lowers("erfcx")
def _erfcx(site: Site, x: Var, order: int) -> Var:
    xp, (x,) = _wide(site, x)
    if order == 0:
        return xp.special_functions.erfcx(x)
    return _by_points(lambda y: _tail_integrals._erfcx(xp, order, y), x)


def _by_points(run: Callable[..., Any], *operands: Var) -> Var:
    """A kernel of `_tail_integrals`, which adds up points along a last axis."""
    shape = shape_of(_together(operands))
    spread = [unsqueeze(expand(cast(x, float64), shape), (-1,)) for x in operands]
    return run(*spread)  # type: ignore[no-any-return]


def _together(operands: Any) -> Var:
    total = operands[0]
    for x in operands[1:]:
        total = total + x
    return total  # type: ignore[no-any-return]


@lowers("gamma_tail")
def _gamma_tail(site: Site, a: Var, t: Var, order: int) -> Var:
    xp = Namespace(site.builder)
    return _by_points(lambda *xs: _tail_integrals._gamma(xp, order, *xs), a, t)


@lowers("beta_tail")
def _beta_tail(site: Site, a: Var, b: Var, x: Var, m: int, n: int) -> Var:
    xp = Namespace(site.builder)
    return _by_points(lambda *xs: _tail_integrals._beta(xp, m, n, *xs), a, b, x)


@lowers("gamma_density")
def _gamma_density(site: Site, a: Var, x: Var) -> Var:
    xp, (a, x) = _wide(site, a, x)
    lib = xp.special_functions
    density = unary("Exp", lib.xlogy(a - 1.0, x) - x - lib.gammaln(a))
    return where(is_infinite(x), like(x, 0), density)


@lowers("beta_density")
def _beta_density(site: Site, a: Var, b: Var, x: Var) -> Var:
    xp, (a, b, x) = _wide(site, a, b, x)
    lib = xp.special_functions
    return unary("Exp", lib.xlogy(a - 1.0, x) + lib.xlog1py(b - 1.0, -x) - lib.betaln(a, b))


@lowers("gammainc", "gammaincc")
def _gammainc(site: Site, a: Var, x: Var) -> Var:
    """The tail's integral of order 0, which has its own sign, times the density of log x."""
    xp, (a, x) = _wide(site, a, x)
    zero, far = equal(x, 0), is_infinite(x)
    inside = where(zero | far, like(x, 1.0), x)
    t = unary("Log", inside)
    tail = _by_points(lambda *ys: _tail_integrals._gamma(xp, 0, *ys), a, t)
    density = unary("Exp", a * t - inside - xp.special_functions.gammaln(a))
    share = tail * density  # positive: P, and else minus what is above
    lower = where(share < 0, share + 1.0, share)
    upper = where(share < 0, -share, like(x, 1.0) - share)
    first, last = (0.0, 1.0) if site.node.op.name == "gammainc" else (1.0, 0.0)
    result = lower if site.node.op.name == "gammainc" else upper
    result = where(zero, like(x, first), where(far, like(x, last), result))
    return where((x < 0) | is_nan(a + x) | (a < 0), like(x, math.nan), result)


@lowers("betainc")
def _betainc(site: Site, a: Var, b: Var, x: Var) -> Var:
    xp, (a, b, x) = _wide(site, a, b, x)
    zero, one = equal(x, 0), equal(x, 1)
    inside = where(zero | one, like(x, 0.5), x)
    tail = _by_points(lambda *ys: _tail_integrals._beta(xp, 0, 0, *ys), a, b, inside)
    lib = xp.special_functions
    density = unary("Exp", a * unary("Log", inside) + b * log1p(-inside) - lib.betaln(a, b))
    share = tail * density
    result = where(share < 0, share + 1.0, share)
    return where(zero, like(x, 0), where(one, like(x, 1.0), result))


@lowers("bessel_i", "bessel_ie")
def _bessel(site: Site, x: Var, order: int) -> Var:
    xp, (x,) = _wide(site, x)
    scaled = xp.special_functions.ive(order, x)
    if site.node.op.name == "bessel_ie":
        return scaled
    half = unary("Exp", unary("Abs", x) * 0.5)
    return scaled * half * half


@lowers("bessel_ie_slope")
def _bessel_slope(site: Site, x: Var, order: int) -> Var:
    xp, (x,) = _wide(site, x)
    lib = xp.special_functions
    above = lib.ive(order + 1, x)
    near = above if order == 0 else (lib.ive(order - 1, x) + above) * 0.5
    return near - unary("Sign", x) * lib.ive(order, x)

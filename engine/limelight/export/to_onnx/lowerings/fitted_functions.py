"""As much of an array library as the kernels of special functions use, over values of a graph of ONNX.

Those kernels are formulas over `xp`: written into the graph they are the same formulas. What they take from SciPy is
fitted: Chebyshev polynomials through SciPy's own values, of functions that are smooth in a suitable variable.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.polynomial import chebyshev

from limelight.core.dtypes import float64
from limelight.export.to_onnx import arrays
from limelight.export.to_onnx.arrays import cast, equal, is_nan, like, maximum, minimum, unary, where, zeros_like
from limelight.export.to_onnx.builder import Builder, Var
from limelight.export.to_onnx.lowerings.elementwise import expm1, is_infinite, log1p

_FIT_POINTS: Final = 400


class Namespace:
    """The library: functions by NumPy's names, for values in float64."""

    __name__ = "onnx"
    inf, nan = math.inf, math.nan

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.special_functions = SpecialFunctions(self)

    def asarray(self, x: Any, dtype: Any = None) -> Var:
        made = x if isinstance(x, Var) else self._builder.constant(np.asarray(x, float64))
        return made if dtype is None else cast(made, dtype)

    def where(self, condition: Var, x: Any, y: Any) -> Var:
        if not isinstance(x, Var) and not isinstance(y, Var):
            x = self.asarray(x)
        return where(condition, x, y)

    def sum(self, x: Var, axis: int, keepdims: bool = False) -> Var:
        return arrays.total(x, (axis % x.ndim,), keepdims)

    def clip(self, x: Var, low: Any, high: Any) -> Var:
        return minimum(maximum(x, self.asarray(low)), self.asarray(high))

    def maximum(self, x: Any, y: Any) -> Var:
        return maximum(x, y)

    def minimum(self, x: Any, y: Any) -> Var:
        return minimum(x, y)

    def isfinite(self, x: Var) -> Var:
        return unary("Abs", x) < like(x, math.inf)

    def isnan(self, x: Var) -> Var:
        return is_nan(x)

    def isinf(self, x: Var) -> Var:
        return is_infinite(x)

    def equal(self, x: Any, y: Any) -> Var:
        return equal(x, y)

    def exp(self, x: Any) -> Any:
        return unary("Exp", x)

    def expm1(self, x: Var) -> Var:
        return expm1(x)

    def log(self, x: Var) -> Var:
        return unary("Log", x)

    def log1p(self, x: Var) -> Var:
        return log1p(x)

    def abs(self, x: Var) -> Var:
        return unary("Abs", x)

    def sqrt(self, x: Var) -> Var:
        return unary("Sqrt", x)

    def sin(self, x: Var) -> Var:
        return unary("Sin", x)

    def cos(self, x: Var) -> Var:
        return unary("Cos", x)

    def sign(self, x: Var) -> Var:
        return unary("Sign", x)

    def zeros_like(self, x: Var) -> Var:
        return zeros_like(x)


@functools.lru_cache(maxsize=64)
def fitted(name: str, low: float, high: float, degree: int) -> tuple[float, ...]:
    """The Chebyshev coefficients of one of `_FITTED` between two numbers, small ones at the end left out."""
    function = _fitted_function(name)
    middle, half = (low + high) / 2, (high - low) / 2
    found = chebyshev.chebinterpolate(lambda t: function(middle + half * t), degree)
    kept = np.flatnonzero(np.abs(found) > 1e-17 * np.abs(found).max())
    return tuple(found[: kept[-1] + 1].tolist())


def _fitted_function(name: str) -> Callable[[Any], Any]:
    from scipy import special  # noqa: PLC0415  # SciPy is loaded when the first special function is exported

    if name == "erfcx":  # in t = 2 / (2 + x)
        return lambda t: np.log(special.erfcx(2 / t - 2) / t)
    if name == "quantile":  # of exp(-s²) / 2, in s
        return lambda s: -special.ndtri_exp(-s * s - math.log(2)) / math.sqrt(2)
    if name == "quantile far":  # over s, in 1 / s
        return lambda r: -special.ndtri_exp(-1 / (r * r) - math.log(2)) / math.sqrt(2) * r
    kind, order = name.split()
    if kind == "ive":
        return lambda x: special.ive(int(order), x)
    return lambda r: special.ive(int(order), 1 / r) / np.sqrt(r)  # in 1 / x


def series(x: Var, coefficients: Sequence[float], low: float, high: float) -> Var:
    """A Chebyshev series between two numbers, by Clenshaw's recurrence."""
    t = (x - (low + high) / 2) * (2 / (high - low))
    twice = t * 2.0
    last, before = like(x, 0), like(x, 0)
    for c in reversed(coefficients[1:]):
        last, before = twice * last - before + c, last
    return t * last - before + coefficients[0]


def fit(name: str, x: Var, low: float, high: float, degree: int) -> Var:
    return series(x, fitted(name, low, high, degree), low, high)


class SpecialFunctions:
    """What SciPy has by these names, in float64."""

    def __init__(self, xp: Namespace) -> None:
        self._xp = xp

    # --- error functions

    def erfcx(self, x: Var) -> Var:
        size = unary("Abs", x)
        t = like(x, 2.0) / (size + 2.0)
        right = t * unary("Exp", fit("erfcx", t, 1e-12, 1.0, 30))
        return where(x < 0, unary("Exp", x * x) * 2.0 - right, where(is_nan(x), x, right))

    def erfc(self, x: Var) -> Var:
        right = self.erfcx(unary("Abs", x)) * unary("Exp", -(x * x))
        right = where(is_infinite(x), like(x, 0), right)
        return where(x < 0, like(x, 2.0) - right, right)

    def erf(self, x: Var) -> Var:
        square = x * x
        near = like(x, 0)
        for k in range(17, -1, -1):
            near = near * square + (-1) ** k / (math.factorial(k) * (2 * k + 1))
        near = near * x * (2 / math.sqrt(math.pi))
        far = unary("Sign", x) * (like(x, 1.0) - self.erfc(unary("Abs", x)))
        return where(unary("Abs", x) < 1.0, near, where(is_nan(x), x, far))

    def ndtr(self, x: Var) -> Var:
        return self.erfc(x * -math.sqrt(0.5)) * 0.5

    def log_ndtr(self, x: Var) -> Var:
        z = x * -math.sqrt(0.5)
        left = unary("Log", self.erfcx(maximum(z, like(x, -1))) * 0.5) - z * z
        right = log1p(self.erfc(-z) * -0.5)
        return where(x < -1.0, left, right)

    def ndtri_exp(self, y: Var) -> Var:
        """The quantile of exp(y)."""
        far = y < -math.log(2)
        below = where(far, y, log1p(-unary("Exp", minimum(y, like(y, -1e-300)))))
        s = unary("Sqrt", maximum(-below - math.log(2), like(y, 0)))
        size = self._quantile(s)
        result = where(far, -size, size)
        result = where(equal(y, 0), like(y, math.inf), where(equal(y, -math.inf), like(y, -math.inf), result))
        return where((y > 0) | is_nan(y), like(y, math.nan), result) * math.sqrt(2)

    def _quantile(self, s: Var) -> Var:
        near = fit("quantile", minimum(s, like(s, 3.0)), 0.0, 3.0, 40)
        middle = fit("quantile", self._xp.clip(s, 3.0, 10.0), 3.0, 10.0, 40)
        ratio = like(s, 1.0) / maximum(s, like(s, 10.0))
        far = fit("quantile far", ratio, 1e-7, 0.1, 30) * s
        return where(s < 3.0, near, where(s < 10.0, middle, far))

    def ndtri(self, p: Var) -> Var:
        return self.erfinv(p * 2.0 - 1.0, p) * math.sqrt(2)

    def erfinv(self, x: Var, half: Var | None = None) -> Var:
        """Of `x`, where (1 + x) / 2 may be given as it is, which keeps small ones."""
        low = (x + 1.0) * 0.5 if half is None else half
        smaller = minimum(low, like(x, 1.0) - low)
        s = unary("Sqrt", maximum(-unary("Log", smaller * 2.0), like(x, 0)))
        size = where(equal(smaller, 0), like(x, math.inf), self._quantile(s))
        square = x * x
        near = like(x, 0)
        for c in reversed(_ERFINV):
            near = near * square + c
        result = where(unary("Abs", x) < 0.1, near * x, unary("Sign", x) * size)
        return where((unary("Abs", x) > 1.0) | is_nan(x), like(x, math.nan), result)

    # --- gamma functions

    def gammaln(self, x: Var) -> Var:
        flipped = x < 0.5
        z = where(flipped, like(x, 1.0) - x, x)
        right = self._gammaln_right(z)
        sine = unary("Abs", unary("Sin", (x - unary("Round", x)) * math.pi))
        left = like(x, math.log(math.pi)) - unary("Log", sine) - right
        result = where(flipped, left, right)
        return where(is_infinite(x), like(x, math.inf), where(is_nan(x), x, result))

    lgamma = gammaln

    def _gammaln_right(self, z: Var) -> Var:
        small = z < 10.0
        product = z
        for k in range(1, 10):
            product = product * (z + k)
        shift = where(small, unary("Log", where(small, product, like(z, 1.0))), like(z, 0))
        w = where(small, z + 10.0, z)
        inverse = like(z, 1.0) / w
        square = inverse * inverse
        tail = like(z, 0)
        for n in range(8, 0, -1):
            tail = tail * square + _BERNOULLI[n] / (2 * n * (2 * n - 1))
        stirling = (w - 0.5) * unary("Log", w) - w + 0.5 * math.log(2 * math.pi) + tail * inverse
        return stirling - shift

    def digamma(self, x: Var) -> Var:
        flipped = x < 0.5
        z = where(flipped, like(x, 1.0) - x, x)
        shift = like(x, 0)
        for k in range(10):
            shift = shift + like(x, 1.0) / (z + k)
        w = z + 10.0
        square = like(x, 1.0) / (w * w)
        tail = like(x, 0)
        for n in range(8, 0, -1):
            tail = (tail + _BERNOULLI[n] / (2 * n)) * square
        right = unary("Log", w) - like(x, 0.5) / w - tail - shift
        angle = (x - unary("Round", x)) * math.pi
        left = right - like(x, math.pi) * unary("Cos", angle) / unary("Sin", angle)
        whole = equal(x, unary("Round", x)) & (x < 0)
        return where(whole, like(x, math.nan), where(flipped, left, right))

    psi = digamma

    def polygamma(self, n: int, x: Var) -> Var:
        if n == 0:
            return self.digamma(x)
        return self.zeta(n + 1, x) * ((-1.0) ** (n + 1) * math.factorial(n))

    def zeta(self, s: int, x: Var) -> Var:
        """Hurwitz's zeta function by Euler and Maclaurin."""
        total = like(x, 0)
        steps = 14
        for k in range(steps):
            total = total + (x + k) ** -float(s)
        w = x + steps
        total = total + w ** (1.0 - s) / (s - 1.0) + w ** -float(s) * 0.5
        factor = float(s)
        for n in range(1, 11):
            total = total + w ** (1.0 - s - 2.0 * n) * (_BERNOULLI[n] / math.factorial(2 * n) * factor)
            factor *= (s + 2 * n - 1) * (s + 2 * n)
        return where(x > 0, total, where(equal(x, 0), like(x, math.inf), like(x, math.nan)))

    def betaln(self, a: Var, b: Var) -> Var:
        return self.gammaln(a) + self.gammaln(b) - self.gammaln(a + b)

    def xlogy(self, x: Var, y: Var) -> Var:
        return where(equal(x, 0) & ~is_nan(y), zeros_like(x * y), x * unary("Log", y))

    def xlog1py(self, x: Var, y: Var) -> Var:
        return where(equal(x, 0) & ~is_nan(y), zeros_like(x * y), x * log1p(y))

    # --- Bessel functions

    def ive(self, order: int, x: Var) -> Var:
        size = unary("Abs", x)
        near = fit(f"ive {order}", minimum(size, like(x, 8.0)), 0.0, 8.0, 40)
        ratio = like(x, 1.0) / maximum(size, like(x, 8.0))
        far = fit(f"ivefar {order}", ratio, 1e-5, 0.125, 40) * unary("Sqrt", ratio)
        result = where(size < 8.0, near, far)
        return where(x < 0, -result, result) if order % 2 else result


_BERNOULLI: Final = (
    1.0, 1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
)  # fmt: skip


def _erfinv_series(n: int) -> tuple[float, ...]:
    """The power series of erfinv, by the recurrence of its coefficients (Carlitz 1963)."""
    c = [1.0]
    for k in range(1, n):
        c.append(sum(c[m] * c[k - 1 - m] / ((m + 1) * (2 * m + 1)) for m in range(k)))
    return tuple([value / (2 * k + 1) * (math.sqrt(math.pi) / 2) ** (2 * k + 1) for k, value in enumerate(c)])


_ERFINV: Final = _erfinv_series(10)

"""Incomplete gamma and beta functions: `gammainc`, `gammaincc`, `betainc`.

They are differentiable in their parameters too, by integrals over a tail (see `_tail_integrals`): to about 12 digits
for every parameter, and to every order. Series (Moore 1982) would serve small parameters and first orders alone.
"""

from __future__ import annotations

from typing import Any

from limelight.core import shapes
from limelight.core.dtypes import float64
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.ops._shape_rules import broadcast
from limelight.ops.special._scipy import alike, elementwise, functions, kernels
from limelight.ops.special._tail_integrals import bell, constant_cumulant
from limelight.ops.special._tail_integrals import beta_tail as integrate_beta_tail
from limelight.ops.special._tail_integrals import gamma_tail as integrate_gamma_tail

__all__ = ["betainc", "gammainc", "gammaincc"]


# gamma_tail

_gamma_tail: EntryPoint = entry_point(defop(
    "gamma_tail",
    inputs="a t",
    attrs="order",
    infer=lambda a, t, order: broadcast("gamma_tail")(a, t),
    kernel=integrate_gamma_tail,
    accepts="floating",
    vjp={
        "a": lambda g, a, t, out, order, a_shape: _tail_in_a(g, a, t, out, order).sum_to(a_shape),
        "t": lambda g, a, t, out, order, t_shape: _tail_in_t(g, a, t, out, order).sum_to(t_shape),
    },
    maths={"a": "ā = z̄ (Rₙ₊₁ - Rₙ (t - digamma(a)))", "t": "t̄ = z̄ (Bₙ - Rₙ (a - exp t))"},
    batching="elementwise",
))  # fmt: skip


def _tail_in_a(g: Tensor, a: Any, t: Tensor, out: Tensor, order: int) -> Any:
    return g * (_gamma_tail((a, t), order + 1) - out * (t - a.digamma()))


def _tail_in_t(g: Tensor, a: Any, t: Tensor, out: Tensor, order: int) -> Any:
    first = t - a.digamma()
    factor = bell(order, 0, lambda i, j: first if i == 1 else -a.polygamma(i - 1))
    return g * (factor - out * (a - t.exp()))


@method("_gamma_tail")  # for the gradients of gamma variates
def gamma_tail(a: TensorLike, t: TensorLike, /) -> Tensor:
    """The derivative of gammainc(a, exp t) in a over that in t = log x.

    The logarithm of a gamma variate moves by -this for each unit of a (Figurnov et al. 2018).
    """
    return _gamma_tail(alike(a, t), 1)


# gamma_density


def _density_kernel(xp: Any, a: Any, x: Any) -> Any:
    lib = functions(xp)
    dtype = a.dtype
    a, x = (xp.asarray(y).astype(float64) for y in (a, x))  # large terms cancel
    density = xp.exp(lib.xlogy(a - 1, x) - x - lib.gammaln(a))
    return xp.where(xp.isinf(x), 0.0, density).astype(dtype)


_gamma_density: EntryPoint = entry_point(defop(
    "gamma_density",
    inputs="a x",
    infer=broadcast("gamma_density"),
    kernel=_density_kernel,
    accepts="floating",
    vjp={
        "a": lambda g, a, x, out, a_shape: (g * out * (x.log() - a.digamma())).sum_to(a_shape),
        "x": lambda g, a, x, out, x_shape: (g * out * ((a - 1.0) / x - 1.0)).sum_to(x_shape),
    },
    maths={"a": "ā = z̄ z (log x - digamma(a))", "x": "x̄ = z̄ z ((a - 1) / x - 1)"},
))  # fmt: skip

# gammainc and gammaincc


def _gammainc_slope_in_a(g: Tensor, a: Tensor, x: Any) -> Any:
    """The derivative in t = log x, x times the density, by the density of a + 1, which is sound at x = 0."""
    return g * a * _gamma_density(a + 1.0, x) * _gamma_tail((a, x.log()), 1)


_gammainc = entry_point(defop(
    "gammainc",
    inputs="a x",
    infer=broadcast("gammainc"),
    **kernels(elementwise, "gammainc"),
    accepts="floating",
    vjp={
        "a": lambda g, a, x, a_shape: _gammainc_slope_in_a(g, a, x).sum_to(a_shape),
        "x": lambda g, a, x, x_shape: (g * _gamma_density(a, x)).sum_to(x_shape),
    },
    maths={"a": "ā = z̄ ∂P(a, x)/∂a", "x": "x̄ = z̄ xᵃ⁻¹ exp(-x) / Γ(a)"},
))  # fmt: skip


def gammainc(a: TensorLike, x: TensorLike, /) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x) for each element; floating, broadcasting.

    It is the probability that a gamma variate of concentration `a` is below `x`. NaN for negative operands.

    >>> import limelight as ll
    >>> ll.gammainc(ll.constant([1.0]), [0.0]).tolist()
    [0.0]
    """
    return _gammainc(*alike(a, x))


_gammaincc = entry_point(defop(
    "gammaincc",
    inputs="a x",
    infer=broadcast("gammaincc"),
    **kernels(elementwise, "gammaincc"),
    accepts="floating",
    vjp={
        "a": lambda g, a, x, a_shape: (-_gammainc_slope_in_a(g, a, x)).sum_to(a_shape),
        "x": lambda g, a, x, x_shape: (-g * _gamma_density(a, x)).sum_to(x_shape),
    },
    maths={"a": "ā = -z̄ ∂P(a, x)/∂a", "x": "x̄ = -z̄ xᵃ⁻¹ exp(-x) / Γ(a)"},
))  # fmt: skip


def gammaincc(a: TensorLike, x: TensorLike, /) -> Tensor:
    """The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), accurate where that is small; floating.

    >>> import limelight as ll
    >>> ll.gammaincc(ll.constant([1.0]), [0.0]).tolist()
    [1.0]
    """
    return _gammaincc(*alike(a, x))


# beta_tail


def _beta_infer(name: str) -> Any:
    def infer(a: TensorSpec, b: TensorSpec, x: TensorSpec, *attrs: Any) -> TensorSpec:
        return known(shapes.broadcast(name, shapes.broadcast(name, a.shape, b.shape), x.shape), a.dtype)

    return infer


def _first_cumulants(a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    both = (a + b).digamma()
    return x.log() - a.digamma() + both, (1.0 - x).log() - b.digamma() + both


def _beta_bell(a: Tensor, b: Tensor, x: Tensor, m: int, n: int) -> Any:
    in_a, in_b = _first_cumulants(a, b, x)

    def cumulant(i: int, j: int) -> Any:
        if i + j == 1:
            return in_a if i else in_b
        return constant_cumulant(lambda k, y: y.polygamma(k), a, b, i, j)

    return bell(m, n, cumulant)


def _tail_in_x(g: Tensor, a: Tensor, b: Tensor, x: Tensor, out: Tensor, m: int, n: int) -> Any:
    return g * (_beta_bell(a, b, x, m, n) - out * (a - (a + b) * x)) / (x * (1.0 - x))


def _tail_in_one(g: Tensor, a: Tensor, b: Tensor, x: Tensor, out: Tensor, m: int, n: int, which: int) -> Any:
    grown = _beta_tail((a, b, x), m + 1 - which, n + which)
    return g * (grown - out * _first_cumulants(a, b, x)[which])


_beta_tail: EntryPoint = entry_point(defop(
    "beta_tail",
    inputs="a b x",
    attrs="m n",
    infer=_beta_infer("beta_tail"),
    kernel=integrate_beta_tail,
    accepts="floating",
    vjp={
        "a": lambda g, a, b, x, out, m, n, a_shape: _tail_in_one(g, a, b, x, out, m, n, 0).sum_to(a_shape),
        "b": lambda g, a, b, x, out, m, n, b_shape: _tail_in_one(g, a, b, x, out, m, n, 1).sum_to(b_shape),
        "x": lambda g, a, b, x, out, m, n, x_shape: _tail_in_x(g, a, b, x, out, m, n).sum_to(x_shape),
    },
    maths={
        "a": "ā = z̄ (Rₘ₊₁ₙ - Rₘₙ κ₁₀)",
        "b": "b̄ = z̄ (Rₘₙ₊₁ - Rₘₙ κ₀₁)",
        "x": "x̄ = z̄ (Bₘₙ - Rₘₙ (a - (a + b) x)) / (x (1 - x))",
    },
    batching="elementwise",
))  # fmt: skip

# beta_density


def _beta_density_kernel(xp: Any, a: Any, b: Any, x: Any) -> Any:
    lib = functions(xp)
    dtype = a.dtype
    a, b, x = (xp.asarray(y).astype(float64) for y in (a, b, x))
    return xp.exp(lib.xlogy(a - 1, x) + lib.xlog1py(b - 1, -x) - lib.betaln(a, b)).astype(dtype)


def _density_in_x(g: Tensor, a: Tensor, b: Tensor, x: Tensor, out: Tensor) -> Any:
    return g * out * ((a - 1.0) / x - (b - 1.0) / (1.0 - x))


_beta_density: EntryPoint = entry_point(defop(
    "beta_density",
    inputs="a b x",
    infer=_beta_infer("beta_density"),
    kernel=_beta_density_kernel,
    accepts="floating",
    vjp={
        "a": lambda g, a, b, x, out, a_shape: (g * out * _first_cumulants(a, b, x)[0]).sum_to(a_shape),
        "b": lambda g, a, b, x, out, b_shape: (g * out * _first_cumulants(a, b, x)[1]).sum_to(b_shape),
        "x": lambda g, a, b, x, out, x_shape: _density_in_x(g, a, b, x, out).sum_to(x_shape),
    },
    maths={"a": "ā = z̄ z κ₁₀", "b": "b̄ = z̄ z κ₀₁", "x": "x̄ = z̄ z ((a - 1) / x - (b - 1) / (1 - x))"},
    batching="elementwise",
))  # fmt: skip

# betainc


def _betainc_slope(g: Tensor, a: Tensor, b: Tensor, x: Tensor, m: int, n: int) -> Any:
    """The derivative in logit x, x (1 - x) times the density, by that of a + 1 and b + 1: sound at 0 and 1."""
    total = a + b
    weight = _beta_density((a + 1.0, b + 1.0, x)) * (a * b / (total * (total + 1.0)))
    return g * weight * _beta_tail((a, b, x), m, n)


_betainc = entry_point(defop(
    "betainc",
    inputs="a b x",
    infer=_beta_infer("betainc"),
    **kernels(elementwise, "betainc"),
    accepts="floating",
    vjp={
        "a": lambda g, a, b, x, a_shape: _betainc_slope(g, a, b, x, 1, 0).sum_to(a_shape),
        "b": lambda g, a, b, x, b_shape: _betainc_slope(g, a, b, x, 0, 1).sum_to(b_shape),
        "x": lambda g, a, b, x, x_shape: (g * _beta_density((a, b, x))).sum_to(x_shape),
    },
    maths={"a": "ā = z̄ ∂I/∂a", "b": "b̄ = z̄ ∂I/∂b", "x": "x̄ = z̄ xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b)"},
    batching="elementwise",
))  # fmt: skip


def betainc(a: TensorLike, b: TensorLike, x: TensorLike, /) -> Tensor:
    """The regularised incomplete beta function I(a, b, x) for each element; floating, broadcasting.

    It is the probability that a beta variate of concentrations `a` and `b` is below `x`. NaN outside 0 <= x <= 1.

    >>> import limelight as ll
    >>> ll.betainc(ll.constant([1.0]), [1.0], [0.25]).tolist()
    [0.25]
    """
    return _betainc(alike(a, b, x))

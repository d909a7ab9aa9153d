"""Logarithms of the gamma and beta functions, and derivatives: `lgamma`, `digamma`, `polygamma`, `betaln`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.errors import ArgumentError
from limelight.ops._shape_rules import broadcast, same
from limelight.ops.special._scipy import alike, elementwise, kernels, unary

__all__ = ["betaln", "digamma", "lgamma", "polygamma"]

# lgamma

_lgamma = entry_point(defop(
    "lgamma",
    inputs="x",
    infer=same,
    **kernels(unary, "gammaln"),
    accepts="floating",
    vjp={"x": lambda g, x: g * _digamma(x)},
    maths={"x": "x̄ = ȳ digamma(x)"},
))  # fmt: skip


@method("lgamma")
def lgamma(x: TensorLike, /) -> Tensor:
    """The logarithm of |Γ(x)| for each element; floating. Infinite at 0 and the negative integers.

    >>> import limelight as ll
    >>> ll.lgamma(ll.constant([1.0, 0.0])).tolist()
    [0.0, inf]
    """
    return _lgamma(x)


# digamma

_digamma: EntryPoint = entry_point(defop(
    "digamma",
    inputs="x",
    infer=same,
    **kernels(unary, "digamma"),
    accepts="floating",
    vjp={"x": lambda g, x: g * _polygamma(x, 1)},
    maths={"x": "x̄ = ȳ polygamma(1, x)"},
))  # fmt: skip


@method("digamma")
def digamma(x: TensorLike, /) -> Tensor:
    """The derivative of `lgamma` for each element; floating. NaN at the negative integers, -inf at 0.

    >>> import limelight as ll
    >>> round(ll.digamma(ll.constant(1.0)).item(), 5)
    -0.57722
    """
    return _digamma(x)


# polygamma


def _zeta(name: str = "zeta") -> Callable[[Any, Any, int], Any]:
    """The kernel: (-1)ⁿ⁺¹ n! ζ(n + 1, x), as SciPy computes it, in the dtype of x."""
    zeta = elementwise(name)

    def kernel(xp: Any, x: Any, n: int) -> Any:
        factor = (-1.0) ** (n + 1) * math.factorial(n)
        return (zeta(xp, xp.asarray(n + 1, dtype=x.dtype), x) * factor).astype(x.dtype)

    return kernel


_polygamma: EntryPoint = entry_point(defop(
    "polygamma",
    inputs="x",
    attrs="n",
    infer=same,
    kernel=_zeta(),
    special={"jax": _zeta(), "cupy": _zeta()},
    accepts="floating",
    vjp={"x": lambda g, x, n: g * _polygamma(x, n + 1)},
    maths={"x": "x̄ = ȳ polygamma(n + 1, x)"},
))  # fmt: skip


def polygamma(n: int, x: TensorLike, /) -> Tensor:
    """The `n`-th derivative of `digamma` for each element of `x`; floating, `n` a Python int of at least 0.

    At 0 and the negative integers as SciPy has it. Raises ArgumentError for a negative or fractional `n`.

    >>> import limelight as ll
    >>> round(ll.polygamma(1, ll.constant(1.0)).item(), 5)
    1.64493
    """
    if n < 0 or n != int(n):
        raise ArgumentError(f"polygamma: the order must be an int of at least 0, got {n!r}")
    return _digamma(x) if n == 0 else _polygamma(x, int(n))


@method("polygamma")
def _polygamma_of_order(x: Tensor, n: int) -> Tensor:
    return polygamma(n, x)


# betaln


def _betaln_gradient(g: Tensor, one: Any, both: Any, shape: Any) -> Tensor:
    return (g * (digamma(one) - digamma(both))).sum_to(shape)


_betaln = entry_point(defop(
    "betaln",
    inputs="a b",
    infer=broadcast("betaln"),
    **kernels(elementwise, "betaln"),
    accepts="floating",
    vjp={
        "a": lambda g, a, b, a_shape: _betaln_gradient(g, a, a + b, a_shape),
        "b": lambda g, a, b, b_shape: _betaln_gradient(g, b, a + b, b_shape),
    },
    maths={"a": "ā = z̄ (digamma(a) - digamma(a + b))", "b": "b̄ = z̄ (digamma(b) - digamma(a + b))"},
))  # fmt: skip


def betaln(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The logarithm of |B(a, b)| = |Γ(a) Γ(b) / Γ(a + b)| for each element; floating, broadcasting.

    >>> import limelight as ll
    >>> ll.betaln(ll.constant([1.0]), 1.0).tolist()
    [0.0]
    """
    return _betaln(*alike(a, b))

"""Powers and roots of each element: `pow`, `square`, `sqrt`, `rsqrt`, `reciprocal`."""

from __future__ import annotations

import cmath
import math
from typing import Any, Final

import numpy as np

from limelight.core import value_checks
from limelight.core.eager import entry_point, operators
from limelight.core.op import Domain, defop
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.errors import ArgumentError
from limelight.ops._gradient_terms import conj
from limelight.ops._shape_rules import broadcast, same

__all__ = ["pow", "reciprocal", "rsqrt", "sqrt", "square"]

# pow


def _slope_in_base(x: Any, y: Any) -> Any:
    """The derivative of xʸ by x: `y * x ** (y - 1)`, but 0 where y is 0, also where x is 0 or infinite."""
    if not isinstance(y, Tensor):
        return y * x ** (y - 1) if y != 0 else 0
    return y * (y == 0).where(1, x) ** (y - 1)


def _log_of_base(x: Any) -> Any:
    """Log x, but 0 where x is 0: 0ʸ does not change with y."""
    if isinstance(x, Tensor):
        return (x == 0).where(1, x).log()
    if isinstance(x, complex):
        return cmath.log(x) if x else 0.0
    return math.log(x) if x > 0 else 0.0 if x == 0 else math.nan


_NO_INTEGER: Final = (
    "pow: integers to a negative power are no integers: write ll.astype(x, ll.float32) ** -1, or 1.0 / x"
)


def _power(xp: Any, x: Any, y: Any) -> Any:
    """IEEE 754's pow.

    Where an exponent of 0.5 repeats along the innermost loop, NumPy takes the square root, which differs for -0.0 and
    -inf: the same numbers had two results, by their layout in memory.
    """
    if xp is not np:
        _check_exponents(x, y)
    try:
        out = xp.power(x, y)
    except ValueError:
        np.broadcast_shapes(np.shape(x), np.shape(y))  # raises where that is what is wrong
        raise ArgumentError(_NO_INTEGER) from None
    if xp is not np or (out.size > 1 and getattr(y, "shape", None) == getattr(x, "shape", ())):
        return out
    halves = y == 0.5 if type(y) in (float, int) else y.item() == 0.5 if y.size == 1 else y == 0.5
    return _of_halves(x, halves, out) if halves is not False else out


def _check_exponents(x: Any, y: Any) -> None:
    """Raises NumPy's ValueError where libraries compute that have none for it."""
    whole = (x if hasattr(x, "dtype") else y).dtype.kind in "iu"
    if whole and value_checks.any_wrong(y, lambda: np.less(y, 0) if isinstance(y, int) else y < 0):
        raise ArgumentError(_NO_INTEGER)


def _of_halves(x: Any, halves: Any, out: Any) -> Any:
    if out.dtype.kind != "f" or not np.count_nonzero(halves) or not np.count_nonzero(x <= 0):
        return out
    special = halves & ((x == 0) | (x == -np.inf))
    return np.where(special, np.abs(x), out).astype(out.dtype, copy=False)


_pow = entry_point(defop(
    "pow",
    fresh=True,
    inputs="x y",
    infer=broadcast("pow"),
    kernel=_power,
    accepts="numeric",
    vjp={
        "x": lambda g, x, y, x_shape: (g * conj(_slope_in_base(x, y))).sum_to(x_shape),
        "y": lambda g, x, out, y_shape: (g * conj(out * _log_of_base(x))).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ (y xʸ⁻¹)*", "y": "ȳ = z̄ (z log x)*"},
    domain=Domain(
        0,
        "{x} > 0",
        "1",
        "a power below 1 has an infinite slope at 0, one below 0 is infinite there; neither is for x < 0",
    ),
))  # fmt: skip


def pow(x: TensorLike, y: TensorLike, /) -> Tensor:  # the Array API's name
    """`x` to the power of `y`, element by element, broadcasting; also the operator `**`.

    Numeric operands of one kind of dtype. `x ** 2` is computed as `square(x)`. Real negative bases with fractional
    exponents give NaN. Special values are those of IEEE 754 and
    Python: -inf to the power of 0.5 is inf (`sqrt` gives NaN).

    >>> import limelight as ll
    >>> ll.pow(ll.constant([1.0, 2.0]), 3.0).tolist()
    [1.0, 8.0]
    """
    return _square(x) if type(y) in (int, float) and y == 2 else _pow(x, y)


operators(pow, "pow")


# square

_square = entry_point(defop(
    "square",
    inputs="x",
    infer=same,
    kernel="square",
    accepts="numeric",
    vjp={"x": lambda g, x: g * conj(x * 2)},
    maths={"x": "x̄ = 2 ȳ x*"},
))  # fmt: skip


@method("square")
def square(x: TensorLike, /) -> Tensor:
    """`x * x` for each element; numeric.

    >>> import limelight as ll
    >>> ll.square(ll.constant([1.0, -3.0])).tolist()
    [1.0, 9.0]
    """
    return _square(x)


# sqrt

_sqrt = entry_point(defop(
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

_rsqrt = entry_point(defop(
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

_reciprocal = entry_point(defop(
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

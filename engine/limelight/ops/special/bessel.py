"""Modified Bessel functions, which the von Mises distribution needs: `i0`, `i0e`, `i1`, `i1e`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from limelight.core.backends import is_cupy
from limelight.core.dtypes import float32
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._shape_rules import SHORT, same
from limelight.ops.special._scipy import functions

__all__ = ["i0", "i0e", "i1", "i1e"]

# bessel_i and bessel_ie: one op for all orders, since the slope of each order lies between its neighbours


def _bessel_kernel(xp: Any, x: Any, order: int, scaled: bool) -> Any:
    lib = functions(xp)
    wide = x.astype(float32) if x.dtype in SHORT else x
    name = f"i{order}e" if scaled else f"i{order}"
    if order <= 1:
        values = getattr(lib, name)(wide)
    elif hasattr(lib, "iv"):
        values = _of_high_order(lib, wide, order, scaled)
    else:  # by the recurrence between orders
        before, last = (_bessel_kernel(xp, wide, order - k, scaled) for k in (2, 1))
        values = xp.where(wide == 0, 0.0, before - 2.0 * (order - 1) * last / xp.where(wide == 0, 1.0, wide))
    return values.astype(x.dtype)


_TINY, _LARGE = 1e-170, 1e6


def _of_high_order(lib: Any, x: Any, order: int, scaled: bool) -> Any:
    """SciPy's for an order above 1, but where it gives NaN: for tiny arguments (0), and for large ones.

    There the scaled function follows from the recurrence between orders, without cancelling; the other is infinite.
    """
    size = np.abs(x)
    usual = ~((size < _TINY) | (size > _LARGE))
    values = np.where(usual, (lib.ive if scaled else lib.iv)(order, np.where(usual, x, 1)), 0).astype(x.dtype)
    if not (size > _LARGE).any():
        return values
    large = np.where(usual, 1, np.sign(x)) ** order * np.inf
    if scaled:
        before, last = (_bessel_kernel(np, np.where(usual, 1, x), order - k, True) for k in (2, 1))
        large = before - 2.0 * (order - 1) * (last / np.where(usual, 1, x))
    return np.where(size > _LARGE, large, values).astype(x.dtype)


def _on_gpu(scaled: bool) -> Callable[..., Any]:
    """In 64 bits, as on the host: neighbouring orders cancel."""
    return lambda xp, x, order: _bessel_kernel(xp, x.astype(np.float64), order, scaled).astype(x.dtype)


def _slope(g: Tensor, x: Tensor, order: int) -> Tensor:
    if order == 0:
        return g * _bessel_i(x, 1)
    return g * 0.5 * (_bessel_i(x, order - 1) + _bessel_i(x, order + 1))


_bessel_i: EntryPoint = entry_point(defop(
    "bessel_i",
    inputs="x",
    attrs="order",
    infer=same,
    kernel=lambda xp, x, order: _bessel_kernel(xp, x, order, False),
    special={"cupy": _on_gpu(False)},
    accepts="floating",
    vjp={"x": _slope},
    maths={"x": "x̄ = ȳ (Iₙ₋₁(x) + Iₙ₊₁(x)) / 2"},
))  # fmt: skip


_FAR, _TERMS = 100.0, 12


def _scaled_slope_kernel(xp: Any, x: Any, order: int) -> Any:
    """The slope of exp(-|x|) Iₙ(x): of neighbouring orders, or, where these cancel, by the terms for large arguments.

    Those are exp(-x) Iₙ(x) √2πx = 1 - a₁/x + a₂/x² - ..., where aₖ₊₁/aₖ = (4n² - (2k+1)²) / 8(k+1) (Abramowitz and
    Stegun 9.7.1), differentiated one by one.
    """
    wide = x.astype(np.float64 if xp is np or is_cupy(xp) else float32) if x.dtype != np.float64 else x
    above = _bessel_kernel(xp, wide, order + 1, True)
    near = above if order == 0 else 0.5 * (_bessel_kernel(xp, wide, order - 1, True) + above)
    near = near - xp.sign(wide) * _bessel_kernel(xp, wide, order, True)
    far = _FAR + 4.0 * order * order
    size = xp.maximum(xp.abs(wide), far)
    factor, total = 1.0, xp.zeros_like(size)
    for k in range(_TERMS):
        total = total - factor * (k + 0.5) * size ** (-k)
        factor *= -(4.0 * order * order - (2 * k + 1) ** 2) / (8.0 * (k + 1))
    total = total / (math.sqrt(2.0 * math.pi) * size * xp.sqrt(size))
    return xp.where(size > far, xp.sign(wide) ** (order + 1) * total, near).astype(x.dtype)


def _slope_of_scaled_slope(g: Tensor, x: Tensor, out: Tensor, order: int) -> Tensor:
    above = _scaled_slope(x, order + 1)
    near = above if order == 0 else 0.5 * (_scaled_slope(x, order - 1) + above)
    return g * (near - x.sign() * out)


_scaled_slope: EntryPoint = entry_point(defop(
    "bessel_ie_slope",
    inputs="x",
    attrs="order",
    infer=same,
    kernel=_scaled_slope_kernel,
    accepts="floating",
    vjp={"x": _slope_of_scaled_slope},
    maths={"x": "x̄ = ȳ ((yₙ₋₁ + yₙ₊₁) / 2 - sign(x) yₙ)"},
))  # fmt: skip

_bessel_ie: EntryPoint = entry_point(defop(
    "bessel_ie",
    inputs="x",
    attrs="order",
    infer=same,
    kernel=lambda xp, x, order: _bessel_kernel(xp, x, order, True),
    special={"cupy": _on_gpu(True)},
    accepts="floating",
    vjp={"x": lambda g, x, order: g * _scaled_slope(x, order)},
    maths={"x": "x̄ = ȳ ((Iₙ₋₁(x) + Iₙ₊₁(x)) exp(-|x|) / 2 - sign(x) y)"},
))  # fmt: skip


def i0(x: TensorLike, /) -> Tensor:
    """The modified Bessel function of the first kind of order 0 for each element; floating.

    >>> import limelight as ll
    >>> ll.i0(ll.constant([0.0])).tolist()
    [1.0]
    """
    return _bessel_i(x, 0)


def i0e(x: TensorLike, /) -> Tensor:
    """exp(-|x|) i0(x) for each element, without overflow; floating. Its gradient at 0 is taken to be 0.

    >>> import limelight as ll
    >>> ll.i0e(ll.constant([0.0])).tolist()
    [1.0]
    """
    return _bessel_ie(x, 0)


def i1(x: TensorLike, /) -> Tensor:
    """The modified Bessel function of the first kind of order 1 for each element; floating.

    >>> import limelight as ll
    >>> ll.i1(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _bessel_i(x, 1)


def i1e(x: TensorLike, /) -> Tensor:
    """exp(-|x|) i1(x) for each element, without overflow; floating.

    >>> import limelight as ll
    >>> ll.i1e(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _bessel_ie(x, 1)

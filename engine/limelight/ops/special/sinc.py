"""The normalised sinc function, sin(πx) / πx: `sinc`."""

from __future__ import annotations

import math
from typing import Any, Final

from limelight.core.dtypes import float64
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._shape_rules import same

__all__ = ["sinc"]

# sinc

_TERMS: Final = 14
_NEAR: Final = 1.0
"""Up to here the power series, beyond it the closed form, which cancels near 0."""


def _sinc_kernel(xp: Any, x: Any, order: int) -> Any:
    """The derivative of the given order, in 64 bits."""
    z = xp.asarray(x).astype(float64)
    far = xp.where(xp.abs(z) > _NEAR, z, 1.5)
    derivative = xp.sin(math.pi * xp.where(xp.isinf(far), 0.0, far)) / (math.pi * far)
    for n in range(1, order + 1):  # the derivatives of x sinc(x), which is a sine
        wave = math.pi ** (n - 1) * xp.sin(math.pi * xp.where(xp.isinf(far), 0.0, far) + n * math.pi / 2)
        derivative = (wave - n * derivative) / far
    return xp.where(xp.abs(z) <= _NEAR, _near_zero(z, order), xp.where(xp.isnan(z), z, derivative)).astype(x.dtype)


def _near_zero(z: Any, order: int) -> Any:
    series = 0.0 * z
    for k in reversed(range((order + 1) // 2, (order + 1) // 2 + _TERMS)):
        factor = (-1) ** k * math.pi ** (2 * k) * math.perm(2 * k, order) / math.factorial(2 * k + 1)
        series = series * z * z + factor
    return series * z if order % 2 else series


_sinc: EntryPoint = entry_point(defop(
    "sinc",
    inputs="x",
    attrs="order",
    infer=same,
    kernel=_sinc_kernel,
    accepts="floating",
    vjp={"x": lambda g, x, order: g * _sinc(x, order + 1)},
    maths={"x": "x̄ = ȳ sinc⁽ⁿ⁺¹⁾(x)"},
))  # fmt: skip


def sinc(x: TensorLike, /) -> Tensor:
    """sin(πx) / πx for each element, 1 at 0, with derivatives of every order there; floating.

    >>> import limelight as ll
    >>> ll.sinc(ll.constant([0.0, 0.5])).tolist()
    [1.0, 0.6366197466850281]
    """
    return _sinc(x, 0)

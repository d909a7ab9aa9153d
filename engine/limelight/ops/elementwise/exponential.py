"""The exponential function: `exp`, `exp2`, `expm1`, `sigmoid`.

Where NumPy differs from the standard for complex infinities (`expm1`), an op of its own takes complex operands
(`entry(op, of_complex=...)`), so that for real ones the kernel stays NumPy's ufunc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.ops._shape_rules import same

__all__ = ["exp", "exp2", "expm1", "sigmoid"]

# exp

_exp = entry_point(defop(
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


# exp2

_exp2 = entry_point(defop(
    "exp2",
    inputs="x",
    infer=same,
    kernel="exp2",
    accepts="floating",
    vjp={"x": lambda g, out: g * out * math.log(2)},
    maths={"x": "x̄ = ȳ y ln 2"},
))  # fmt: skip


def exp2(x: TensorLike, /) -> Tensor:
    """2 to the power of each element; floating.

    >>> import limelight as ll
    >>> ll.exp2(ll.constant([3.0, -1.0])).tolist()
    [8.0, 0.5]
    """
    return _exp2(x)


# expm1


def _expm1_of_complex_kernel(xp: Any, x: Any) -> Any:
    """Infinities and NaNs by way of exp, whose rules for them are the standard's."""
    result = xp.expm1(x)
    finite = xp.isfinite(result)
    if xp is not np or not finite.all():  # elsewhere to ask would wait for the device, or cannot be done in a trace
        result = xp.where(finite, result, xp.exp(x) - 1)
    return xp.where(x == 0, x - x.real, result)  # of a negative zero 0, not -0


_expm1_of_complex = defop(
    "expm1_of_complex",
    inputs="x",
    infer=same,
    kernel=_expm1_of_complex_kernel,
    accepts="complex",
    vjp={"x": lambda g, out: g * (out + 1.0).conj()},
    maths={"x": "x̄ = ȳ (y + 1)*"},
)

_expm1 = entry_point(defop(
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


# sigmoid


def _sigmoid_kernel(xp: Any, x: Any) -> Any:
    return xp.reciprocal(xp.exp(-x) + 1)  # exp may overflow to inf, whose reciprocal is the right 0


_sigmoid = entry_point(defop(
    "sigmoid",
    fresh=True,
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

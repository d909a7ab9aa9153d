"""Logarithms as statistics needs them, with 0 log 0 = 0: `logit`, `xlogy`, `xlog1py`, `entr`."""

from __future__ import annotations

from typing import Any

from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._shape_rules import broadcast, same
from limelight.ops.special._scipy import alike, elementwise, kernels, unary

__all__ = ["entr", "logit", "xlog1py", "xlogy"]

# logit

_logit = entry_point(defop(
    "logit",
    inputs="p",
    infer=same,
    **kernels(unary, "logit"),
    accepts="floating",
    vjp={"p": lambda g, p: g / p + g / (1.0 - p)},  # as a sum its derivatives are infinite at 0 and 1, not NaN
    maths={"p": "p̄ = ȳ / p + ȳ / (1 - p)"},
))  # fmt: skip


def logit(p: TensorLike, /) -> Tensor:
    """log(p / (1 - p)) for each element, the inverse of `sigmoid`; floating. Infinite at 0 and 1, NaN beyond.

    >>> import limelight as ll
    >>> ll.logit(ll.constant([0.5, 1.0])).tolist()
    [0.0, inf]
    """
    return _logit(p)


# xlogy and xlog1py; each gradient is again such a product, so that 0 log 0 stays 0 to any order


def _over_kernel(xp: Any, x: Any, y: Any) -> Any:
    ratio = xp.divide(x, y)
    return xp.where(xp.equal(x, 0) & xp.isnan(ratio) & ~xp.isnan(y), xp.zeros_like(ratio), ratio)


_over: EntryPoint = entry_point(defop(
    "zero_over",
    inputs="x y",
    infer=broadcast("zero_over"),
    kernel=_over_kernel,
    accepts="floating",
    vjp={
        "x": lambda g, y, x_shape: _over(g, y).sum_to(x_shape),
        "y": lambda g, x, y, y_shape: (-_over(g * x, y * y)).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ / y", "y": "ȳ = -z̄ x / y²"},
))  # fmt: skip

_xlogy: EntryPoint = entry_point(defop(
    "xlogy",
    inputs="x y",
    infer=broadcast("xlogy"),
    **kernels(elementwise, "xlogy"),
    accepts="floating",
    vjp={
        "x": lambda g, x, y, x_shape: ((x == 0) & (y <= 0)).where(0.0, _xlogy(g, y)).sum_to(x_shape),
        "y": lambda g, x, y, y_shape: _over(g * x, y).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ log y, and 0 where x = 0 ≥ y", "y": "ȳ = z̄ x / y"},
))  # fmt: skip


def xlogy(x: TensorLike, y: TensorLike, /) -> Tensor:
    """X log(y) for each element, and 0 wherever x is 0 (unless y is NaN); floating, broadcasting.

    Where x and y are 0, so are the gradients: a class without probability adds nothing to an entropy.

    >>> import limelight as ll
    >>> ll.xlogy(ll.constant([0.0, 1.0]), 0.0).tolist()
    [0.0, -inf]
    """
    return _xlogy(*alike(x, y))


_xlog1py: EntryPoint = entry_point(defop(
    "xlog1py",
    inputs="x y",
    infer=broadcast("xlog1py"),
    **kernels(elementwise, "xlog1py"),
    accepts="floating",
    vjp={
        "x": lambda g, x, y, x_shape: ((x == 0) & (y <= -1)).where(0.0, _xlog1py(g, y)).sum_to(x_shape),
        "y": lambda g, x, y, y_shape: _over(g * x, y + 1.0).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ log(1 + y), and 0 where x = 0 and y ≤ -1", "y": "ȳ = z̄ x / (1 + y)"},
))  # fmt: skip


def xlog1py(x: TensorLike, y: TensorLike, /) -> Tensor:
    """X log(1 + y) for each element, accurate near y = 0, and 0 wherever x is 0 (unless y is NaN); floating.

    Where x is 0 and y is -1, so are the gradients, as for `xlogy`.

    >>> import limelight as ll
    >>> ll.xlog1py(ll.constant([0.0, 1.0]), -1.0).tolist()
    [0.0, -inf]
    """
    return _xlog1py(*alike(x, y))


# entr

_entr = entry_point(defop(
    "entr",
    inputs="p",
    infer=same,
    **kernels(unary, "entr"),
    accepts="floating",
    vjp={"p": lambda g, p: (p == 0).where(0.0, -g * ((p == 0).where(1.0, p).log() + 1.0))},
    maths={"p": "p̄ = -ȳ (log p + 1), and 0 where p is 0"},
))  # fmt: skip


def entr(p: TensorLike, /) -> Tensor:
    """-p log(p) for each element, what it adds to an entropy; floating. 0 at 0, -inf below.

    At 0, where the slope is infinite, the gradient is 0, as that of `xlogy(p, p)`.

    >>> import limelight as ll
    >>> ll.entr(ll.constant([0.0, 1.0, -1.0])).tolist()
    [0.0, -0.0, -inf]
    """
    return _entr(p)

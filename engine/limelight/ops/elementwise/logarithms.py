"""Logarithms of each element: `log`, `log1p`, `log2`, `log10`, `logaddexp` (`logsumexp` is a reduction)."""

from __future__ import annotations

import math
from typing import Any

from limelight.core.eager import entry_point
from limelight.core.op import Domain, defop
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.ops._domains import LOGARITHM
from limelight.ops._shape_rules import broadcast, same

__all__ = ["log", "log10", "log1p", "log2", "logaddexp"]

# log

_log = entry_point(defop(
    "log",
    inputs="x",
    infer=same,
    kernel="log",
    accepts="inexact",
    vjp={"x": lambda g, x: g / x.conj()},
    maths={"x": "x̄ = ȳ / x*"},
    domain=LOGARITHM,
))  # fmt: skip


@method("log")
def log(x: TensorLike, /) -> Tensor:
    """The natural logarithm of each element; floating or complex. -inf at 0, NaN below.

    >>> import limelight as ll
    >>> ll.log(ll.constant([1.0, 0.0])).tolist()
    [0.0, -inf]
    """
    return _log(x)


# log1p

_log1p = entry_point(defop(
    "log1p",
    inputs="x",
    infer=same,
    kernel="log1p",
    accepts="inexact",
    vjp={"x": lambda g, x: g / (x + 1.0).conj()},
    maths={"x": "x̄ = ȳ / (1 + x)*"},
    domain=Domain(0, "{x} > -1", "0", "log(1 + x) and its slope are infinite at -1, below it is NaN"),
))  # fmt: skip


def log1p(x: TensorLike, /) -> Tensor:
    """log(1 + x) for each element, accurate near 0; floating or complex.

    >>> import limelight as ll
    >>> ll.log1p(ll.constant([0.0])).tolist()
    [0.0]
    """
    return _log1p(x)


# log2

_log2 = entry_point(defop(
    "log2",
    inputs="x",
    infer=same,
    kernel="log2",
    accepts="inexact",
    vjp={"x": lambda g, x: g / (x * math.log(2)).conj()},
    maths={"x": "x̄ = ȳ / (x ln 2)*"},
    domain=LOGARITHM,
))  # fmt: skip


def log2(x: TensorLike, /) -> Tensor:
    """The logarithm to base 2 of each element; floating or complex. -inf at 0, NaN below.

    >>> import limelight as ll
    >>> ll.log2(ll.constant([8.0, 0.0])).tolist()
    [3.0, -inf]
    """
    return _log2(x)


# log10

_log10 = entry_point(defop(
    "log10",
    inputs="x",
    infer=same,
    kernel="log10",
    accepts="inexact",
    vjp={"x": lambda g, x: g / (x * math.log(10)).conj()},
    maths={"x": "x̄ = ȳ / (x ln 10)*"},
    domain=LOGARITHM,
))  # fmt: skip


def log10(x: TensorLike, /) -> Tensor:
    """The logarithm to base 10 of each element; floating or complex. -inf at 0, NaN below.

    >>> import limelight as ll
    >>> ll.log10(ll.constant([1.0, 0.0])).tolist()
    [0.0, -inf]
    """
    return _log10(x)


# logaddexp


def _difference(x: Any, y: Any) -> Tensor:
    """X - y, but 0 for equal infinities, which share the gradient as equal numbers do."""
    d = x - y
    difference: Tensor = ((x == y) & (d != d)).where(0.0, d)  # noqa: PLR0124  # NaN, and nothing else
    return difference


_logaddexp = entry_point(defop(
    "logaddexp",
    inputs="x y",
    infer=broadcast("logaddexp"),
    kernel="logaddexp",
    accepts="floating",
    vjp={
        "x": lambda g, x, y, x_shape: (g * _difference(x, y).sigmoid()).sum_to(x_shape),
        "y": lambda g, x, y, y_shape: (g * _difference(y, x).sigmoid()).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ σ(x - y)", "y": "ȳ = z̄ σ(y - x)"},
))  # fmt: skip


def logaddexp(x: TensorLike, y: TensorLike, /) -> Tensor:
    """log(exp(x) + exp(y)), element by element, without overflow, broadcasting; floating. See `logsumexp` for axes.

    >>> import limelight as ll
    >>> ll.logaddexp(ll.constant([1000.0]), -float("inf")).tolist()
    [1000.0]
    """
    return _logaddexp(x, y)

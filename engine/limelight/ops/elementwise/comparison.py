"""Comparisons of two operands: `equal`, `less` and the like, their operators, `isclose` and `allclose`."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from limelight.core import shapes
from limelight.core.dtypes import float64, is_inexact, kind
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.ops._shape_rules import compare

__all__ = ["allclose", "equal", "greater", "greater_equal", "isclose", "less", "less_equal", "not_equal"]

BOOLEAN = "its result is boolean"

# equal

_equal = entry_point(defop(
    "equal",
    inputs="x y",
    infer=compare("equal"),
    kernel="equal",
    accepts="any",
    why_no_gradient=BOOLEAN,
))  # fmt: skip


def equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether `x` is equal to `y`, element by element, broadcasting; also the operator `==`. NaN equals nothing.

    >>> import limelight as ll
    >>> ll.equal(ll.constant([1, 2, 3]), 2).tolist()
    [False, True, False]
    """
    return _equal(x, y)


# not_equal

_not_equal = entry_point(defop(
    "not_equal",
    inputs="x y",
    infer=compare("not_equal"),
    kernel="not_equal",
    accepts="any",
    why_no_gradient=BOOLEAN,
))  # fmt: skip


def not_equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether `x` is different from `y`, element by element, broadcasting; also the operator `!=`.

    >>> import limelight as ll
    >>> ll.not_equal(ll.constant([1, 2, 3]), 2).tolist()
    [True, False, True]
    """
    return _not_equal(x, y)


# less

_less = entry_point(defop(
    "less",
    inputs="x y",
    infer=compare("less"),
    kernel="less",
    accepts="real",
    why_no_gradient=BOOLEAN,
))  # fmt: skip


def less(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether `x` is less than `y`, element by element, broadcasting; also the operator `<`.

    >>> import limelight as ll
    >>> ll.less(ll.constant([1, 2, 3]), 2).tolist()
    [True, False, False]
    """
    return _less(x, y)


# less_equal

_less_equal = entry_point(defop(
    "less_equal",
    inputs="x y",
    infer=compare("less_equal"),
    kernel="less_equal",
    accepts="real",
    why_no_gradient=BOOLEAN,
))  # fmt: skip


def less_equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether `x` is less than or equal to `y`, element by element, broadcasting; also the operator `<=`.

    >>> import limelight as ll
    >>> ll.less_equal(ll.constant([1, 2, 3]), 2).tolist()
    [True, True, False]
    """
    return _less_equal(x, y)


# greater

_greater = entry_point(defop(
    "greater",
    inputs="x y",
    infer=compare("greater"),
    kernel="greater",
    accepts="real",
    why_no_gradient=BOOLEAN,
))  # fmt: skip


def greater(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether `x` is greater than `y`, element by element, broadcasting; also the operator `>`.

    >>> import limelight as ll
    >>> ll.greater(ll.constant([1, 2, 3]), 2).tolist()
    [False, False, True]
    """
    return _greater(x, y)


# greater_equal

_greater_equal = entry_point(defop(
    "greater_equal",
    inputs="x y",
    infer=compare("greater_equal"),
    kernel="greater_equal",
    accepts="real",
    why_no_gradient=BOOLEAN,
))  # fmt: skip


def greater_equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether `x` is greater than or equal to `y`, element by element, broadcasting; also the operator `>=`.

    >>> import limelight as ll
    >>> ll.greater_equal(ll.constant([1, 2, 3]), 2).tolist()
    [False, True, True]
    """
    return _greater_equal(x, y)


# The operators


def _comparable(x: Any) -> bool:
    return isinstance(x, (Tensor, bool, int, float, complex, np.ndarray, np.generic, list, tuple)) or hasattr(
        x, "__as_tensor__"
    )


def _operator(run: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Any]:
    """`run` as an operator: what is no number at all (None, a string) is left to Python, for which it is not equal."""

    def compare(self: Tensor, other: Any) -> Any:
        return run(self, other) if type(other) is Tensor or _comparable(other) else NotImplemented

    return compare


method("__eq__")(_operator(_equal))
method("__ne__")(_operator(_not_equal))
method("__lt__")(_operator(_less))
method("__le__")(_operator(_less_equal))
method("__gt__")(_operator(_greater))
method("__ge__")(_operator(_greater_equal))

# isclose and allclose


def allclose(
    x: TensorLike, y: TensorLike, /, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False
) -> Tensor:
    """Whether all elements of `x` are within `atol + rtol * |y|` of those of `y`.

    Infinities are close to themselves alone; NaN to nothing, or with `equal_nan` to NaN.

    Args:
        x: numeric.
        y: numeric, in a shape that broadcasts with that of `x`.
        rtol: how far apart elements may be, in parts of `y`; 1e-5.
        atol: how far apart they may be besides; 1e-8.
        equal_nan: whether NaN is close to NaN. False.

    Returns:
        A boolean scalar; in an `assert` it is a bool.

    >>> import limelight as ll
    >>> bool(ll.allclose(ll.constant([0.1]) * 3.0, ll.constant([0.3])))
    True
    """
    if type(equal_nan) is not bool:
        equal_nan = shapes.flag("allclose", "equal_nan", equal_nan)
    return isclose(x, y, rtol, atol, equal_nan=equal_nan).all()


def isclose(
    x: TensorLike, y: TensorLike, /, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False
) -> Tensor:
    """Whether each element of `x` is within `atol + rtol * |y|` of that of `y`. See `allclose`.

    Args:
        x: numeric.
        y: numeric, in a shape that broadcasts with that of `x`.
        rtol: how far apart elements may be, in parts of `y`; 1e-5.
        atol: how far apart they may be besides; 1e-8.
        equal_nan: whether NaN is close to NaN. False.

    Returns:
        Booleans, in the broadcast shape.

    >>> import limelight as ll
    >>> ll.isclose(ll.constant([1.0, 2.0]), ll.constant([1.0, 2.1])).tolist()
    [True, False]
    """
    if type(equal_nan) is not bool:
        equal_nan = shapes.flag("isclose", "equal_nan", equal_nan)
    x, y = as_tensor(x), as_tensor(y)
    close = x == y
    if equal_nan:
        close = close | ((x != x) & (y != y))  # noqa: PLR0124  # NaN, and nothing else
    if any(kind(of) != "bool" for of in (x.dtype, y.dtype)):
        x, y = (z if is_inexact(z.dtype) else z.astype(float64) for z in (x, y))  # unsigned differences wrap around
        within = abs(x - y) <= atol + rtol * abs(y)
        close = close | (within & (abs(y) < inf))
    return close

"""Comparisons of two operands, and choosing between them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import ml_dtypes
import numpy as np

from limelight.core import shapes
from limelight.core.dtypes import float64, is_inexact, kind
from limelight.core.eager import entry
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import DTypeError
from limelight.ops._shape_rules import compare

__all__ = [
    "allclose",
    "equal",
    "greater",
    "greater_equal",
    "isclose",
    "less",
    "less_equal",
    "nan_to_num",
    "not_equal",
    "where",
]

BOOLEAN = "its result is boolean"

# equal

_equal = entry(defop(
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

_not_equal = entry(defop(
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

_less = entry(defop(
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

_less_equal = entry(defop(
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

_greater = entry(defop(
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

_greater_equal = entry(defop(
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

# where


def _where_infer(condition: TensorSpec, x: TensorSpec, y: TensorSpec) -> TensorSpec:
    return known(shapes.broadcast("where", condition.shape, x.shape, y.shape, of=(condition, x, y)), x.dtype)


_where = entry(defop(
    "where",
    inputs="condition:bool x y",
    infer=_where_infer,
    kernel="where",
    vjp={
        "x": lambda g, condition, x_shape: condition.where(g, 0.0).sum_to(x_shape),
        "y": lambda g, condition, y_shape: condition.where(0.0, g).sum_to(y_shape),
    },
    elementwise=True,
    maths={"x": "x̄ = z̄ where the condition holds, else 0", "y": "ȳ = z̄ where it does not, else 0"},
))  # fmt: skip


@method("where")
def where(condition: TensorLike, x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x` where the boolean `condition` holds and `y` elsewhere, element by element, all three broadcasting.

    `x` and `y` are of one kind of dtype. Both are computed; to run only one of two computations use `ll.cond`.

    >>> import limelight as ll
    >>> ll.where(ll.constant([True, False]), ll.constant([1.0, 2.0]), 0.0).tolist()
    [1.0, 0.0]
    """
    return _where((condition, x, y))


def nan_to_num(x: TensorLike, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """`x` with NaN and infinities replaced by numbers.

    Args:
        x: real; integers and booleans stay as they are.
        nan: what replaces NaN; 0.
        posinf: what replaces inf; by default the dtype's largest number.
        neginf: what replaces -inf; by default the dtype's least number.

    Returns:
        A tensor of the shape and dtype of `x`. The gradient of what is replaced is 0.

    Raises:
        DTypeError: `x` is complex.

    >>> import limelight as ll
    >>> ll.nan_to_num(ll.constant([1.0, ll.nan, ll.inf]), posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """
    x = as_tensor(x)
    if not is_inexact(x.dtype):
        return x
    if kind(x.dtype) == "complex":
        raise DTypeError(f"nan_to_num needs real operands, got {x.dtype.name}; write it for ll.real(x) and ll.imag(x)")
    limits: Any = ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call]  # the library has no annotations here
    largest = float(limits.max)
    found = where(x != x, nan, x)  # noqa: PLR0124  # NaN, and nothing else
    found = where(x == inf, largest if posinf is None else posinf, found)
    return where(x == -inf, -largest if neginf is None else neginf, found)


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
    x, y = as_tensor(x), as_tensor(y)
    close = x == y
    if equal_nan:
        close = close | ((x != x) & (y != y))  # noqa: PLR0124  # NaN, and nothing else
    if any(kind(of) != "bool" for of in (x.dtype, y.dtype)):
        x, y = (z if is_inexact(z.dtype) else z.astype(float64) for z in (x, y))  # unsigned differences wrap around
        within = abs(x - y) <= atol + rtol * abs(y)
        close = close | (within & (abs(y) < inf))
    return close

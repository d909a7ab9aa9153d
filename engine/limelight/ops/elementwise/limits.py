"""Limits and whole numbers: maximum, minimum, clip, rounding, and which elements are finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.core.eager import entry
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import ArgumentError, DTypeError
from limelight.ops._shape_rules import broadcast, predicate, same

__all__ = ["ceil", "clip", "floor", "isfinite", "isinf", "isnan", "maximum", "minimum", "round", "trunc"]

# maximum and minimum


def _ahead_kernel(xp: Any, x: Any, y: Any) -> Any:
    dtype = x.dtype if hasattr(x, "dtype") else y.dtype
    return ((x > y).astype(dtype) + (x >= y)) / 2


_ahead = entry(defop(
    "ahead",
    inputs="x y",
    infer=broadcast("ahead"),
    kernel=_ahead_kernel,
    accepts="floating",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip
# 1 where x > y, 0 where x < y, and a half at a tie, so that equal operands of a maximum share its gradient.

_maximum = entry(defop(
    "maximum",
    inputs="x y",
    infer=broadcast("maximum"),
    kernel="maximum",
    accepts="real",
    vjp={
        "x": lambda g, x, y, x_shape: (g * _ahead(x, y)).sum_to(x_shape),
        "y": lambda g, x, y, y_shape: (g * _ahead(y, x)).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ [x > y]", "y": "ȳ = z̄ [y > x]"},
))  # fmt: skip


def maximum(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The larger of `x` and `y`, element by element, broadcasting; NaN where either is. Real.

    At a tie each operand gets half of the gradient.

    >>> import limelight as ll
    >>> ll.maximum(ll.constant([1.0, -1.0]), 0.0).tolist()
    [1.0, 0.0]
    """
    return _maximum(x, y)


_minimum = entry(defop(
    "minimum",
    inputs="x y",
    infer=broadcast("minimum"),
    kernel="minimum",
    accepts="real",
    vjp={
        "x": lambda g, x, y, x_shape: (g * _ahead(y, x)).sum_to(x_shape),
        "y": lambda g, x, y, y_shape: (g * _ahead(x, y)).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ [x < y]", "y": "ȳ = z̄ [y < x]"},
))  # fmt: skip


def minimum(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The smaller of `x` and `y`, element by element, broadcasting; NaN where either is. Real.

    At a tie each operand gets half of the gradient.

    >>> import limelight as ll
    >>> ll.minimum(ll.constant([1.0, -1.0]), 0.0).tolist()
    [0.0, -1.0]
    """
    return _minimum(x, y)


# clip


def _clip_kernel(xp: Any, x: Any, low: Any, high: Any) -> Any:
    cast = x.dtype.type
    if low is not None:
        x = xp.maximum(x, cast(low))
    return x if high is None else xp.minimum(x, cast(high))


def _outside(x: Tensor, low: Any, high: Any) -> Tensor:
    """Where clip changes something; NaN is not outside, so that its gradient is not a 0 that hides it."""
    below: Tensor | None = None if low is None else x < low
    above: Tensor | None = None if high is None else x > high
    if above is None or below is None:
        assert above is not None or below is not None, "clip without bounds is no op"
        return above if above is not None else below  # type: ignore[return-value]  # one of them is there
    return below | above


_clip = entry(defop(
    "clip",
    inputs="x",
    attrs="low high",
    infer=same,
    kernel=_clip_kernel,
    accepts="real",
    vjp={"x": lambda g, x, low, high: _outside(x, low, high).where(0.0, g)},
    maths={"x": "x̄ = ȳ [low <= x <= high]"},
))  # fmt: skip


@method("clip")
def clip(x: TensorLike, /, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """`x` with elements below `min` raised to it and those above `max` lowered to it; real. None leaves a side open.

    The bounds are Python numbers or tensors that broadcast; where they clash, `max` wins. The gradient passes where
    `x` is within the bounds, these included. Raises DTypeError when a bound is not of the kind of `x`.

    >>> import limelight as ll
    >>> ll.clip(ll.constant([-2.0, 0.5, 2.0]), 0.0, 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    x = as_tensor(x)
    if not all(bound is None or type(bound) in (int, float) for bound in (min, max)):
        raised = x if min is None else _maximum(x, min)
        return raised if max is None else _minimum(raised, max)
    for bound in (min, max):
        if bound is not None and not dtypes.fits(bound, x.dtype):
            raise DTypeError(
                f"clip: the bound {bound!r} is not of the kind of {x.spec}; write ll.astype(x, ll.float32)"
            )
    if min is None and max is None:
        return x
    return _clip(x, min, max)


# rounding

KEEPS_INTEGERS = np.floor(np.int8(1)).dtype == np.int8
"""NumPy 2.0 makes floats of the integers that it rounds, later ones do not."""


def _whole(name: str) -> Callable[[Any, Any], Any]:
    """A rounding function of xp that leaves integers alone, which some versions turn into floats."""

    def kernel(xp: Any, x: Any) -> Any:
        return x if x.dtype.kind in "iu" else getattr(xp, name)(x)

    return kernel


def _asks(name: str, of_integers: bool) -> Callable[[Any, Any], Any]:
    """A predicate of xp, whose answer is always the same for integers."""

    def kernel(xp: Any, x: Any) -> Any:
        return xp.full(x.shape, of_integers) if x.dtype.kind in "iu" else getattr(xp, name)(x)

    return kernel


# floor

_floor = entry(defop(
    "floor",
    inputs="x",
    infer=same,
    kernel=_whole("floor"),
    special={"numpy": "floor"} if KEEPS_INTEGERS else {},
    accepts="real",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip


def floor(x: TensorLike, /) -> Tensor:
    """The largest whole number not above each element, in the same dtype; real. Not differentiable.

    >>> import limelight as ll
    >>> ll.floor(ll.constant([1.7, -1.2])).tolist()
    [1.0, -2.0]
    """
    return _floor(x)


# ceil

_ceil = entry(defop(
    "ceil",
    inputs="x",
    infer=same,
    kernel=_whole("ceil"),
    special={"numpy": "ceil"} if KEEPS_INTEGERS else {},
    accepts="real",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip


def ceil(x: TensorLike, /) -> Tensor:
    """The smallest whole number not below each element, in the same dtype; real. Not differentiable.

    >>> import limelight as ll
    >>> ll.ceil(ll.constant([1.2, -1.7])).tolist()
    [2.0, -1.0]
    """
    return _ceil(x)


# round

_round = entry(defop(
    "round",
    inputs="x",
    infer=same,
    kernel=_whole("rint"),
    accepts="numeric",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip


@method("round")
def round(x: TensorLike, /) -> Tensor:  # the Array API's name
    """The nearest whole number, halves to the even one, in the same dtype; numeric. Not differentiable.

    Of complex numbers both parts are rounded.

    >>> import limelight as ll
    >>> ll.round(ll.constant([1.2, 2.5])).tolist()
    [1.0, 2.0]
    """
    return _round(x)


@method("__round__")
def _python_round(x: Tensor, ndigits: int | None = None) -> Tensor:
    """What Python's `round(x)` calls; to other places than whole numbers it does not round."""
    if ndigits:
        n = 10**ndigits if ndigits > 0 else f"1e{ndigits}"
        raise ArgumentError(f"round: tensors are rounded to whole numbers; write ll.round(x * {n}) / {n}")
    return _round(x)


# trunc

_trunc = entry(defop(
    "trunc",
    inputs="x",
    infer=same,
    kernel=_whole("trunc"),
    special={"numpy": "trunc"} if KEEPS_INTEGERS else {},
    accepts="real",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip


def trunc(x: TensorLike, /) -> Tensor:
    """Each element without its fraction, in the same dtype; real. Not differentiable.

    >>> import limelight as ll
    >>> ll.trunc(ll.constant([1.7, -1.7])).tolist()
    [1.0, -1.0]
    """
    return _trunc(x)


# isnan

_isnan = entry(defop(
    "isnan",
    inputs="x",
    infer=predicate,
    kernel=_asks("isnan", False),
    special={"numpy": "isnan"},
    accepts="numeric",
    why_no_gradient="its result is boolean",
))  # fmt: skip


def isnan(x: TensorLike, /) -> Tensor:
    """Whether each element is "not a number"; numeric.

    >>> import limelight as ll
    >>> ll.isnan(ll.constant([1.0, float('nan')])).tolist()
    [False, True]
    """
    return _isnan(x)


# isinf

_isinf = entry(defop(
    "isinf",
    inputs="x",
    infer=predicate,
    kernel=_asks("isinf", False),
    special={"numpy": "isinf"},
    accepts="numeric",
    why_no_gradient="its result is boolean",
))  # fmt: skip


def isinf(x: TensorLike, /) -> Tensor:
    """Whether each element is infinite; numeric.

    >>> import limelight as ll
    >>> ll.isinf(ll.constant([1.0, -float('inf')])).tolist()
    [False, True]
    """
    return _isinf(x)


# isfinite

_isfinite = entry(defop(
    "isfinite",
    inputs="x",
    infer=predicate,
    kernel=_asks("isfinite", True),
    special={"numpy": "isfinite"},
    accepts="numeric",
    why_no_gradient="its result is boolean",
))  # fmt: skip


def isfinite(x: TensorLike, /) -> Tensor:
    """Whether each element is neither infinite nor "not a number"; numeric.

    >>> import limelight as ll
    >>> ll.isfinite(ll.constant([1.0, float('inf')])).tolist()
    [True, False]
    """
    return _isfinite(x)

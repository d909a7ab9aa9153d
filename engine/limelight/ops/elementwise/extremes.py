"""The larger or smaller of two operands: `maximum`, `minimum`; and `clip`, both at once.

At a tie of `maximum` or `minimum` each operand has half of the gradient. `clip` passes the gradient on at its bounds.
"""

from __future__ import annotations

from typing import Any

from limelight.core import dtypes
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import DTypeError
from limelight.ops._shape_rules import broadcast, same

__all__ = ["clip", "maximum", "minimum"]

# maximum and minimum


def _ahead_kernel(xp: Any, x: Any, y: Any) -> Any:
    dtype = x.dtype if hasattr(x, "dtype") else y.dtype
    return ((x > y).astype(dtype) + (x >= y)) / 2


_ahead = entry_point(defop(
    "ahead",
    inputs="x y",
    infer=broadcast("ahead"),
    kernel=_ahead_kernel,
    accepts="floating",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip
# 1 where x > y, 0 where x < y, and a half at a tie, so that equal operands of a maximum share its gradient.

_maximum = entry_point(defop(
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


_minimum = entry_point(defop(
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


def _is_clipped(x: Tensor, low: Any, high: Any) -> Tensor:
    """Where clip changes something; NaN is not outside, so that its gradient is not a 0 that hides it."""
    below: Tensor | None = None if low is None else x < low
    above: Tensor | None = None if high is None else x > high
    if above is None or below is None:
        assert above is not None or below is not None, "clip without bounds is no op"
        return above if above is not None else below  # type: ignore[return-value]  # one of them is there
    return below | above


_clip = entry_point(defop(
    "clip",
    inputs="x",
    attrs="low high",
    infer=same,
    kernel=_clip_kernel,
    accepts="real",
    vjp={"x": lambda g, x, low, high: _is_clipped(x, low, high).where(0.0, g)},
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

"""Linear interpolation between samples: `interp`."""

from __future__ import annotations

from limelight.core.dispatch import apply
from limelight.core.op import get
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ShapeError
from limelight.ops._sample_operands import samples

__all__ = ["interp"]


def interp(
    x: TensorLike,
    xp: TensorLike,
    fp: TensorLike,
    /,
    left: TensorLike | None = None,
    right: TensorLike | None = None,
) -> Tensor:
    """Between the samples `fp` at `xp`, the values on straight lines at `x`; beyond the ends, those at the ends.

    Args:
        x: real, any shape.
        xp: where the samples are, a vector that increases.
        fp: the samples, a vector as long.
        left: the value before the first sample; by default that of the first.
        right: the value behind the last sample; by default that of the last.

    Returns:
        In the shape of `x`, floating (integers count as float32); differentiable in all of them.

    Raises:
        ShapeError: `xp` and `fp` are no vectors of one size, or empty.
        DTypeError: an operand is complex.

    >>> import limelight as ll
    >>> ll.interp(ll.constant([0.5, 9.0]), ll.constant([0.0, 1.0, 2.0]), ll.constant([0.0, 10.0, 15.0])).tolist()
    [5.0, 15.0]
    """
    x, xp, fp = samples("interp", x, xp, fp, accepts="floating")
    sizes = (*xp.shape, *fp.shape)
    if (xp.ndim, fp.ndim) != (1, 1) or 0 in sizes or (None not in sizes and sizes[0] != sizes[1]):
        raise ShapeError(f"interp: xp and fp must be vectors of one size, 1 at least, got {xp.spec} and {fp.spec}")
    high = apply(get("searchsorted"), (xp, x), ("right",))
    last = as_tensor(xp.sizes()[0]).astype(high.dtype) - 1
    inside = (high > 0) & (high <= last)
    low = (high > 0).where(high - 1, high)
    high = inside.where(high, low)
    step = inside.where(xp[high] - xp[low], 1.0)
    result: Tensor = fp[low] + inside.where((x - xp[low]) / step * (fp[high] - fp[low]), 0.0)
    if left is not None:
        result = (x < xp[0]).where(_value(left, result), result)
    if right is not None:
        result = (x > xp[-1]).where(_value(right, result), result)
    at_nan: Tensor = apply(get("isnan"), (x,)).where(x, result)  # which lies nowhere
    return at_nan


def _value(x: TensorLike, result: Tensor) -> Tensor:
    """A value for beyond the ends, in the dtype of the result."""
    return as_tensor(x).astype(result.dtype)

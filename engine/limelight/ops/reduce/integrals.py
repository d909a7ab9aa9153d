"""Integrals of sampled functions: `trapezoid`."""

from __future__ import annotations

from limelight.core import shapes
from limelight.core.tensor import Tensor, TensorLike
from limelight.errors import ShapeError
from limelight.ops._sample_operands import samples

__all__ = ["trapezoid"]


def trapezoid(y: TensorLike, /, x: TensorLike | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral along `axis` by the trapezoidal rule.

    Args:
        y: the values of the function; numeric, integers count as float32.
        x: where it has them, in a shape that broadcasts with that of `y`, or a vector along the axis. By default they
            are `dx` apart.
        dx: the distance of the samples, where `x` is not given; 1.
        axis: the axis; the last by default.

    Returns:
        The integrals, in the shape of `y` without the axis.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> import limelight as ll
    >>> ll.trapezoid(ll.constant([0.0, 1.0, 4.0]), ll.constant([0.0, 1.0, 3.0])).item()
    5.5
    """
    if x is None:
        (y,) = samples("trapezoid", y)
    else:
        y, x = samples("trapezoid", y, x)
    axis = shapes.one_axis("trapezoid", y.ndim, axis)
    if x is None:
        return _pairs(y, axis, 1).sum(axis) * (0.5 * dx)
    if x.ndim == 1 and y.ndim > 1:
        x = x.reshape((1,) * axis + (-1,) + (1,) * (y.ndim - 1 - axis))
    if x.ndim != y.ndim:
        raise ShapeError(f"trapezoid: x {x.spec} must be a vector along the axis, or have the axes of y {y.spec}")
    return (_pairs(x, axis, -1) * _pairs(y, axis, 1)).sum(axis) * 0.5


def _pairs(x: Tensor, axis: int, sign: int) -> Tensor:
    """The sums (or differences) of neighbours along an axis."""
    before = (slice(None),) * axis
    later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
    result: Tensor = later + earlier if sign > 0 else later - earlier
    return result

"""Linear interpolation between samples: `interp`."""

from __future__ import annotations

from limelight.core.dispatch import apply
from limelight.core.op import get
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ShapeError

__all__ = ["interp"]


def interp(x: TensorLike, xp: TensorLike, fp: TensorLike, /) -> Tensor:
    """Between the samples `fp` at `xp`, the values on straight lines at `x`; beyond the ends, those at the ends.

    Args:
        x: floating, any shape.
        xp: where the samples are, a vector that increases, of the same dtype.
        fp: the samples, a vector as long.

    Returns:
        In the shape of `x`; differentiable in all three.

    Raises:
        ShapeError: `xp` and `fp` are no vectors of one size, or empty.

    >>> import limelight as ll
    >>> ll.interp(ll.constant([0.5, 9.0]), ll.constant([0.0, 1.0, 2.0]), ll.constant([0.0, 10.0, 15.0])).tolist()
    [5.0, 15.0]
    """
    x, xp, fp = as_tensor(x), as_tensor(xp), as_tensor(fp)
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
    at_nan: Tensor = apply(get("isnan"), (x,)).where(x, result)  # which lies nowhere
    return at_nan

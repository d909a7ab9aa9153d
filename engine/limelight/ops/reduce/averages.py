"""Weighted means and covariances, made of means and products: `average`, `cov`."""

from __future__ import annotations

from collections.abc import Sequence

from limelight.core import dtypes, shapes
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import DTypeError, ShapeError

__all__ = ["average", "cov"]


def average(
    x: TensorLike,
    /,
    axis: int | Sequence[int] | None = None,
    weights: TensorLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """The mean over `axis`, in which elements count as much as their `weights` say.

    Args:
        x: floating or complex.
        axis: an axis, several, or None (the default) for all.
        weights: in the shape of `x`, or a vector along the one axis. By default all are 1.
        keepdims: whether these axes stay in place with size 1. False.

    Returns:
        sum(x * weights) / sum(weights), in the shape of `x` without the axes. NaN where the weights add up to 0.

    Raises:
        ShapeError: the weights have another shape.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.average(ll.constant([1.0, 2.0]), weights=ll.constant([3.0, 1.0])).item()
    1.25
    """
    x = _inexact("average", x)
    if weights is None:
        return x.mean(axis, keepdims)
    weights = as_tensor(weights).astype(x.dtype)
    if weights.ndim == 1 and x.ndim > 1 and isinstance(axis, int):
        along = shapes.one_axis("average", x.ndim, axis)
        weights = weights.reshape((1,) * along + (-1,) + (1,) * (x.ndim - 1 - along))
    elif weights.ndim != x.ndim:
        raise ShapeError(
            f"average: weights {weights.spec} must have the shape of x {x.spec}, or be a vector along one axis"
        )
    shares = weights.broadcast_to(x.sizes())
    result: Tensor = (x * weights).sum(axis, keepdims) / shares.sum(axis, keepdims)
    return result


def cov(x: TensorLike, /, *, rowvar: bool = True, correction: float = 1.0) -> Tensor:
    """The covariances of variables.

    Args:
        x: floating or complex, (variables, observations); a vector is one variable.
        rowvar: whether a row is a variable; if not, a column is. True.
        correction: the products are divided by the number of observations less this; 1, which is unbiased.

    Returns:
        (variables, variables), or a scalar of one variable.

    Raises:
        ShapeError: `x` has more than two axes, or none.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.cov(ll.constant([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    x = _inexact("cov", x)
    if x.ndim not in (1, 2):
        raise ShapeError(f"cov: needs a matrix (variables, observations) or a vector, got {x.spec}")
    one = x.ndim == 1
    x = x.reshape((1, -1)) if one else x if rowvar else x.transpose((1, 0))
    apart = x - x.mean(-1, True)
    n = x.shape[1]
    count = float(n) if n is not None else as_tensor(x.sizes()[1]).astype(x.dtype)
    products: Tensor = (apart @ apart.conj().transpose((1, 0))) / (count - correction)
    return products[0, 0] if one else products


def _inexact(name: str, x: TensorLike) -> Tensor:
    x = as_tensor(x)
    if not dtypes.is_inexact(x.dtype):
        raise DTypeError(
            f"{name} needs floating or complex operands, got {x.dtype.name}; write ll.astype(x, ll.float32) first"
        )
    return x

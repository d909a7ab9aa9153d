"""Order statistics, made of a sort: `quantile`, `percentile`, `median`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, DTypeError, ShapeError

__all__ = ["median", "percentile", "quantile"]


def quantile(x: TensorLike, q: float | Sequence[float], /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The quantiles of the elements along `axis`: the values below which a part `q` of them lies.

    Args:
        x: floating.
        q: a number from 0 to 1, or several.
        axis: the axis, or None (the default) for all elements.
        keepdims: whether the axis stays in place with size 1. False.

    Returns:
        The quantiles, in the shape of `x` without the axis; several `q` give a first axis. Between two elements a
        quantile lies on the line between them, and the gradient goes to both. NaN where there is one among the
        elements.

    Raises:
        ArgumentError: a `q` is out of range.
        ShapeError: there are no elements.
        DTypeError: `x` is not floating.

    >>> import limelight as ll
    >>> ll.quantile(ll.constant([4.0, 1.0, 3.0, 2.0]), [0.0, 0.5, 1.0]).tolist()
    [1.0, 2.5, 4.0]
    """
    return _quantile("quantile", x, q, axis, keepdims)


def percentile(x: TensorLike, q: float | Sequence[float], /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The percentiles of the elements along `axis`: `quantile`, for `q` from 0 to 100.

    Args:
        x: floating.
        q: a number from 0 to 100, or several.
        axis: the axis, or None (the default) for all elements.
        keepdims: whether the axis stays in place with size 1. False.

    Returns:
        The percentiles, as `quantile` gives them.

    Raises:
        ArgumentError: a `q` is out of range.
        ShapeError: there are no elements.
        DTypeError: `x` is not floating.

    >>> import limelight as ll
    >>> ll.percentile(ll.constant([4.0, 1.0, 3.0, 2.0]), 50.0).item()
    2.5
    """
    return _quantile("percentile", x, q, axis, keepdims, 100)


def median(x: TensorLike, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The middle element along `axis`, or the mean of the middle two: `quantile` for one half; floating.

    >>> import limelight as ll
    >>> ll.median(ll.constant([[4.0, 1.0], [3.0, 2.0], [9.0, 5.0]]), axis=0).tolist()
    [4.0, 2.0]
    """
    return _quantile("median", x, 0.5, axis, keepdims)


def _quantile(name: str, x: TensorLike, q: Any, axis: int | None, keepdims: bool, whole: int = 1) -> Tensor:
    x, parts = as_tensor(x), _parts(name, q, whole)
    if not dtypes.is_floating(x.dtype):
        raise DTypeError(f"{name} needs floating operands, got {x.dtype.name}; write ll.astype(x, ll.float32) first")
    rank = x.ndim
    along = 0 if axis is None else shapes.one_axis(name, rank, axis)
    if axis is None:
        x = x.reshape((-1,))
    if x.shape[along] == 0:
        raise ShapeError(f"{name}: {x.spec} has no elements along axis {along}, and so no {name}")
    quantiles = _between(x.sort(axis=along).transpose((along, *[i for i in range(x.ndim) if i != along])), parts)
    quantiles = quantiles[0] if np.ndim(q) == 0 else quantiles
    if not keepdims:
        return quantiles
    first = np.ndim(q)
    return quantiles.expand_dims(tuple(range(first, first + rank)) if axis is None else first + along)


def _parts(name: str, q: Any, whole: int) -> np.ndarray[Any, Any]:
    try:
        parts = np.asarray(q, np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: q must be a number from 0 to {whole}, or several, got {q!r}") from None
    if np.ndim(q) > 1 or not ((parts >= 0) & (parts <= whole)).all():
        raise ArgumentError(f"{name}: q must be a number from 0 to {whole}, or a vector of such, got {q!r}")
    return parts / whole


def _between(ordered: Tensor, parts: np.ndarray[Any, Any]) -> Tensor:
    """The rows at `parts` of the way from the first to the last, in a new first axis."""
    count = ordered.shape[0]
    last = count - 1 if count is not None else as_tensor(ordered.sizes()[0]).astype(dtypes.float64) - 1.0
    place = as_tensor(as_tensor(parts) * last)
    low = (place // 1.0).astype(dtypes.int64)
    weight = place - low.astype(dtypes.float64)
    high = low + (weight > 0.0).astype(dtypes.int64)  # the same where it is on an element: infinity times 0 is NaN
    wide = dtypes.float32 if ordered.dtype.itemsize == 2 else ordered.dtype
    weight = weight.astype(wide).reshape((-1,) + (1,) * (ordered.ndim - 1))
    below, above = ordered[low].astype(wide), ordered[high].astype(wide)
    interpolated = (low == high).reshape(weight.shape).where(below, below + (above - below) * weight)
    worst = ordered[-1:].astype(wide)  # NaN comes last
    has_nan = worst != worst  # noqa: PLR0124  # NaN, and nothing else
    result: Tensor = has_nan.where(worst, interpolated).astype(ordered.dtype)
    return result

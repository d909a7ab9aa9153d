"""Order statistics, made of a sort: `quantile`, `percentile`, `median`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import entry_point
from limelight.core.op import defop, get
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._sample_operands import samples
from limelight.ops._shape_rules import axis_attr, check_keepdims, same

__all__ = ["median", "percentile", "quantile"]


def quantile(
    x: TensorLike,
    q: float | Sequence[float] | TensorLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    method: str = "linear",
) -> Tensor:
    """The quantiles of the elements along `axis`: the values below which a part `q` of them lies.

    Args:
        x: real; integers and booleans count as float32.
        q: a number from 0 to 1, or several; or a tensor of them, which has a gradient: how steep the line is between
            the two elements, 0 on one and where the method takes one.
        axis: the axis, several, or None (the default) for all elements.
        keepdims: whether the axes stay in place with size 1. False.
        method: where a quantile lies that is between two elements: "linear" (the default): on the line between them,
            and the gradient goes to both; "lower", "higher", "midpoint", "nearest" (of two as near the one of even
            place); or the place itself is estimated otherwise, "hazen", "weibull", "median_unbiased",
            "normal_unbiased", "interpolated_inverted_cdf" (Hyndman and Fan 1996, types 5, 6, 8, 9 and 4).

    Returns:
        The quantiles, in the shape of `x` without the axes; several `q` give a first axis. NaN where there is one among
        the elements.

    Raises:
        ArgumentError: a `q` is out of range, or there is no such method.
        ShapeError: there are no elements.
        DTypeError: `x` is complex.

    >>> import limelight as ll
    >>> ll.quantile(ll.constant([4.0, 1.0, 3.0, 2.0]), [0.0, 0.5, 1.0]).tolist()
    [1.0, 2.5, 4.0]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("quantile", "keepdims", keepdims)
    return _quantile("quantile", x, q, axis, keepdims, method=method)


def percentile(
    x: TensorLike,
    q: float | Sequence[float] | TensorLike,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    method: str = "linear",
) -> Tensor:
    """The percentiles of the elements along `axis`: `quantile`, for `q` from 0 to 100.

    Args:
        x: real.
        q: a number from 0 to 100, or several.
        axis: as in `quantile`, as are `keepdims` and `method`.
        keepdims: whether the axes stay in place with size 1. False.
        method: "linear" by default.

    Returns:
        The percentiles, as `quantile` gives them.

    Raises:
        ArgumentError: a `q` is out of range, or there is no such method.
        ShapeError: there are no elements.
        DTypeError: `x` is complex.

    >>> import limelight as ll
    >>> ll.percentile(ll.constant([4.0, 1.0, 3.0, 2.0]), 50.0).item()
    2.5
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("percentile", "keepdims", keepdims)
    return _quantile("percentile", x, q, axis, keepdims, 100, method)


def median(x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The middle element along `axis`, or the mean of the middle two: `quantile` for one half.

    >>> import limelight as ll
    >>> ll.median(ll.constant([[4.0, 1.0], [3.0, 2.0], [9.0, 5.0]]), axis=0).tolist()
    [4.0, 2.0]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("median", "keepdims", keepdims)
    return _quantile("median", x, 0.5, axis, keepdims)


def _quantile(
    name: str, x: TensorLike, q: Any, axis: Any, keepdims: bool, whole: int = 1, method: str = "linear"
) -> Tensor:
    if any(isinstance(one, Tensor) or hasattr(one, "__as_tensor__") for one in (q, *(q if type(q) in _LISTS else ()))):
        q = as_tensor(q)
    (x,), parts, rank = samples(name, x, accepts="floating"), _parts(name, q, whole), _rank(q)
    if method not in _METHODS:
        raise ArgumentError(f"{name}: method must be one of {', '.join(map(repr, _METHODS))}; got {method!r}")
    over = shapes.axes(name, x.ndim, axis_attr(axis))
    check_keepdims(name, keepdims)
    if any(x.shape[i] == 0 for i in over):
        raise ShapeError(f"{name}: {x.spec} has no elements along axis {axis}, and so no {name}")
    quantiles = _between(_joined(x, over).sort(axis=0), parts, method)
    quantiles = quantiles if rank else quantiles[0]
    return quantiles.expand_dims(tuple([rank + i for i in over])) if keepdims and over else quantiles


def _joined(x: Tensor, over: Sequence[int]) -> Tensor:
    """`x` with the axes `over` made one, the first."""
    rest = [i for i in range(x.ndim) if i not in over]
    if len(over) == x.ndim:
        return x.reshape((-1,))
    moved = x.transpose((*over, *rest))
    if len(over) == 1:
        return moved
    if None not in (sizes := [x.shape[i] for i in rest]):
        return moved.reshape((-1, *sizes))
    symbolic = as_tensor(moved.sizes())[len(over) :]
    return moved.reshape(get("concat")(np.array([-1], symbolic.dtype), symbolic, axis=0))


_LISTS: Final = (list, tuple)


def _rank(q: Any) -> int:
    return q.ndim if isinstance(q, Tensor) else np.ndim(q)  # NumPy would read the numbers


def _parts_numpy(xp: Any, q: Any, name: str, whole: int) -> Any:
    _check_parts(name, q, whole, q.tolist())
    return q / whole


_tensor_parts = entry_point(defop(
    "quantile_parts",
    inputs="q",
    attrs="name whole",
    infer=same,
    kernel=lambda xp, q, name, whole: q / whole,
    special={"numpy": _parts_numpy},
    accepts="floating",
    vjp={"q": lambda g, name, whole: g / whole},
    maths={"q": "q̄ = ȳ / whole"},
))  # fmt: skip


def _check_parts(name: str, parts: Any, whole: int, given: Any) -> None:
    if not ((parts >= 0) & (parts <= whole)).all():
        raise ArgumentError(f"{name}: q must be a number from 0 to {whole}, or a vector of such, got {given!r}")


def _parts(name: str, q: Any, whole: int) -> Tensor:
    """`q` as parts of one, a vector in float64."""
    if isinstance(q, Tensor):
        if q.ndim > 1 or dtypes.kind(q.dtype) == "complex":
            raise ArgumentError(f"{name}: q must be a number from 0 to {whole}, or a vector of such, got {q.spec}")
        return _tensor_parts(q.astype(dtypes.float64).reshape((-1,)), name, whole)
    try:
        parts = np.asarray(q, np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: q must be a number from 0 to {whole}, or several, got {q!r}") from None
    if _rank(q) > 1:
        raise ArgumentError(f"{name}: q must be a number from 0 to {whole}, or a vector of such, got {q!r}")
    _check_parts(name, parts, whole, q)
    return as_tensor(parts / whole)


_METHODS: Final = {
    "linear": (1.0, 1.0), "lower": (1.0, 1.0), "higher": (1.0, 1.0), "midpoint": (1.0, 1.0), "nearest": (1.0, 1.0),
    "hazen": (0.5, 0.5), "weibull": (0.0, 0.0), "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8), "interpolated_inverted_cdf": (0.0, 1.0),
}  # fmt: skip
"""Alpha and beta of the place of a quantile, by Hyndman and Fan."""


def _weight(method: str, low: Any, weight: Any) -> Any:
    """How much the element above counts, where the place lies `weight` of the way from that at `low` to it."""
    if method == "lower":
        return weight * 0.0
    if method == "higher":
        return (weight > 0.0).astype(dtypes.float64)
    if method == "midpoint":
        return (weight > 0.0).astype(dtypes.float64) * 0.5
    if method == "nearest":
        return ((weight > 0.5) | ((weight == 0.5) & (low % 2 == 1))).astype(dtypes.float64)
    return weight


def _between(ordered: Tensor, fractions: Tensor, method: str) -> Tensor:
    """The rows at `fractions` of the way from the first to the last, in a new first axis."""
    n = ordered.shape[0]
    count: Any = n if n is not None else as_tensor(ordered.sizes()[0]).astype(dtypes.float64)
    alpha, beta = _METHODS[method]
    place = (
        fractions * (count - 1.0)
        if alpha == beta == 1.0
        else _clipped(fractions * count + alpha + fractions * (1.0 - alpha - beta) - 1.0, count - 1.0)
    )
    low = (place // 1.0).astype(dtypes.int64)
    weight = _weight(method, low, place - low.astype(dtypes.float64))
    high = low + (weight > 0.0).astype(dtypes.int64)  # the same where it is on an element: infinity times 0 is NaN
    wide = dtypes.float32 if ordered.dtype.itemsize == 2 else ordered.dtype
    weight = weight.astype(wide).reshape((-1,) + (1,) * (ordered.ndim - 1))
    below, above = ordered[low].astype(wide), ordered[high].astype(wide)
    infinite = (below == -math.inf) | (above == math.inf)  # whose distance to anything is infinite
    between = infinite.where(below * (1.0 - weight) + above * weight, below + (above - below) * weight)
    interpolated = (low == high).reshape(weight.shape).where(below, between)
    worst = ordered[-1:].astype(wide)  # NaN comes last
    has_nan = worst != worst  # noqa: PLR0124  # NaN, and nothing else
    result: Tensor = has_nan.where(worst, interpolated).astype(ordered.dtype)
    return result


def _clipped(place: Tensor, last: Any) -> Tensor:
    inside = place.clip(0.0, None)
    clipped: Tensor = (inside > last).where(last, inside)
    return clipped

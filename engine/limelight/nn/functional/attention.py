"""Attention: means of values, weighted by how well queries and keys agree.

A query that may see nothing gets zeros, not NaN. `causal` counts from the end, so that one query with many keys is the
last of them.
"""

from __future__ import annotations

import math
from typing import Any, Final

from limelight.core import dtypes, shapes
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import DTypeError, ShapeError
from limelight.nn.functional._operands import floating, wide
from limelight.ops.create.creation import arange
from limelight.ops.elementwise.where import where
from limelight.ops.nn.softmax import softmax

__all__ = ["dot_product_attention"]

_FORBIDDEN: Final = -1e30
"""A score whose weight is 0 beside any other. (An infinite one would make NaN of a query that may see nothing.)"""


def dot_product_attention(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    /,
    mask: TensorLike | None = None,
    causal: bool = False,
    scale: float | None = None,
    bias: TensorLike | None = None,
) -> Tensor:
    """softmax(q kᵀ * scale + bias) v: for each query the mean of the values, weighted by keys (Vaswani et al. 2017).

    Args:
        q: (..., queries, depth). Heads are leading axes, such as (batch, heads, queries, depth).
        k: (..., keys, depth), leading axes broadcasting.
        v: (..., keys, features).
        mask: broadcasts to (..., queries, keys): booleans, true where a query may see a key. A query that may see
            nothing gets zeros. Beside q with heads, (batch, heads, queries, depth), a mask of three axes is refused,
            since it may be meant for (batch, queries, keys) or (heads, queries, keys).
        causal: whether a query sees only keys up to its own place, counted from the end: the last query sees all.
        scale: what scores are multiplied by; 1 / sqrt(depth) by default.
        bias: broadcasts to (..., queries, keys) by the same rules: floating numbers that are added to the scores.

    Returns:
        (..., queries, features). float16 and bfloat16 are computed in float32 and rounded once.

    Raises:
        ShapeError: sizes do not fit, or a mask or bias may be meant in two ways.
        DTypeError: q, k, v or a bias is not floating, or a mask not boolean.

    >>> import limelight as ll
    >>> q, k, v = ll.ones((1, 2)), ll.zeros((3, 2)), ll.constant([[1.0], [2.0], [6.0]])
    >>> ll.nn.dot_product_attention(q, k, v).tolist()
    [[3.0]]
    """
    if type(causal) is not bool:
        causal = shapes.flag("dot_product_attention", "causal", causal)
    q, k, v = (floating("dot_product_attention", x) for x in (q, k, v))
    _check(q, k, v)
    dtype = q.dtype
    q, k, v = wide(q), wide(k), wide(v)
    if scale is None:
        depth = q.shape[-1] if q.shape[-1] is not None else k.shape[-1]
        if depth is None:
            raise ShapeError(f"dot_product_attention: the depth (last axis) of {q.spec} is unknown; give `scale`")
        scale = 1.0 / math.sqrt(max(depth, 1))
    scores = (q * scale) @ k.mT
    allowed = _causal(q, k) if causal else None
    if mask is not None:
        mask = _boolean(mask)
        _check_places("mask", mask, scores)
        allowed = mask if allowed is None else mask & allowed
    if bias is not None:
        bias = floating("dot_product_attention", bias)
        _check_places("bias", bias, scores)
        scores = scores + bias.astype(scores.dtype)
    weights = softmax(scores if allowed is None else where(allowed, scores, _FORBIDDEN))
    return ((weights if allowed is None else where(allowed, weights, 0.0)) @ v).astype(dtype)


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(
            "dot_product_attention: q must be (..., queries, depth), k (..., keys, depth) and v (..., keys, features); "
            f"got {q.spec}, {k.spec} and {v.spec}"
        )
    for what, x, y, axis in (("q and k", q, k, -1), ("k and v", k, v, -2)):
        if None not in (x.shape[axis], y.shape[axis]) and x.shape[axis] != y.shape[axis]:
            raise ShapeError(
                f"dot_product_attention: axis {axis} of {what} must have the same size, got {x.spec} and {y.spec}"
            )
    shapes.broadcast("dot_product_attention", q.shape[:-2], k.shape[:-2], v.shape[:-2])


def _boolean(mask: TensorLike) -> Tensor:
    mask = as_tensor(mask)
    if mask.dtype != dtypes.bool_:
        raise DTypeError(
            f"dot_product_attention: a mask is boolean, true where a query may see a key, got {mask.spec}; of zeros "
            "and ones write mask=mask != 0; numbers that are added to the scores are given as bias="
        )
    return mask


def _check_places(name: str, given: Tensor, scores: Tensor) -> None:
    """Refuses what does not broadcast to the scores, and what does so by chance (batches that are taken for heads)."""
    if scores.ndim == 4 and given.ndim == 3 and given.shape[0] != 1:
        raise ShapeError(
            f"dot_product_attention: the {name} is {given.spec}, the scores (batch, heads, queries, keys) are "
            f"{scores.spec}; for (batch, queries, keys) write {name}={name}[:, None], for (heads, queries, keys) "
            f"{name}={name}[None]"
        )
    try:
        shapes.broadcast(f"dot_product_attention (scores and {name})", scores.shape, given.shape)
    except ShapeError as error:
        if (
            scores.ndim == 4
            and given.ndim == 2
            and (given.shape[0], given.shape[1]) == (scores.shape[0], scores.shape[3])
        ):
            raise ShapeError(f"{error}; for (batch, keys) write {name}={name}[:, None, None]") from None
        raise


def _causal(q: Tensor, k: Tensor) -> Tensor:
    """Whether query i may see key j, (queries, keys)."""
    queries, keys = _length(q), _length(k)
    seen: Tensor = arange(queries).expand_dims(-1) + (keys - queries) >= arange(keys)
    return seen


def _length(x: Tensor) -> Any:
    return x.shape[-2] if x.shape[-2] is not None else x.sizes()[-2]

"""The logarithm of a sum of exponentials over axes: `logsumexp`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core import shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import known
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._gradient_terms import restore
from limelight.ops._kernel_parts import largest_over, sum_over, wide
from limelight.ops._shape_rules import Axis, axis_attr, own_dtype, reduction

__all__ = ["logsumexp"]

# shares: softmax over several axes, the gradient of logsumexp


def _shares_kernel(xp: Any, x: Any, axis: Axis) -> Any:
    """Infinite largest elements share what there is to share: exp of their difference, which is NaN, counts as 1."""
    wide_x = wide(x)
    top = largest_over(xp, wide_x, axis)
    finite = xp.isfinite(top)
    e = xp.exp(wide_x - xp.where(finite, top, 0))
    if xp is not np or not finite.all():  # elsewhere to ask would wait for the device, or cannot be done in a trace
        e = xp.where(finite | xp.isnan(top), e, xp.equal(wide_x, top).astype(e.dtype))
    return (e / sum_over(xp, e, axis, True)).astype(x.dtype)


_shares: EntryPoint = entry_point(defop(
    "logsumexp_shares",
    inputs="x",
    attrs="axis",
    infer=lambda x, axis: known(x.shape, x.dtype),
    kernel=_shares_kernel,
    accepts="floating",
    vjp={"x": lambda g, out, axis: out * (g - (g * out).sum(axis, True))},
    maths={"x": "x̄ = y (ȳ - Σ ȳ y)"},
    batching="along_axis",
    fresh=True,
))  # fmt: skip

# logsumexp


def _logsumexp_gradient(g: Tensor, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    return restore(g, axis, keepdims) * _shares(x, shapes.axes("logsumexp", x.ndim, axis))


def _logsumexp_kernel(xp: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    wide_x = wide(x)
    top = largest_over(xp, wide_x, axis)
    top = xp.where(xp.isfinite(top), top, 0)
    log_sum = xp.log(sum_over(xp, xp.exp(wide_x - top), axis, keepdims))
    return (log_sum + (top if keepdims else xp.squeeze(top, axis=axis))).astype(x.dtype)


_logsumexp = entry_point(defop(
    "logsumexp",
    inputs="x",
    attrs="axis keepdims",
    infer=reduction("logsumexp", own_dtype),
    kernel=_logsumexp_kernel,
    accepts="floating",
    vjp={"x": _logsumexp_gradient},
    maths={"x": "x̄ = ȳ exp(x - y)"},
    fresh=True,
))  # fmt: skip


def logsumexp(x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over `axis`, without overflow; floating. -inf of no elements.

    Equal infinite elements share the gradient.

    >>> import limelight as ll
    >>> ll.logsumexp(ll.constant([1000.0, 0.0])).item()
    1000.0
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("logsumexp", "keepdims", keepdims)
    return _logsumexp(x, axis_attr(axis), keepdims)

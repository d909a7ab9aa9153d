"""The logarithm of a sum of exponentials over axes: `logsumexp`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._gradient_terms import restore
from limelight.ops._kernel_parts import sum_over, wide
from limelight.ops._shape_rules import Axis, axis_attr, own_dtype, reduction

__all__ = ["logsumexp"]

# logsumexp


def _logsumexp_kernel(xp: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    wide_x = wide(x)
    top = xp.max(wide_x, axis=axis, keepdims=True, initial=-xp.inf)
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
    vjp={"x": lambda g, x, out, axis, keepdims: restore(g, axis, keepdims) * (x - restore(out, axis, keepdims)).exp()},
    maths={"x": "x̄ = ȳ exp(x - y)"},
    fresh=True,
))  # fmt: skip


def logsumexp(x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over `axis`, without overflow; floating. -inf of no elements.

    >>> import limelight as ll
    >>> ll.logsumexp(ll.constant([1000.0, 0.0])).item()
    1000.0
    """
    return _logsumexp(x, axis_attr(axis), keepdims)

"""Standard scores: what normalisations are made of, with the moments along the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight import dtypes, shapes
from limelight.dtypes import DType
from limelight.eager import Entry, entry, entry_of_many
from limelight.ops._infer import SHORT
from limelight.ops._numpy import add_reduce
from limelight.ops._rules import count
from limelight.registry import defop
from limelight.spec import TensorSpec, known
from limelight.tensor import Tensor, TensorLike, as_tensor

__all__ = ["standardise"]

Axes = tuple[int, ...]


def _mean(xp: Any, x: Any, axes: Axes) -> Any:
    total = add_reduce(x, axes, None, None, True) if xp is np else xp.sum(x, axis=axes, keepdims=True)
    return total / math.prod([x.shape[i] for i in axes])


def _wide(x: Any) -> Any:
    return x.astype(dtypes.float32) if x.dtype in SHORT else x


def _infer(x: TensorSpec, axes: Axes, epsilon: float) -> tuple[TensorSpec, ...]:
    moment = known(shapes.reduce(x.shape, axes, True), x.dtype)
    return x, moment, moment


def _kernel(xp: Any, x: Any, axes: Axes, epsilon: float) -> tuple[Any, Any, Any]:
    dtype, x = x.dtype, _wide(x)
    mean = _mean(xp, x, axes)
    y = x - mean
    variance = _mean(xp, y * y, axes)
    y *= 1.0 / xp.sqrt(variance + epsilon)
    return y.astype(dtype, copy=False), mean.astype(dtype, copy=False), variance.astype(dtype, copy=False)


def _gradient(
    g: tuple[Tensor | None, ...], out: tuple[Tensor, ...], x_shape: Any, x_dtype: DType, axes: Axes, epsilon: float
) -> Tensor | None:
    """Together what comes from the scores, the mean, and the variance (whose gradient is 2 (x - mean) / n)."""
    (gy, to_mean, to_variance), (y, _, variance) = g, out
    found = None if gy is None else _backward((gy, y, variance), axes, epsilon)
    n = count(x_shape, axes, x_dtype)
    for part in (
        None if to_variance is None else y * (to_variance * (variance + epsilon).sqrt() * 2.0 / n),
        None if to_mean is None else (to_mean / n).broadcast_to(x_shape),
    ):
        found = part if found is None else found if part is None else found + part
    return found


_standardise = entry_of_many(defop(
    "standardise",
    inputs="x",
    attrs="axes epsilon",
    infer=_infer,
    kernel=_kernel,
    accepts="floating",
    multiple=True,
    vjp={"x": _gradient},
    maths={"x": "x̄ = (ȳ - mean(ȳ) - y mean(ȳ y)) / √(variance + ε)"},
))  # fmt: skip


def _backward_kernel(xp: Any, g: Any, y: Any, variance: Any, axes: Axes, epsilon: float) -> Any:
    dtype = g.dtype
    g, y, variance = _wide(g), _wide(y), _wide(variance)
    found = y * _mean(xp, g * y, axes)
    found += _mean(xp, g, axes)
    found = xp.subtract(g, found)
    found *= 1.0 / xp.sqrt(variance + epsilon)
    return found.astype(dtype, copy=False)


def _backward_of_scores(g: Tensor, h: Tensor, y: Tensor, variance: Tensor, axes: Axes, epsilon: float) -> Tensor:
    """`h` is what the op was given as the gradient of the scores, `g` is the gradient of what it returned."""
    return -(g * (h * y).mean(axes, True) + h * (g * y).mean(axes, True)) / (variance + epsilon).sqrt()


def _backward_of_variance(g: Tensor, out: Tensor, variance: Tensor, axes: Axes, epsilon: float) -> Tensor:
    return -0.5 * (g * out).sum(axes, True) / (variance + epsilon)


_backward: Entry = entry(defop(
    "standardise_gradient",
    inputs="h y variance",
    attrs="axes epsilon",
    infer=lambda h, y, variance, axes, epsilon: h,
    kernel=_backward_kernel,
    accepts="floating",
    vjp={
        "h": lambda g, y, variance, axes, epsilon: _backward((g, y, variance), axes, epsilon),
        "y": _backward_of_scores,
        "variance": _backward_of_variance,
    },
    linear="h",
    maths={"h": "h̄ = the same of ḡ", "y": "ȳ = -(ḡ mean(h y) + h mean(ḡ y)) / √(variance + ε)"},
))  # fmt: skip


def standardise(
    x: TensorLike, /, axis: int | Sequence[int] = -1, epsilon: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / sqrt(variance + epsilon) over `axis` (one or several), with the mean and the variance; floating.

    The moments keep their axes, of size 1. float16 and bfloat16 are computed in float32. All three have gradients.

    >>> import limelight as ll
    >>> y, mean, variance = ll.nn.standardise(ll.constant([1.0, 3.0]))
    >>> y.tolist(), mean.tolist(), variance.tolist()
    ([-1.0, 1.0], [2.0], [1.0])
    """
    x = as_tensor(x)
    return _standardise((x,), shapes.axes("standardise", x.ndim, axis), epsilon)  # type: ignore[return-value]

"""Standard scores, `standardise`: what normalisations are made of, with the moments along the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core import shapes
from limelight.core.cores import for_each
from limelight.core.dtypes import DType
from limelight.core.eager import EntryPoint, entry_point, entry_point_of_many
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError
from limelight.ops._gradient_terms import count
from limelight.ops._kernel_parts import add_reduce, sum_over, wide
from limelight.ops.nn._columns import is_large, normalised, normalised_gradient, row_pieces

__all__ = ["standardise"]

Axes = tuple[int, ...]


def _mean(xp: Any, x: Any, axes: Axes) -> Any:
    return sum_over(xp, x, axes, True) / math.prod([x.shape[i] for i in axes])


def _infer(x: TensorSpec, axes: Axes, epsilon: float) -> tuple[TensorSpec, ...]:
    moment = known(shapes.reduce(x.shape, axes, True), x.dtype)
    return x, moment, moment


def _kernel(xp: Any, x: Any, axes: Axes, epsilon: float) -> tuple[Any, Any, Any]:
    dtype, x = x.dtype, wide(x)
    mean = _mean(xp, x, axes)
    y = x - mean
    variance = _mean(xp, y * y, axes)
    y *= 1.0 / xp.sqrt(variance + epsilon)
    return y.astype(dtype, copy=False), mean.astype(dtype, copy=False), variance.astype(dtype, copy=False)


def _flat(x: Any, axes: Axes) -> tuple[Any, bool] | None:
    """`x` as a matrix, and whether its columns are to be standardised, else its rows; None for axes in the middle."""
    n = len(axes)
    if axes == tuple(range(n)):
        return x.reshape(-1, math.prod(x.shape[n:])), True
    if axes == tuple(range(x.ndim - n, x.ndim)):
        return x.reshape(math.prod(x.shape[: x.ndim - n]), -1), False
    return None


def _kernel_numpy(xp: Any, x: Any, axes: Axes, epsilon: float) -> Any:
    flattened = _flat(x, axes) if is_large(x) else None
    if flattened is None:
        return _kernel(xp, x, axes, epsilon)
    flat, columns = flattened
    y, mean, variance = normalised(flat, None, None, epsilon) if columns else _standardise_rows(flat, epsilon)
    kept = shapes.reduce(x.shape, axes, True)
    return y.reshape(x.shape), mean.reshape(kept), variance.reshape(kept)


def _standardise_rows(x: Any, epsilon: float) -> tuple[Any, Any, Any]:
    y, moments = np.empty_like(x), np.empty((2, len(x)), x.dtype)

    def compute(piece: slice) -> None:
        mean, variance = moments[0, piece], moments[1, piece]
        np.divide(add_reduce(x[piece], 1), x.shape[1], out=mean)
        apart = np.subtract(x[piece], mean[:, None], out=y[piece])
        np.divide(add_reduce(apart * apart, 1), x.shape[1], out=variance)
        apart *= (1.0 / np.sqrt(variance + epsilon))[:, None]

    for_each(compute, row_pieces(*x.shape), x.size)
    return y, moments[0], moments[1]


def _gradient(
    g: tuple[Tensor | None, ...], out: tuple[Tensor, ...], x_shape: Any, x_dtype: DType, axes: Axes, epsilon: float
) -> Tensor | None:
    """Together what comes from the scores, the mean, and the variance (whose gradient is 2 (x - mean) / n)."""
    (gy, to_mean, to_variance), (y, _, variance) = g, out
    total = None if gy is None else _backward((gy, y, variance), axes, epsilon)
    n = count(x_shape, axes, x_dtype)
    for part in (
        None if to_variance is None else y * (to_variance * (variance + epsilon).sqrt() * 2.0 / n),
        None if to_mean is None else (to_mean / n).broadcast_to(x_shape),
    ):
        total = part if total is None else total if part is None else total + part
    return total


_standardise = entry_point_of_many(defop(
    "standardise",
    inputs="x",
    attrs="axes epsilon",
    infer=_infer,
    kernel=_kernel,
    special={"numpy": _kernel_numpy},
    accepts="floating",
    multiple=True,
    vjp={"x": _gradient},
    maths={"x": "x̄ = (ȳ - mean(ȳ) - y mean(ȳ y)) / √(variance + ε)"},
    batching="along_axis",
))  # fmt: skip


def _backward_kernel(xp: Any, g: Any, y: Any, variance: Any, axes: Axes, epsilon: float) -> Any:
    dtype = g.dtype
    g, y, variance = wide(g), wide(y), wide(variance)
    gradient = y * _mean(xp, g * y, axes)
    gradient += _mean(xp, g, axes)
    gradient = xp.subtract(g, gradient)
    gradient *= 1.0 / xp.sqrt(variance + epsilon)
    return gradient.astype(dtype, copy=False)


def _backward_numpy(xp: Any, g: Any, y: Any, variance: Any, axes: Axes, epsilon: float) -> Any:
    flattened = _flat(g, axes) if is_large(g) else None
    if flattened is None:
        return _backward_kernel(xp, g, y, variance, axes, epsilon)
    flat, columns = flattened
    seen, factor = y.reshape(flat.shape), (1.0 / np.sqrt(variance + epsilon)).reshape(-1)
    gradient = normalised_gradient(flat, seen, None, factor, 0.0)[0] if columns else _rows_backward(flat, seen, factor)
    return gradient.reshape(g.shape)


def _rows_backward(g: Any, y: Any, factor: Any) -> Any:
    out, width = np.empty_like(g), g.shape[1]

    def compute(piece: slice) -> None:
        part, score, out_part = g[piece], y[piece], out[piece]
        mean, common = (add_reduce(z, 1, None, None, True) / width for z in (part, part * score))
        np.multiply(score, common, out=out_part)
        out_part += mean
        np.subtract(part, out_part, out=out_part)
        out_part *= factor[piece, None]

    for_each(compute, row_pieces(*g.shape), g.size)
    return out


def _backward_of_scores(g: Tensor, h: Tensor, y: Tensor, variance: Tensor, axes: Axes, epsilon: float) -> Tensor:
    """`h` is what the op was given as the gradient of the scores, `g` is the gradient of what it returned."""
    return -(g * (h * y).mean(axes, True) + h * (g * y).mean(axes, True)) / (variance + epsilon).sqrt()


def _backward_of_variance(g: Tensor, out: Tensor, variance: Tensor, axes: Axes, epsilon: float) -> Tensor:
    return -0.5 * (g * out).sum(axes, True) / (variance + epsilon)


_backward: EntryPoint = entry_point(defop(
    "standardise_gradient",
    inputs="h y variance",
    attrs="axes epsilon",
    infer=lambda h, y, variance, axes, epsilon: h,
    kernel=_backward_kernel,
    special={"numpy": _backward_numpy},
    accepts="floating",
    vjp={
        "h": lambda g, y, variance, axes, epsilon: _backward((g, y, variance), axes, epsilon),
        "y": _backward_of_scores,
        "variance": _backward_of_variance,
    },
    linear="h",
    maths={"h": "h̄ = the same of ḡ", "y": "ȳ = -(ḡ mean(h y) + h mean(ḡ y)) / √(variance + ε)"},
    batching="operands_along_axis",
))  # fmt: skip


def standardise(
    x: TensorLike, /, axis: int | Sequence[int] = -1, epsilon: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / sqrt(variance + epsilon) over `axis` (one or several), with the mean and the variance; floating.

    The moments keep their axes, of size 1. float16 and bfloat16 are computed in float32. All three have gradients.

    Raises:
        ArgumentError: `epsilon` is a tensor.

    >>> import limelight as ll
    >>> y, mean, variance = ll.nn.standardise(ll.constant([1.0, 3.0]))
    >>> y.tolist(), mean.tolist(), variance.tolist()
    ([-1.0, 1.0], [2.0], [1.0])
    """
    x = as_tensor(x)
    if isinstance(epsilon, Tensor):  # a constant of the op
        raise ArgumentError(
            f"standardise: epsilon must be a number, got {epsilon.spec}; of ll.nn.moments(x, axis, True) write "
            "(x - mean) * ll.rsqrt(variance + epsilon)"
        )
    return _standardise((x,), shapes.axes("standardise", x.ndim, axis), epsilon)  # type: ignore[return-value]

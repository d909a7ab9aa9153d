"""Standard scores, `standardise`: what normalisations are made of, with the moments along the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

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
from limelight.ops._shape_rules import SHORT

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


# NumPy walks over large arrays in pieces that stay in a cache and allocates the result alone: about half the time. The
# cores share out the pieces, or parts of several where sums of columns are added up.

PIECE: Final = 1 << 16
"""Elements of a piece."""
PARTS: Final = 16
"""Of which each has sums of columns of its own: so many at most, so that few are added up in the end."""
ROWS: Final = 16
"""Of a part, at least: the sums are to be less than what is summed."""


def _pieces(rows: int, width: int) -> list[slice]:
    step = max(PIECE // max(width, 1), 1)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def _sums_of_columns(of_piece: Callable[[slice], Any], rows: int, width: int, dtype: Any, sums: int = 1) -> Any:
    """As many sums as `of_piece` gives for a piece of the rows, in an order that the shape alone decides."""
    pieces = _pieces(rows, width)
    count = max(min(PARTS, len(pieces), rows // ROWS), 1)
    parts = np.zeros((count, sums, width), dtype)

    def add_up(part: int) -> None:
        for piece in pieces[len(pieces) * part // count : len(pieces) * (part + 1) // count]:
            parts[part] += of_piece(piece)

    for_each(add_up, range(count), rows * width)
    return add_reduce(parts, 0)


def _flat(x: Any, axes: Axes) -> tuple[Any, bool] | None:
    """`x` as a matrix, and whether its columns are to be standardised, else its rows; None for axes in the middle."""
    n = len(axes)
    if axes == tuple(range(n)):
        return x.reshape(-1, math.prod(x.shape[n:])), True
    if axes == tuple(range(x.ndim - n, x.ndim)):
        return x.reshape(math.prod(x.shape[: x.ndim - n]), -1), False
    return None


def _kernel_numpy(xp: Any, x: Any, axes: Axes, epsilon: float) -> Any:
    flattened = _flat(x, axes) if x.size > PIECE and x.dtype not in SHORT else None
    if flattened is None:
        return _kernel(xp, x, axes, epsilon)
    flat, columns = flattened
    y = np.empty_like(flat)
    mean, variance = _standardise_columns(flat, epsilon, y) if columns else _standardise_rows(flat, epsilon, y)
    kept = shapes.reduce(x.shape, axes, True)
    return y.reshape(x.shape), mean.reshape(kept), variance.reshape(kept)


def _standardise_columns(x: Any, epsilon: float, y: Any) -> tuple[Any, Any]:
    """Writes the scores into `y`; mean and variance."""
    rows, width = x.shape
    mean = _sums_of_columns(lambda piece: add_reduce(x[piece], 0), rows, width, x.dtype)[0] / rows

    def squares(piece: slice) -> Any:
        apart = np.subtract(x[piece], mean, out=y[piece])
        return add_reduce(apart * apart, 0)

    variance = _sums_of_columns(squares, rows, width, x.dtype)[0] / rows
    scale = 1.0 / np.sqrt(variance + epsilon)
    for_each(lambda piece: np.multiply(y[piece], scale, out=y[piece]), _pieces(rows, width), x.size)
    return mean, variance


def _standardise_rows(x: Any, epsilon: float, y: Any) -> tuple[Any, Any]:
    """Writes the scores into `y`; mean and variance."""
    moments = np.empty((2, len(x)), x.dtype)

    def compute(piece: slice) -> None:
        mean, variance = moments[0, piece], moments[1, piece]
        np.divide(add_reduce(x[piece], 1), x.shape[1], out=mean)
        apart = np.subtract(x[piece], mean[:, None], out=y[piece])
        np.divide(add_reduce(apart * apart, 1), x.shape[1], out=variance)
        apart *= (1.0 / np.sqrt(variance + epsilon))[:, None]

    for_each(compute, _pieces(*x.shape), x.size)
    return moments[0], moments[1]


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
    flattened = _flat(g, axes) if g.size > PIECE and g.dtype not in SHORT else None
    if flattened is None:
        return _backward_kernel(xp, g, y, variance, axes, epsilon)
    flat, columns = flattened
    scores, out = y.reshape(flat.shape), np.empty_like(flat)
    scale = (1.0 / np.sqrt(variance + epsilon)).reshape(-1)
    n, width = flat.shape
    if columns:

        def both(piece: slice) -> tuple[Any, Any]:
            return add_reduce(flat[piece], 0), add_reduce(flat[piece] * scores[piece], 0)

        means = _sums_of_columns(both, n, width, flat.dtype, 2) / n

    def compute(piece: slice) -> None:
        part, score, out_part = flat[piece], scores[piece], out[piece]
        if columns:
            mean, common, factor = means[0], means[1], scale
        else:
            mean, common = (add_reduce(z, 1, None, None, True) / width for z in (part, part * score))
            factor = scale[piece, None]
        np.multiply(score, common, out=out_part)
        out_part += mean
        np.subtract(part, out_part, out=out_part)
        out_part *= factor

    for_each(compute, _pieces(n, width), flat.size)
    return out.reshape(g.shape)


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

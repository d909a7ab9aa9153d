"""Normalisations. Tensors of 16 bits are computed in float32, and rounded once at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core import shapes
from limelight.core.dtypes import DType
from limelight.core.tensor import Tensor, TensorLike
from limelight.errors import ArgumentError, ShapeError
from limelight.nn.functional._operands import floating, wide, widened
from limelight.ops.elementwise.powers import rsqrt
from limelight.ops.nn import batch_norm as ops
from limelight.ops.nn.standardise import standardise
from limelight.ops.reduce.statistics import var

__all__ = ["batch_norm", "batch_norm_training", "group_norm", "layer_norm", "moments", "rms_norm"]


def moments(x: TensorLike, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The mean and the variance of `x` over `axis` (an axis, several, or None for all); floating.

    >>> import limelight as ll
    >>> mean, variance = ll.nn.moments(ll.constant([[1.0, 3.0], [2.0, 2.0]]), axis=1)
    >>> mean.tolist(), variance.tolist()
    ([2.0, 2.0], [1.0, 0.0])
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("moments", "keepdims", keepdims)
    x = floating("moments", x)
    return x.mean(axis, keepdims), var(x, axis, keepdims)


def batch_norm(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """Batch normalisation with given moments: (x - mean) / sqrt(variance + epsilon) * scale + offset.

    While training, `mean` and `variance` are the `moments` of the batch over all axes but the last; afterwards, their
    running averages (Ioffe and Szegedy 2015).

    Args:
        x: (..., channels), floating.
        mean: broadcasts to `x`, as all that follow; usually (channels,).
        variance: the variance.
        scale: what the result is multiplied by; by default nothing.
        offset: what is added to the result; by default nothing.
        epsilon: added to the variance; 1e-5.

    Returns:
        A tensor of the shape of `x`.

    Raises:
        ShapeError: a size does not broadcast to that of `x`.
        DTypeError: an operand is not floating.

    >>> import limelight as ll
    >>> x = ll.constant([[1.0], [3.0]])
    >>> mean, variance = ll.nn.moments(x, axis=0)
    >>> ll.nn.batch_norm(x, mean, variance, epsilon=0.0).tolist()
    [[-1.0], [1.0]]
    """
    x = floating("batch_norm", x)
    z = wide(x)
    m, v, s, o = [widened("batch_norm", moment, z.dtype) for moment in (mean, variance, scale, offset)]
    assert m is not None
    assert v is not None
    for part in (m, v, s, o):
        if part is not None:
            _check_broadcasts("batch_norm", x, part)
    factor = rsqrt(v + epsilon) if s is None else rsqrt(v + epsilon) * s
    z = (z - m) * factor
    return (z if o is None else z + o).astype(x.dtype)


def batch_norm_training(
    x: TensorLike, scale: TensorLike | None = None, offset: TensorLike | None = None, epsilon: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm` with the moments of the batch itself, in fewer passes over it; floating.

    Args:
        x: (..., channels), over all axes of which but the last the moments are taken.
        scale: (channels,), or None.
        offset: (channels,), or None.
        epsilon: added to the variance.

    Returns:
        What is normalised, and the mean and the variance, of shape (channels,) and in float32 for shorter floats.

    >>> import limelight as ll
    >>> y, mean, variance = ll.nn.batch_norm_training(ll.constant([[1.0], [3.0]]), epsilon=0.0)
    >>> y.tolist(), mean.tolist(), variance.tolist()
    ([[-1.0], [1.0]], [2.0], [1.0])
    """
    x = floating("batch_norm_training", x)
    z, axes = wide(x), tuple(range(x.ndim - 1))
    factor, shift = _factor_and_shift("batch_norm_training", x, z.dtype, scale, offset)
    if factor is not None and shift is not None and axes and factor.shape == shift.shape == x.shape[-1:] != (None,):
        y, mean, variance = ops.batch_norm_training(z, factor, shift, epsilon)
        return y.astype(x.dtype), mean, variance
    z, mean, variance = standardise(z, axes, epsilon)
    return _scaled(x, z, factor, shift), mean.squeeze(axes), variance.squeeze(axes)


def layer_norm(
    x: TensorLike,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    axis: int | Sequence[int] = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """Layer normalisation (Ba et al. 2016): `x` with mean 0 and variance 1 along `axis`, times `scale`, plus `offset`.

    Args:
        x: any shape but that of a scalar, floating.
        scale: broadcasts to `x`; by default nothing.
        offset: broadcasts to `x`; by default nothing.
        axis: one axis or several; the last by default.
        epsilon: added to the variance; 1e-5.

    Returns:
        A tensor of the shape of `x`.

    Raises:
        ArgumentError: `scale` is whole numbers, such as the shape that is normalised.
        ShapeError: `scale` or `offset` does not broadcast to `x`.
        DTypeError: an operand is not floating.

    >>> import limelight as ll
    >>> ll.nn.layer_norm(ll.constant([1.0, 3.0]), epsilon=0.0).tolist()
    [-1.0, 1.0]
    """
    x = floating("layer_norm", x)
    z = _standard_scores(wide(x), shapes.axes("layer_norm", x.ndim, axis), epsilon)
    return _scaled(x, z, *_factor_and_shift("layer_norm", x, z.dtype, scale, offset))


def rms_norm(
    x: TensorLike, scale: TensorLike | None = None, axis: int | Sequence[int] = -1, epsilon: float = 1e-6
) -> Tensor:
    """RMS normalisation (Zhang and Sennrich 2019): `x` over the root of the mean of its squares along `axis`.

    Args:
        x: any shape but that of a scalar, floating.
        scale: what the result is multiplied by; broadcasts to `x`; by default nothing.
        axis: one axis or several; the last by default.
        epsilon: added to the mean of the squares; 1e-6.

    Returns:
        A tensor of the shape of `x`.

    Raises:
        ShapeError: `scale` does not broadcast to `x`.
        DTypeError: an operand is not floating.

    >>> import limelight as ll
    >>> ll.nn.rms_norm(ll.constant([3.0, 4.0]), epsilon=0.0).tolist()
    [0.8485281467437744, 1.1313709020614624]
    """
    x = floating("rms_norm", x)
    z = wide(x)
    z = z * rsqrt(z.square().mean(shapes.axes("rms_norm", x.ndim, axis), True) + epsilon)
    return _scaled(x, z, *_factor_and_shift("rms_norm", x, z.dtype, scale, None))


def group_norm(
    x: TensorLike,
    groups: int,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """Channels in `groups`, each with mean 0 and variance 1 over its channels and the space (Wu and He 2018); floating.

    Args:
        x: (batch, *space, channels).
        groups: how many; a divisor of the channels. As many as channels make this instance normalisation.
        scale: (channels,), or None.
        offset: (channels,), or None.
        epsilon: added to the variance.

    Raises ShapeError when the groups do not divide the channels, ArgumentError when there are not one or more of them.

    >>> import limelight as ll
    >>> ll.nn.group_norm(ll.constant([[1.0, 3.0, 0.0, 4.0]]), 2, epsilon=0.0).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    x = floating("group_norm", x)
    if not hasattr(groups, "__index__") or groups < 1:
        raise ArgumentError(f"group_norm: groups must be a whole number of at least 1, got {groups!r}")
    channels = x.shape[-1] if x.ndim > 1 else None
    if channels is None or channels % groups:
        raise ShapeError(
            f"group_norm: x must be (batch, *space, channels), with channels known and a multiple of the {groups} "
            f"groups; got {x.spec}"
        )
    sizes = _shape_to_restore(x)
    if isinstance(sizes, tuple):
        apart: Any = (sizes[0], int(np.prod(sizes[1:-1])), groups, channels // groups)
    else:
        apart = sizes[[0, 0, 0, 0]] * np.array([1, 0, 0, 0]) + sizes[1:-1].prod() * np.array([0, 1, 0, 0])
        apart = apart + np.array([0, 0, groups, channels // groups])  # not -1: there may be no examples
    z = _standard_scores(wide(x).reshape(apart), (1, 3), epsilon).reshape(sizes)
    return _scaled(x, z, *_factor_and_shift("group_norm", x, z.dtype, scale, offset))


def _shape_to_restore(x: Tensor) -> Any:
    """The shape to come back to. Where the batch alone is unknown it is -1, since a vector would forget the others."""
    rest = x.shape[1:]
    return (-1, *rest) if x.shape[0] is None and None not in rest and 0 not in rest else x.sizes()


def _standard_scores(x: Tensor, axes: tuple[int, ...], epsilon: float) -> Tensor:
    return standardise(x, axes, epsilon)[0]


def _scaled(x: Tensor, z: Tensor, factor: Tensor | None, shift: Tensor | None) -> Tensor:
    """The normalised `z`, scaled and shifted, in the dtype of `x`."""
    if factor is not None:
        z = z * factor
    if shift is not None:
        z = z + shift
    return z.astype(x.dtype)


def _factor_and_shift(
    name: str, x: Tensor, dtype: DType, scale: TensorLike | None, offset: TensorLike | None
) -> tuple[Tensor | None, Tensor | None]:
    """Scale and offset in the dtype that is computed in.

    Raises ArgumentError for whole numbers in the place of a scale: elsewhere a shape stands there.
    """
    if isinstance(scale, int) or (isinstance(scale, (tuple, list)) and all(isinstance(n, int) for n in scale)):
        raise ArgumentError(
            f"{name}: the second argument is the scale, a floating tensor or None, got {scale!r}; if that is the shape "
            "that is normalised, leave it out: the last axis is, or those that axis= says"
        )
    parts = widened(name, scale, dtype), widened(name, offset, dtype)
    for part in parts:
        if part is not None:
            _check_broadcasts(name, x, part)
    return parts


def _check_broadcasts(name: str, x: Tensor, part: Tensor) -> None:
    """Raises ShapeError unless `part` broadcasts to `x`."""
    common = shapes.broadcast(name, x.shape, part.shape)
    if len(common) != x.ndim or any(None not in (m, n) and m != n for m, n in zip(common, x.shape, strict=True)):
        raise ShapeError(f"{name}: {part.spec} does not broadcast to {x.spec}")

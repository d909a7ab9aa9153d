"""Pictures of another size: `resize`, `pixel_shuffle`. The axes of space are all but the first and the last."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, ShapeError
from limelight.nn.functional._operands import choice, floating, wide
from limelight.ops.index.take import take

__all__ = ["pixel_shuffle", "resize"]


def resize(x: TensorLike, size: int | Sequence[int], method: str = "nearest") -> Tensor:
    """Pictures, lines or volumes of another size; the centres of the outermost elements stay where they are in scale.

    An element of the result lies at `(i + 0.5) * old / new - 0.5` of the input along each axis of space: the half-pixel
    centres of PyTorch's `interpolate` with `align_corners=False`, TensorFlow's and JAX's `resize` without antialiasing.

    Args:
        x: (batch, *space, channels); for "linear" floating, else any dtype. The sizes of space must be known.
        size: the new sizes, one for each axis of space; a number is for all of them.
        method: "nearest", the element in whose place the new one lies, or "linear", between the two next to it along
            each axis (bilinear for pictures).

    Returns:
        (batch, *size, channels), of the dtype of `x`; 16 bits are computed in float32 and rounded once.

    Raises:
        ShapeError: `x` has fewer than three axes, or an unknown size of space, or one of 0 that is to be another.
        ArgumentError: a size is no positive int, there are more or fewer than axes of space, or the method is unknown.
        DTypeError: `x` is not floating, for "linear".

    >>> import limelight as ll
    >>> line = ll.constant([[[0.0], [1.0]]])
    >>> ll.nn.resize(line, 4)[0, :, 0].tolist()
    [0.0, 0.0, 1.0, 1.0]
    >>> ll.nn.resize(line, 4, "linear")[0, :, 0].tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    choice("resize", "method", method, ("nearest", "linear"))
    x = as_tensor(x) if method == "nearest" else floating("resize", x)
    space = _space("resize", x)
    result = x if method == "nearest" else wide(x)
    for axis, (old, new) in enumerate(zip(space, _sizes("resize", "size", size, len(space)), strict=True), 1):
        if not old:
            raise ShapeError(f"resize: {x.spec} has no elements along axis {axis} that others could be made of")
        if old != new:
            result = _nearest(result, axis, old, new) if method == "nearest" else _linear(result, axis, old, new)
    return result.astype(x.dtype)


def _nearest(x: Tensor, axis: int, old: int, new: int) -> Tensor:
    places = ((np.arange(new) + 0.5) * old / new).astype("int32")
    return take(x, np.minimum(places, old - 1), axis=axis)


def _linear(x: Tensor, axis: int, old: int, new: int) -> Tensor:
    places = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0.0, old - 1.0)
    below = np.minimum(places.astype("int32"), max(old - 2, 0))
    shares = as_tensor((places - below).reshape(-1, *[1] * (x.ndim - axis - 1))).astype(x.dtype)
    low, high = take(x, below, axis=axis), take(x, np.minimum(below + 1, old - 1), axis=axis)
    return low + (high - low) * shares


def pixel_shuffle(x: TensorLike, factor: int | Sequence[int]) -> Tensor:
    """Channels moved into space: each element becomes a block of `factor` along each axis (Shi et al. 2016).

    The channels of an element are ordered as (channel, *place in the block), as in PyTorch.

    Args:
        x: (batch, *space, channels), any dtype; sizes but the first must be known.
        factor: the size of a block, one for each axis of space; a number is for all of them.

    Returns:
        (batch, *(space * factor), channels / elements of a block).

    Raises:
        ShapeError: `x` has fewer than three axes, an unknown size, or channels that are no multiple of a block.
        ArgumentError: a factor is no positive int, or there are more or fewer than axes of space.

    >>> import limelight as ll
    >>> ll.nn.pixel_shuffle(ll.arange(4).reshape((1, 1, 1, 4)), 2)[0, :, :, 0].tolist()
    [[0, 1], [2, 3]]
    """
    x = as_tensor(x)
    space, channels = _space("pixel_shuffle", x), x.shape[-1]
    factors = _sizes("pixel_shuffle", "factor", factor, len(space))
    block = prod(factors)
    if channels is None or channels % block:
        raise ShapeError(f"pixel_shuffle: {x.spec} must have channels that are a multiple of {block}, a block's size")
    n, batch = len(space), -1 if x.shape[0] is None else x.shape[0]
    apart = x.reshape((batch, *space, channels // block, *factors))
    # (batch, *space, channels, *factors) to (batch, space 1, factor 1, space 2, factor 2, ..., channels)
    order = (0, *[axis for i in range(n) for axis in (1 + i, 2 + n + i)], 1 + n)
    sizes = [old * new for old, new in zip(space, factors, strict=True)]
    return apart.transpose(order).reshape((batch, *sizes, channels // block))


def _space(name: str, x: Tensor) -> list[int]:
    space = [n for n in x.shape[1:-1] if n is not None]
    if x.ndim < 3 or len(space) < x.ndim - 2:
        raise ShapeError(f"{name} needs (batch, *space, channels) with all sizes of space known, got {x.spec}")
    return space


def _sizes(name: str, what: str, given: int | Sequence[int], count: int) -> tuple[int, ...]:
    sizes: tuple[Any, ...] = tuple(given) if isinstance(given, Sequence) else (given,) * count
    if len(sizes) != count or not all(hasattr(n, "__index__") and n.__index__() > 0 for n in sizes):
        raise ArgumentError(f"{name}: {what} must be a positive int, or {count} of them; got {given!r}")
    return tuple([n.__index__() for n in sizes])

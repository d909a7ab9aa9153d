"""Convolutions on any array library, without writing into arrays: one tap, or place in the window, after the other.

These run on backends that have no kernels of their own here; NumPy's are in `_numpy_convolution` and `pooling`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from limelight.ops.nn._windows import Ints, Windows, inside_margins, taps

Array = Any


def with_margins(xp: Any, x: Array, at: Windows, value: float) -> Array:
    """`x` with its margins.

    Args:
        xp: the array library.
        x: (batch, *space, channels).
        at: where the windows lie.
        value: what fills the margins.

    Returns:
        (batch, *space with margins, channels).
    """
    if at.padded == at.space:
        return x
    return xp.pad(x, ((0, 0), *at.pads, (0, 0)), constant_values=value)


def spread(xp: Any, part: Array, place: Ints, at: Windows) -> Array:
    """The transpose of picking what all windows have at one place: puts it back into zeros.

    Args:
        xp: the array library.
        part: (batch, *windows, channels).
        place: the index of the place in the window.
        at: where the windows lie.

    Returns:
        (batch, *space with margins, channels).
    """
    for axis, (i, d, s, n, size) in enumerate(zip(place, at.dilation, at.stride, at.out, at.padded, strict=True), 1):
        if not n:
            return xp.zeros((part.shape[0], *at.padded, part.shape[-1]), dtype=part.dtype)
        apart = xp.expand_dims(part, axis + 1)
        apart = xp.pad(apart, _only(apart.ndim, axis + 1, (0, s - 1)))
        apart = apart.reshape((*part.shape[:axis], n * s, *part.shape[axis + 1 :]))
        apart = apart[(slice(None),) * axis + (slice(0, (n - 1) * s + 1),)]
        part = xp.pad(apart, _only(part.ndim, axis, (i * d, size - i * d - apart.shape[axis])))
    return part


def _only(rank: int, axis: int, widths: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple([widths if i == axis else (0, 0) for i in range(rank)])


def convolution(xp: Any, x: Array, w: Array, at: Windows) -> Array:
    x = with_margins(xp, x, at, 0)
    return sum([xp.matmul(x[where], w[place]) for place, where in taps(at)])


def input_gradient(xp: Any, g: Array, w: Array, at: Windows) -> Array:
    padded: Any = sum([spread(xp, xp.matmul(g, w[place].T), place, at) for place, _ in taps(at)])
    return padded[inside_margins(at)]


def filter_gradient(xp: Any, x: Array, g: Array, at: Windows) -> Array:
    x = with_margins(xp, x, at, 0)
    over = tuple(range(g.ndim - 1))
    per_tap = [xp.tensordot(x[where], g, axes=(over, over)) for _, where in taps(at)]
    return xp.stack(per_tap).reshape((*at.window, x.shape[-1], g.shape[-1]))


def by_group(
    xp: Any, run: Callable[..., Array], parts: tuple[tuple[Array, int], ...], groups: int, at: Windows
) -> Array:
    """Runs a convolution, or one of its gradients, on each group of channels, and joins the results.

    Args:
        xp: the array library.
        run: `run(xp, *operands, at)`.
        parts: each operand with the axis along which its groups lie.
        groups: how many.
        at: where the windows lie.

    Returns:
        The results side by side along the last axis.
    """
    if groups == 1:
        return run(xp, *[array for array, _ in parts], at)
    split = [xp.split(array, groups, axis=axis) for array, axis in parts]
    return xp.concatenate([run(xp, *one, at) for one in zip(*split, strict=True)], axis=-1)


def empty(*shapes: Ints) -> bool:
    """Whether there is nothing to compute, since an array has no elements."""
    return any(prod(shape) == 0 for shape in shapes)

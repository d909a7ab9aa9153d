"""Convolution and its two gradients by the tiles of limelight-native: float32, channels side by side.

The package knows windows over three spatial axes, and gives zeros for what lies outside of the input. The rest is
views: missing axes have size 1, the gradient of the input is a convolution for each remainder of the strides, and
windows of one place go along one axis. Numbers do not depend on how many threads there are.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from math import gcd, prod
from typing import Any, Final, TypeAlias

import numpy as np

from limelight.core import native_package
from limelight.core.cores import threads
from limelight.ops.nn._windows import Ints, Slices, Windows

Array: TypeAlias = Any
Run: TypeAlias = Callable[[Array, Array], Array]
AXES: Final = 3


def is_usable() -> bool:
    """Whether the package is there, and was built by a compiler that knows vectors."""
    native = native_package.native_if_usable()
    return native is not None and native.convolves


def _three(numbers: Ints, fill: int) -> Ints:
    return (fill,) * (AXES - len(numbers)) + numbers


def _five(x: Array, lead: int) -> Array:
    """`x` with three spatial axes, which begin at `lead`."""
    return x.reshape(x.shape[:lead] + (1,) * (AXES + 2 - x.ndim) + x.shape[lead:])


def _side_by_side(x: Array) -> Array:
    """`x` as the package reads it: aligned, its last axis contiguous."""
    return x if x.strides[-1] == x.itemsize and x.flags.aligned else np.require(x, requirements=("C", "A"))


def _aligned(w: Array) -> Array:
    return w if w.flags.aligned else np.require(w, requirements=("C", "A"))


def _is_pointwise(at: Windows) -> bool:
    return prod(at.window) == 1 and at.padded == at.space


def _every_stride(at: Windows) -> tuple[slice, ...]:
    """What windows of one place see of (batch, *space, channels)."""
    return (slice(None), *[slice(0, (n - 1) * s + 1, s) for n, s in zip(at.out, at.stride, strict=True)])


def _in_a_line(*arrays: Array) -> list[Array]:
    """Arrays that agree in all axes but the last, along one spatial axis where their memory allows it."""
    if all(x.flags.c_contiguous for x in arrays):
        return [x.reshape(1, 1, 1, -1, x.shape[-1]) for x in arrays]
    return [_five(x, 1) for x in arrays]


def _settings(at: Windows) -> tuple[Ints, Ints, Ints]:
    return _three(at.stride, 1), _three(at.dilation, 1), _three(tuple([a for a, _ in at.pads]), 0)


_ONE_PLACE: Final = ((1,) * AXES, (1,) * AXES, (0,) * AXES)

# Each direction is prepared once for shapes, as a kernel finds the caches cold: between two convolutions of ResNet-50 a
# line of Python takes five to ten times as long as alone.


@functools.lru_cache(maxsize=1024)
def prepared_forward(shape: Ints, filters: int, at: Windows) -> Run:
    """The convolution of `x` (batch, *space, channels), of that shape, with `w` (*window, channels, filters)."""
    out_shape = (shape[0], *at.out, filters)
    every, settings, dtype = _every_stride(at), _settings(at), np.float32

    def pointwise(x: Array, w: Array) -> Array:
        x, out = _side_by_side(x), np.empty(out_shape, dtype)
        seen, result = _in_a_line(x[every], out)
        native_package.native().convolve(seen, _five(_aligned(w), 0), result, *_ONE_PLACE, threads())
        return out

    def run(x: Array, w: Array) -> Array:
        out = np.empty(out_shape, dtype)
        native_package.native().convolve(
            _five(_side_by_side(x), 1), _five(_aligned(w), 0), _five(out, 1), *settings, threads()
        )
        return out

    return pointwise if _is_pointwise(at) else run


@functools.lru_cache(maxsize=1024)
def prepared_filter_gradient(channels: int, filters: int, at: Windows) -> Run:
    """Its transpose with respect to `w`: from `x` and (batch, *windows, filters) to (*window, channels, filters)."""
    out_shape = (*at.window, channels, filters)
    every, settings, dtype = _every_stride(at), _settings(at), np.float32

    def pointwise(x: Array, g: Array) -> Array:
        x, g, out = _side_by_side(x), _side_by_side(g), np.empty(out_shape, dtype)
        seen, gradient = _in_a_line(x[every], g)
        native_package.native().convolve_filters(seen, _five(out, 0), gradient, *_ONE_PLACE, threads())
        return out

    def run(x: Array, g: Array) -> Array:
        x, g, out = _side_by_side(x), _side_by_side(g), np.empty(out_shape, dtype)
        native_package.native().convolve_filters(_five(x, 1), _five(out, 0), _five(g, 1), *settings, threads())
        return out

    return pointwise if _is_pointwise(at) else run


@functools.lru_cache(maxsize=1024)
def prepared_input_gradient(shape: Ints, at: Windows) -> Run:
    """Its transpose with respect to `x`, of that shape, from (batch, *windows, filters)."""
    dtype = np.float32

    def pointwise(g: Array, w: Array) -> Array:
        g, out = _side_by_side(g), np.empty(shape, dtype)
        gradient, whole = _in_a_line(g, out)
        native_package.native().convolve(
            gradient, _five(_aligned(w), 0).swapaxes(-1, -2), whole, *_ONE_PLACE, threads()
        )
        return out

    parts = _input_parts(shape, at)

    def run(g: Array, w: Array) -> Array:
        g, out = _side_by_side(g), np.empty(shape, dtype)
        native, whole, filters, gradient = native_package.native(), _five(out, 1), _five(_aligned(w), 0), _five(g, 1)
        for here, seen_by, dilation, margins in parts:
            if seen_by is None:
                whole[here] = 0
            else:
                some = filters[seen_by].swapaxes(-1, -2)
                native.convolve(gradient, some, whole[here], _ONE_PLACE[0], dilation, margins, threads())
        return out

    return pointwise if _is_pointwise(at) and max(at.stride) == 1 else run


def _input_parts(shape: Ints, at: Windows) -> list[tuple[Slices, Slices | None, Ints, Ints]]:
    """Places of the input, those of the filters that see them, if any, and the dilations and margins of that."""
    strides, dilations, pads = _settings(at)
    places = zip(_three(at.window, 1), strides, dilations, pads, _three(shape[1:-1], 1), strict=True)
    found = []
    for parts in itertools.product(*[_remainders(*axis) for axis in places]):
        here, seen_by, dilation, margins = (tuple(of_axes) for of_axes in zip(*parts, strict=True))
        nobody = any(part.start == part.stop == 0 for part in seen_by)
        found.append(((slice(None), *here), None if nobody else seen_by, dilation, margins))
    return found


def _remainders(
    window: int, stride: int, dilation: int, pad: int, size: int
) -> tuple[tuple[slice, slice, int, int], ...]:
    """The gradient of the input along one axis, as convolutions of the output's gradient with a stride of 1.

    Place k of window o sees o * stride + k * dilation - pad. So the places of the input that leave one remainder by
    the stride are seen by every so many places of the windows alone: by a filter of these, back to front.

    Returns:
        For each remainder: its places of the input, those of the filters, the dilation, and the margin before.
    """
    found = []
    apart = stride // gcd(stride, dilation)  # from one place of the window to the next with that remainder
    gap = apart * dilation // stride
    for r in range(min(stride, size)):
        first = next((k for k in range(min(apart, window)) if (r + pad - k * dilation) % stride == 0), None)
        if first is None:
            found.append((slice(r, None, stride), slice(0, 0), 1, 0))
            continue
        count = len(range(first, window, apart))
        last = first + (count - 1) * apart
        back = slice(last, first - 1 if first else None, -apart)
        found.append((slice(r, None, stride), back, gap, (count - 1) * gap - (r + pad - first * dilation) // stride))
    return tuple(found)

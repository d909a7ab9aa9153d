"""Convolutions on XLA's own accelerators: its convolution, and the transposes of that.

Not on the CPU, where products for each place in the window are quicker than XLA's gradients (docs/performance.md). A
GPU has cuDNN's kernels behind it. Sums have 32 bits also for operands of 16. Products of float32 are as exact as
JAX's setting `jax_default_matmul_precision` says.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from limelight.ops.nn._windows import Windows

Array = Any
Route = Callable[[Array, Array, Windows, int], Array]


def _forward(x: Array, w: Array, at: Windows, groups: int) -> Array:
    space = "DHW"[-len(at.space) :]
    return jax.lax.conv_general_dilated(
        x,
        w,
        at.stride,
        at.pads,
        rhs_dilation=at.dilation,
        dimension_numbers=(f"N{space}C", f"{space}IO", f"N{space}C"),
        feature_group_count=groups,
    )


def _input_gradient(y: Array, w: Array, at: Windows, groups: int) -> Array:
    x = jax.ShapeDtypeStruct((y.shape[0], *at.space, w.shape[-2] * groups), y.dtype)
    return jax.linear_transpose(lambda x: _forward(x, w, at, groups), x)(y)[0]


def _filter_gradient(x: Array, y: Array, at: Windows, groups: int) -> Array:
    w = jax.ShapeDtypeStruct((*at.window, x.shape[-1] // groups, y.shape[-1]), x.dtype)
    return jax.linear_transpose(lambda w: _forward(x, w, at, groups), w)(y)[0]


_compiled = functools.partial(jax.jit, static_argnums=(2, 3))  # once for each shape, also where ops run one by one
forward: Route = _compiled(_forward)
input_gradient: Route = _compiled(_input_gradient)
filter_gradient: Route = _compiled(_filter_gradient)


def run(route: Route, on_cpu: Callable[[Array, Array], Array], at: Windows, groups: int, *operands: Array) -> Array:
    """A route of this module; on the CPU, or in a program that is compiled for it, `on_cpu` of the operands instead.

    So, too, for strides over sizes that an export leaves open: XLA takes margins as numbers.
    """
    if any(s > 1 and not isinstance(n, int) for s, n in zip(at.stride, at.space, strict=True)):
        return on_cpu(*operands)

    def elsewhere(first: Array, second: Array) -> Array:
        return route(first, second, at, groups)

    if any(isinstance(x, jax.core.Tracer) for x in operands):
        return jax.lax.platform_dependent(*operands, cpu=on_cpu, default=elsewhere)
    places = {device.platform for x in operands if isinstance(x, jax.Array) for device in x.devices()}
    return (on_cpu if places <= {"cpu"} else elsewhere)(*operands)

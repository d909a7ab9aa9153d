"""Pools: the largest, or the mean, of what each window sees: `max_pool`, `avg_pool`, and both over the whole space.

Margins are no elements: never the largest, and not counted in a mean. Equally large elements share the gradient, as in
`max`; PyTorch and TensorFlow give it to the first, which depends on the order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dtypes, native_package, shapes
from limelight.core.cores import threads
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._given_shape import defop_with_shape
from limelight.ops._kernel_parts import wide
from limelight.ops._shape_rules import SHORT
from limelight.ops.nn import _taps
from limelight.ops.nn._windows import (
    Ints,
    PaddingLike,
    Windows,
    as_padding,
    inside_margins,
    one_axis_at_a_time,
    out_sizes,
    per_axis,
    real_taps,
    spatial_rank,
    taps,
    windows_over,
)

__all__ = ["avg_pool", "global_avg_pool", "global_max_pool", "max_pool"]

ATTRS: Final = "window stride padding"
_WORTH_A_CALL: Final = 1 << 12  # elements, for one of limelight-native
_BLOCK: Final = 1 << 17  # elements of an image, or of several


# --- what they share


def _pool_infer(name: str) -> Callable[..., TensorSpec]:
    def infer(x: TensorSpec, window: Ints, stride: Ints, padding: Any) -> TensorSpec:
        out = out_sizes(name, x, x.shape[1:-1], window, stride, padding, (1,) * len(window))
        return known((x.shape[0], *out, x.shape[-1]), x.dtype)

    return infer


@functools.lru_cache(maxsize=1024)
def _windows_of(name: str, shape: Any, dtype: Any, window: Ints, stride: Ints, padding: Any) -> Windows:
    return windows_over(name, known(shape, dtype), shape[1:-1], window, stride, padding, (1,) * len(window))


@functools.lru_cache(maxsize=256)
def _counts(at: Windows) -> Any:
    """How many elements each window sees, margins left out: (*windows, 1), float64."""
    counts: Any = np.ones(1)
    for n, k, s, (before, _), out in zip(at.space, at.window, at.stride, at.pads, at.out, strict=True):
        first = np.arange(out) * s - before
        counts = np.multiply.outer(counts, np.minimum(first + k, n) - np.maximum(first, 0))
    return counts.reshape(*at.out, 1)


# --- max_pool


def _lowest(dtype: Any) -> Any:
    """What loses against every element."""
    return -np.inf if dtypes.is_inexact(dtype) else np.iinfo(dtype).min


def _max_kernel(xp: Any, x: Any, *attrs: Any) -> Any:
    at = _windows_of("max_pool", x.shape, x.dtype, *attrs)
    padded = _taps.with_margins(xp, x, at, _lowest(x.dtype))
    return functools.reduce(xp.maximum, [padded[where] for _, where in taps(at)])


def _max_numpy(xp: Any, x: Any, *attrs: Any) -> Any:
    """Along one axis after the other: 3 + 3 comparisons instead of 9."""
    dtype, at = x.dtype, _windows_of("max_pool", x.shape, x.dtype, *attrs)
    x = wide(x)
    for one in one_axis_at_a_time(at):
        pooled = np.full((len(x), *one.out, x.shape[-1]), _lowest(x.dtype), x.dtype)
        for here, there in real_taps(one):
            np.maximum(pooled[here], x[there], out=pooled[here])
        x = pooled
    return x.astype(dtype, copy=False)


_max_pool: EntryPoint = entry_point(defop(
    "max_pool",
    inputs="x",
    attrs=ATTRS,
    infer=_pool_infer("max_pool"),
    kernel=_max_kernel,
    special={"numpy": _max_numpy},
    accepts="real",
    vjp={"x": lambda g, x, out, window, stride, padding: _max_gradient((g, x, out), window, stride, padding)},
    maths={"x": "x̄ = ȳ where x is the largest of its window, shared by equals"},
    batching="pooling",
))  # fmt: skip


_Marked = list[tuple[Any, Any, Any]]
"""For each place in the window: which windows it is in, which elements it is, and where these are the largest."""


def _marked(x: Any, y: Any, at: Windows) -> _Marked:
    return [(here, there, x[there] == y[here]) for here, there in real_taps(at)]


def _shares(g: Any, marked: _Marked, at: Windows) -> Any:
    """`g` over how many elements of each window are its largest."""
    few = math.prod(at.window) < 256  # counting in bytes takes a third of the time
    counts = np.zeros(g.shape, np.uint8 if few else g.dtype)
    for here, _, mark in marked:
        np.add(counts[here], mark.view(np.uint8), out=counts[here])
    return g / counts


def _max_gradient_numpy(xp: Any, g: Any, x: Any, y: Any, *attrs: Any) -> Any:
    """A few images at a time, so that what is added to stays in a cache."""
    dtype, at = x.dtype, _windows_of("max_pool", x.shape, x.dtype, *attrs)
    native = native_package.native_if_usable()
    if native is not None and dtype is dtypes.float32 and x.size > _WORTH_A_CALL:
        return _max_gradient_native(native, g, x, y, at)
    g, x, y = wide(g), wide(x), wide(y)
    out = np.zeros(x.shape, g.dtype)
    apart = all(k <= s for k, s in zip(at.window, at.stride, strict=True))
    step = max(1, _BLOCK // max(1, math.prod(x.shape[1:])))
    for i in range(0, len(x), step):
        part, marked = out[i : i + step], _marked(x[i : i + step], y[i : i + step], at)
        share = _shares(g[i : i + step], marked, at)
        for here, there, mark in marked:
            if apart:  # each element is in one window at most
                np.add(mark * share[here], 0.0, out=part[there])  # 0.0: no zero has a sign, as in a sum
            else:
                part[there] += mark * share[here]
    return out.astype(dtype, copy=False)


def _max_gradient_native(native: Any, g: Any, x: Any, y: Any, at: Windows) -> Any:
    """The same to the bit. limelight-native has three spatial axes."""
    more = (1,) * (3 - len(at.space))
    operands = [z.reshape(z.shape[0], *more, *z.shape[1:]) for z in (g, x, y)]
    before = (*(0 for _ in more), *(pads[0] for pads in at.pads))
    found = native.max_pool_gradient(*operands, (*more, *at.window), (*more, *at.stride), before, threads())
    return found.reshape(x.shape)


def _max_gradient_kernel(xp: Any, g: Any, x: Any, y: Any, *attrs: Any) -> Any:
    dtype, at = x.dtype, _windows_of("max_pool", x.shape, x.dtype, *attrs)
    marks = _marks(xp, x, y, at)
    share = wide(g) / sum(marks)
    spread = sum([_taps.spread(xp, m * share, place, at) for m, (place, _) in zip(marks, taps(at), strict=True)])
    return spread[inside_margins(at)].astype(dtype)


def _marks(xp: Any, x: Any, y: Any, at: Windows) -> list[Any]:
    """For each place in the window, 1 where it holds the largest, else 0; margins never do."""
    real = _taps.with_margins(xp, xp.ones(x.shape, dtype=bool), at, False)
    x = _taps.with_margins(xp, x, at, 0)
    dtype = dtypes.float32 if x.dtype in SHORT else x.dtype
    return [((x[where] == y) & real[where]).astype(dtype) for _, where in taps(at)]


_max_gradient: EntryPoint = entry_point(defop(
    "max_pool_gradient",
    inputs="g x y",
    attrs=ATTRS,
    infer=lambda g, x, y, *attrs: known(x.shape, x.dtype),
    kernel=_max_gradient_kernel,
    special={"numpy": _max_gradient_numpy},
    accepts="floating",
    vjp={
        "g": lambda g, x, y, window, stride, padding: _max_pick((g, x, y), window, stride, padding),
        "x": lambda: None,  # where it does not jump, it does not change with x and y
        "y": lambda: None,
    },
    linear="g",
    maths={"g": "ḡ = z̄ at the largest of each window, the mean of equals"},
    batching="pooling",
))  # fmt: skip


def _pick_numpy(xp: Any, h: Any, x: Any, y: Any, *attrs: Any) -> Any:
    dtype, at = x.dtype, _windows_of("max_pool", x.shape, x.dtype, *attrs)
    h, x, y = wide(h), wide(x), wide(y)
    out, marked = np.zeros(y.shape, h.dtype), _marked(x, y, at)
    for here, there, mark in marked:
        out[here] += mark * h[there]
    return _shares(out, marked, at).astype(dtype, copy=False)


def _pick_kernel(xp: Any, h: Any, x: Any, y: Any, *attrs: Any) -> Any:
    dtype, at = x.dtype, _windows_of("max_pool", x.shape, x.dtype, *attrs)
    marks, h = _marks(xp, x, y, at), _taps.with_margins(xp, wide(h), at, 0)
    picked = sum([m * h[where] for m, (_, where) in zip(marks, taps(at), strict=True)])
    return (picked / sum(marks)).astype(dtype)


_max_pick: EntryPoint = entry_point(defop(
    "max_pool_pick",
    inputs="h x y",
    attrs=ATTRS,
    infer=lambda h, x, y, *attrs: known(y.shape, x.dtype),
    kernel=_pick_kernel,
    special={"numpy": _pick_numpy},
    accepts="floating",
    vjp={
        "h": lambda g, x, y, window, stride, padding: _max_gradient((g, x, y), window, stride, padding),
        "x": lambda: None,
        "y": lambda: None,
    },
    linear="h",
    maths={"h": "h̄ = z̄ where x is the largest of its window, shared by equals"},
    batching="pooling",
))  # fmt: skip


def _settings(name: str, x: Tensor, window: Any, stride: Any, padding: Any) -> tuple[Ints, Ints, Any]:
    """The parameters as they stand in a graph. Raises ArgumentError, and ShapeError for an `x` of another form."""
    n = spatial_rank(name, x)
    window = per_axis(name, "window", window, n)
    stride = window if stride is None else per_axis(name, "stride", stride, n)
    padding = as_padding(name, padding, n)
    if padding != "same" and any(max(pads) >= k for pads, k in zip(padding, window, strict=True)):
        raise ArgumentError(
            f"{name}: padding {padding} must be less than the window {window}, or some would see nothing"
        )
    return window, stride, padding


def max_pool(
    x: TensorLike,
    /,
    window: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: PaddingLike = "valid",
) -> Tensor:
    """The largest element that each window sees of each channel; real.

    Args:
        x: (batch, *space, channels), with one, two or three spatial axes.
        window: its size; one number, or one for each spatial axis, as also for `stride`.
        stride: from one window to the next; as large as the window by default.
        padding: "valid", "same", or numbers as in `conv`, less than the window. Margins are no elements.

    Returns:
        (batch, *windows, channels). Elements that are equally large share the gradient, as in `ll.max`. NaN is larger
        than any number.

    Raises ShapeError for a window larger than the space, ArgumentError for other settings.

    >>> import limelight as ll
    >>> ll.nn.max_pool(ll.constant([[[1.0], [3.0], [2.0], [0.0]]]), 2)[0, :, 0].tolist()
    [3.0, 2.0]
    """
    x = as_tensor(x)
    return _max_pool(x, *_settings("max_pool", x, window, stride, padding))


# --- avg_pool and its transpose


def _avg_kernel(xp: Any, x: Any, *attrs: Any) -> Any:
    dtype, at = x.dtype, _windows_of("avg_pool", x.shape, x.dtype, *attrs)
    x = _taps.with_margins(xp, wide(x), at, 0)
    total = sum([x[where] for _, where in taps(at)])
    return (total / xp.asarray(_counts(at), dtype=x.dtype)).astype(dtype)


def _avg_numpy(xp: Any, x: Any, *attrs: Any) -> Any:
    dtype, at = x.dtype, _windows_of("avg_pool", x.shape, x.dtype, *attrs)
    x = wide(x)
    for one in one_axis_at_a_time(at):
        sums = np.zeros((len(x), *one.out, x.shape[-1]), x.dtype)
        for here, there in real_taps(one):
            sums[here] += x[there]
        x = sums
    return (x / _counts(at).astype(x.dtype)).astype(dtype, copy=False)


_avg_pool: EntryPoint = entry_point(defop(
    "avg_pool",
    inputs="x",
    attrs=ATTRS,
    infer=_pool_infer("avg_pool"),
    kernel=_avg_kernel,
    special={"numpy": _avg_numpy},
    accepts="floating",
    vjp={"x": lambda g, x_shape, window, stride, padding: _avg_gradient((g,), x_shape, window, stride, padding)},
    linear="x",
    maths={"x": "x̄ = ȳ / n, added to all that each window sees"},
    batching="pooling",
))  # fmt: skip


def _avg_gradient_infer(g: TensorSpec, window: Ints, stride: Ints, padding: Any, shape: Any) -> TensorSpec:
    pooled = _pool_infer("avg_pool")(known(shape, g.dtype), window, stride, padding)
    if pooled.rank != g.rank or any(None not in (m, n) and m != n for m, n in zip(pooled.shape, g.shape, strict=True)):
        raise ShapeError(f"avg_pool_gradient: the pool of {known(shape, g.dtype)} is {pooled}, not {g}")
    return known(shape, g.dtype)


def _avg_gradient_kernel(xp: Any, g: Any, window: Ints, stride: Ints, padding: Any, shape: Any) -> Any:
    dtype, at = g.dtype, _windows_of("avg_pool", shape, g.dtype, window, stride, padding)
    g = wide(g)
    g = g / xp.asarray(_counts(at), dtype=g.dtype)
    if xp is not np:
        return sum([_taps.spread(xp, g, place, at) for place, _ in taps(at)])[inside_margins(at)].astype(dtype)
    for one in reversed(one_axis_at_a_time(at)):
        spread = np.zeros((len(g), *one.space, g.shape[-1]), g.dtype)
        for here, there in real_taps(one):
            spread[there] += g[here]
        g = spread
    return g.astype(dtype, copy=False)


_avg_gradient: EntryPoint = defop_with_shape(
    "avg_pool_gradient",
    inputs="g",
    attrs=ATTRS,
    infer=_avg_gradient_infer,
    kernel=_avg_gradient_kernel,
    accepts="floating",
    vjp={"g": lambda g, window, stride, padding: _avg_pool(g, window, stride, padding)},
    linear="g",
    maths={"g": "ḡ = avg_pool(x̄)"},
    batching="pooling_gradient",
)


def avg_pool(
    x: TensorLike,
    /,
    window: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: PaddingLike = "valid",
) -> Tensor:
    """The mean of the elements that each window sees of each channel, margins not counted.

    Args:
        x: (batch, *space, channels), with one, two or three spatial axes; floating.
        window: its size; one number, or one for each spatial axis, as also for `stride`.
        stride: from one window to the next; as large as the window by default.
        padding: "valid" (the default), "same", or numbers as in `conv`, less than the window. Margins are no elements.

    Returns:
        (batch, *windows, channels), of the dtype of `x`.

    Raises:
        ShapeError: a window is larger than the space, or `x` has another rank.
        DTypeError: `x` is not floating.
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> ll.nn.avg_pool(ll.constant([[[1.0], [3.0], [2.0]]]), 2, padding="same")[0, :, 0].tolist()
    [2.0, 2.0]
    """
    x = as_tensor(x)
    return _avg_pool(x, *_settings("avg_pool", x, window, stride, padding))


# --- pools over the whole space


def global_max_pool(x: TensorLike, /, keepdims: bool = False) -> Tensor:
    """The largest element of each channel: (batch, *space, channels) to (batch, channels); real.

    With `keepdims` the spatial axes stay, of size 1. Raises ShapeError for an `x` of another form, or without elements.

    >>> import limelight as ll
    >>> ll.nn.global_max_pool(ll.constant([[[1.0], [3.0]]])).tolist()
    [[3.0]]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("global_max_pool", "keepdims", keepdims)
    x = as_tensor(x)
    return x.max(tuple(range(1, 1 + spatial_rank("global_max_pool", x))), keepdims)


def global_avg_pool(x: TensorLike, /, keepdims: bool = False) -> Tensor:
    """The mean of each channel: (batch, *space, channels) to (batch, channels); floating.

    With `keepdims` the spatial axes stay, of size 1. Raises ShapeError for an `x` of another form.

    >>> import limelight as ll
    >>> ll.nn.global_avg_pool(ll.constant([[[1.0], [3.0]]])).tolist()
    [[2.0]]
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("global_avg_pool", "keepdims", keepdims)
    x = as_tensor(x)
    return x.mean(tuple(range(1, 1 + spatial_rank("global_avg_pool", x))), keepdims)

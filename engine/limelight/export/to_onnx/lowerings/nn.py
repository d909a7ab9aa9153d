"""Networks: activations, losses, convolutions, pooling."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.export.to_onnx.arrays import (
    INT64,
    arange,
    cast,
    concat,
    cut,
    equal,
    full,
    gather_elements,
    is_nan,
    like,
    maximum,
    mean,
    pad,
    reduce,
    reshape,
    sizes,
    squeeze,
    total,
    transpose,
    unary,
    unsqueeze,
    where,
)
from limelight.export.to_onnx.builder import Var
from limelight.export.to_onnx.lowerings.elementwise import log1p
from limelight.export.to_onnx.registry import Refused, Site, lowers
from limelight.ops.nn import activations
from limelight.ops.nn._windows import Windows, taps, windows_over


@lowers("relu")
def _relu(site: Site, x: Var) -> Var:
    return unary("Relu", x) if x.floating or x.dtype.name in ("int8", "int32") else maximum(x, like(x, 0))


@lowers("relu_grad")
def _relu_grad(site: Site, g: Var, y: Var) -> Var:
    return g * cast(y > 0, g.dtype)


@lowers("softplus")
def _softplus(site: Site, x: Var) -> Var:
    return maximum(x, like(x, 0)) + log1p(unary("Exp", -unary("Abs", x)))


@lowers("gate")
def _gate(site: Site, x: Var, s: Var) -> Var:
    return maximum(x, like(x, -activations._FLAT)) * s


@lowers("sigmoid_cross_entropy")
def _sigmoid_cross_entropy(site: Site, x: Var, z: Var) -> Var:
    length, apart = unary("Abs", x), where(x > 0, like(z, 1) - z, z)
    return where(equal(apart, 0), like(x, 0), length * apart) + log1p(unary("Exp", -length))


@lowers("zero_times")
def _zero_times(site: Site, x: Var, y: Var) -> Var:
    return where(equal(x, 0) & ~is_nan(y), like(x, 0), x * y)


def log_softmax(x: Var, axis: int) -> Var:
    below = x - reduce("Max", x, axis, True)
    return below - unary("Log", total(unary("Exp", below), axis, True))


@lowers("softmax")
def _softmax(site: Site, x: Var, axis: int) -> Var:
    return unary_along("Softmax", x, axis)


def unary_along(name: str, x: Var, axis: int) -> Var:
    return x.builder.unary(name, x, axis=axis % x.ndim)


@lowers("log_softmax")
def _log_softmax(site: Site, x: Var, axis: int) -> Var:
    return log_softmax(x, axis)


@lowers("softmax_cross_entropy")
def _class_loss(site: Site, x: Var, labels: Var) -> Var:
    picked = gather_elements(log_softmax(x, -1), unsqueeze(cast(labels, INT64), (-1,)), -1)
    return -squeeze(picked, (-1,))


@lowers("softmax_residual")
def _residual(site: Site, x: Var, labels: Var) -> Var:
    classes = arange(site.builder, sizes(x)[-1])
    return unary_along("Softmax", x, -1) - cast(equal(unsqueeze(cast(labels, INT64), (-1,)), classes), x.dtype)


@lowers("standardise")
def _standardise(site: Site, x: Var, axes: Any, epsilon: float) -> list[Var]:
    centre = mean(x, axes, True)
    apart = x - centre
    variance = mean(apart * apart, axes, True)
    return [apart * (like(x, 1) / unary("Sqrt", variance + epsilon)), centre, variance]


@lowers("standardise_gradient")
def _standardise_gradient(site: Site, g: Var, y: Var, variance: Var, axes: Any, epsilon: float) -> Var:
    inner = g - (y * mean(g * y, axes, True) + mean(g, axes, True))
    return inner * (like(g, 1) / unary("Sqrt", variance + epsilon))


@lowers("batch_norm_training")
def _batch_norm(site: Site, x: Var, scale: Var, offset: Var, epsilon: float) -> list[Var]:
    axes = tuple(range(x.ndim - 1))
    y, centre, variance = _standardise(site, x, axes, epsilon)
    return [y * scale + offset, squeeze(centre, axes), squeeze(variance, axes)]


@lowers("batch_norm_gradient")
def _batch_norm_gradient(
    site: Site, g: Var, x: Var, centre: Var, variance: Var, scale: Var, epsilon: float
) -> list[Var]:
    axes = tuple(range(x.ndim - 1))
    root = like(x, 1) / unary("Sqrt", variance + epsilon)
    y = (x - centre) * root
    inner = g - (y * mean(g * y, axes, True) + mean(g, axes, True))
    return [inner * (scale * root), total(g * y, axes, False), total(g, axes, False)]


# --- windows


def _channels_first(x: Var) -> Var:
    return transpose(x, [0, x.ndim - 1, *range(1, x.ndim - 1)])


def _channels_last(x: Var) -> Var:
    return transpose(x, [0, *range(2, x.ndim), 1])


def _windows(site: Site, x: Any, window: Any, stride: Any, padding: Any, dilation: Any) -> Windows:
    space = x[1:-1]
    if None in space or None in window:
        raise Refused("the sizes of its spatial axes are not known; give them in the signature, only the batch as None")
    return windows_over(site.node.op.name, x, space, window, stride, padding, dilation)


@lowers("conv")
def _conv(site: Site, x: Var, w: Var, stride: Any, padding: Any, dilation: Any, groups: int) -> Var:
    if None in w.shape[:-2]:
        raise Refused("the sizes of its window are not known")
    if padding == "same" and None in x.shape[1:-1] and all(s == 1 for s in stride):
        reach = [(k - 1) * d for k, d in zip(w.shape[:-2], dilation, strict=True)]  # type: ignore[operator]
        pads = [(r // 2, r - r // 2) for r in reach]
    elif padding != "same":
        pads = list(padding)
    else:
        pads = list(_windows(site, x.shape, w.shape[:-2], stride, padding, dilation).pads)
    if 0 in x.shape or 0 in w.shape or 0 in site.out.shape:
        return full(
            site.builder, [n if n is not None else m for n, m in zip(site.out.shape, sizes(x), strict=True)], 0, x.dtype
        )
    filters = transpose(w, [w.ndim - 1, w.ndim - 2, *range(w.ndim - 2)])
    made = site.builder.make(
        "Conv", _channels_first(x), filters, uniform=2,
        shape=(x.shape[0], w.shape[-1], *site.out.shape[1:-1]),
        pads=[a for a, _ in pads] + [b for _, b in pads], strides=list(stride), dilations=list(dilation), group=groups,
        kernel_shape=list(w.shape[:-2]),
    )  # fmt: skip
    return _channels_last(made)


@lowers("conv_transpose", "conv_transpose_dynamic")
def _conv_transpose(site: Site, y: Var, w: Var, *rest: Any) -> Var:
    if site.node.op.name.endswith("_dynamic"):
        rest = rest[1:]
    stride, padding, dilation, groups = rest[:4]
    out = site.out.shape
    at = _windows(site, out, w.shape[:-2], stride, padding, dilation)
    if 0 in y.shape or 0 in w.shape or 0 in out:
        return full(site.builder, [n if n is not None else m for n, m in zip(out, sizes(y), strict=True)], 0, y.dtype)
    filters = transpose(w, [w.ndim - 1, w.ndim - 2, *range(w.ndim - 2)])
    reach = [(n - 1) * s + r for n, s, r in zip(at.out, at.stride, at.reach, strict=True)]
    whole = site.builder.make(
        "ConvTranspose", _channels_first(y), filters, uniform=2, shape=(y.shape[0], out[-1], *reach),
        strides=list(stride), dilations=list(dilation), group=groups, kernel_shape=list(w.shape[:-2]),
    )  # fmt: skip
    whole = _channels_last(whole)
    for axis, ((before, _), n, m) in enumerate(zip(at.pads, at.space, reach, strict=True), 1):
        short = max(0, before + n - m)
        if short:
            margins = [(0, 0)] * whole.ndim
            margins[axis] = (0, short)
            whole = pad(whole, margins)
        whole = cut(whole, axis, before, before + n)
    return whole


@lowers("conv_filter_gradient", "conv_filter_gradient_dynamic")
def _filter_gradient(site: Site, x: Var, y: Var, *rest: Any) -> Var:
    """A product of matrices for each place in the window: what is seen there, by what came out."""
    if site.node.op.name.endswith("_dynamic"):
        rest = rest[1:]
    stride, padding, dilation, groups = rest[:4]
    shape = site.out.shape
    if None in shape:
        raise Refused("the shape of the filters is not known")
    at = _windows(site, x.shape, shape[:-2], stride, padding, dilation)
    if 0 in x.shape or 0 in y.shape or 0 in shape:
        return full(site.builder, shape, 0, x.dtype)
    padded = pad(x, [(0, 0), *at.pads, (0, 0)])
    channels, filters = shape[-2], shape[-1] // groups
    out = reshape(y, (-1, groups, filters))
    rows = []
    for _, where_at in taps(at):
        seen = reshape(_seen(padded, where_at), (-1, groups, channels))
        product = site.builder.make(
            "MatMul",
            transpose(seen, (1, 2, 0)),
            transpose(out, (1, 0, 2)),
            uniform=2,
            shape=(groups, channels, filters),
        )
        rows.append(reshape(transpose(product, (1, 0, 2)), (1, channels, groups * filters)))
    return reshape(concat(rows, 0), shape)


def _seen(padded: Var, where_at: Any) -> Var:
    for axis, part in enumerate(where_at[1:], 1):
        padded = cut(padded, axis, part.start, part.stop, part.step or 1)
    return padded


# --- pooling


def _pool_windows(site: Site, shape: Any, window: Any, stride: Any, padding: Any) -> Windows:
    return _windows(site, shape, window, stride, padding, (1,) * len(window))


@lowers("max_pool")
def _max_pool(site: Site, x: Var, window: Any, stride: Any, padding: Any) -> Var:
    if x.dtype.name not in ("float32", "float64") or 0 in x.shape:
        at = _pool_windows(site, x.shape, window, stride, padding)
        padded = pad(x, [(0, 0), *at.pads, (0, 0)], _lowest(x.dtype))
        result: Any = None
        for _, where_at in taps(at):
            part = _seen(padded, where_at)
            result = part if result is None else maximum(result, part)
        return result  # type: ignore[no-any-return]
    if padding == "same" or any(max(p) >= k for p, k in zip(padding, window, strict=True)):
        at = _pool_windows(site, x.shape, window, stride, padding)
        x = pad(x, [(0, 0), *at.pads, (0, 0)], -math.inf)
        padding = [(0, 0)] * len(window)
    made = site.builder.make(
        "MaxPool", _channels_first(x), shape=(x.shape[0], x.shape[-1], *site.out.shape[1:-1]),
        kernel_shape=list(window), strides=list(stride), pads=[a for a, _ in padding] + [b for _, b in padding],
    )  # fmt: skip
    return _channels_last(made)


def _lowest(dtype: Any) -> Any:
    return -math.inf if dtypes.kind(dtype) == "floating" else np.iinfo(dtype).min


def counts(at: Windows) -> Any:
    """How many real elements each window sees, (1, *out, 1)."""
    padded = np.pad(np.ones(at.space), at.pads)[None, ..., None]
    return sum(padded[where_at] for _, where_at in taps(at))


@lowers("avg_pool")
def _avg_pool(site: Site, x: Var, window: Any, stride: Any, padding: Any) -> Var:
    at = _pool_windows(site, x.shape, window, stride, padding)
    padded = pad(x, [(0, 0), *at.pads, (0, 0)])
    if x.dtype == dtypes.float32 and 0 not in x.shape:
        made = site.builder.make(
            "AveragePool", _channels_first(padded), shape=(x.shape[0], x.shape[-1], *at.out),
            kernel_shape=list(window), strides=list(stride),
        )  # fmt: skip
        share = np.prod(window) / counts(at)
        result = _channels_last(made)
        return result if (share == 1).all() else result * site.builder.constant(share.astype(x.dtype))
    added: Any = None
    for _, where_at in taps(at):
        part = _seen(padded, where_at)
        added = part if added is None else added + part
    return added / site.builder.constant(counts(at).astype(x.dtype))  # type: ignore[no-any-return]


def _spread(part: Var, place: Any, at: Windows) -> Var:
    """One value for each window, at that place of it in the padded space, zeros between."""
    for axis, (i, s, n, m) in enumerate(zip(place, at.stride, at.padded, at.out, strict=True), 1):
        wide = unsqueeze(part, (axis + 1,))
        margins: list[Any] = [(0, 0)] * wide.ndim
        margins[axis + 1] = (0, s - 1)
        whole = sizes(part)
        part = reshape(pad(wide, margins), [*whole[:axis], m * s, *whole[axis + 1 :]])
        part = cut(part, axis, 0, (m - 1) * s + 1 if m else 0)
        ends: list[Any] = [(0, 0)] * part.ndim
        ends[axis] = (i, n - i - ((m - 1) * s + 1 if m else 0))
        part = pad(part, ends)
    return part


def _inside(x: Var, at: Windows) -> Var:
    for axis, (n, (before, _)) in enumerate(zip(at.space, at.pads, strict=True), 1):
        x = cut(x, axis, before, before + n)
    return x


@lowers("avg_pool_gradient", "avg_pool_gradient_dynamic")
def _avg_gradient(site: Site, g: Var, *rest: Any) -> Var:
    if site.node.op.name.endswith("_dynamic"):
        rest = rest[1:]
    window, stride, padding = rest[:3]
    at = _pool_windows(site, site.out.shape, window, stride, padding)
    share = g / site.builder.constant(counts(at).astype(g.dtype))
    added: Any = None
    for place, _ in taps(at):
        part = _spread(share, place, at)
        added = part if added is None else added + part
    return _inside(added, at)


def _marks(x: Var, y: Var, at: Windows) -> list[Var]:
    """For each place in the window, 1 where it holds the largest; margins never do."""
    b = x.builder
    real = np.pad(np.ones(at.space, bool), at.pads)[None, ..., None]
    padded = pad(x, [(0, 0), *at.pads, (0, 0)])
    return [
        cast(equal(_seen(padded, where_at), y) & b.constant(np.ascontiguousarray(real[where_at])), x.dtype)
        for _, where_at in taps(at)
    ]


def _sum(parts: Any) -> Any:
    return list(itertools.accumulate(parts, lambda a, b: a + b))[-1]


@lowers("max_pool_gradient")
def _max_gradient(site: Site, g: Var, x: Var, y: Var, window: Any, stride: Any, padding: Any) -> Var:
    at = _pool_windows(site, x.shape, window, stride, padding)
    marks = _marks(x, y, at)
    share = g / _sum(marks)
    return _inside(_sum(_spread(m * share, place, at) for m, (place, _) in zip(marks, taps(at), strict=True)), at)


@lowers("max_pool_pick")
def _max_pick(site: Site, h: Var, x: Var, y: Var, window: Any, stride: Any, padding: Any) -> Var:
    at = _pool_windows(site, x.shape, window, stride, padding)
    marks = _marks(x, y, at)
    padded = pad(h, [(0, 0), *at.pads, (0, 0)])
    picked = _sum(m * _seen(padded, where_at) for m, (_, where_at) in zip(marks, taps(at), strict=True))
    return picked / _sum(marks)  # type: ignore[no-any-return]

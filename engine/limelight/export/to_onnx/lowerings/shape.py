"""Ops that make tensors, and that change shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.export.to_onnx.arrays import (
    INT64,
    arange,
    cast,
    concat,
    cut,
    expand,
    flip,
    full,
    gather,
    like,
    move,
    pad,
    pick,
    reduce,
    reshape,
    shape_of,
    size,
    sizes,
    squeeze,
    stack,
    swap,
    total,
    transpose,
    unsqueeze,
    vector,
    where,
    zeros_like,
)
from limelight.export.to_onnx.builder import Var
from limelight.export.to_onnx.registry import Refused, Site, lowers

# --- making


@lowers("constant")
def _constant(site: Site, literal: Any) -> Var:
    return site.builder.constant(np.asarray(literal.array))


@lowers("full")
def _full(site: Site, value: Any, dtype: Any, shape: Any) -> Var:
    return full(site.builder, shape, value, dtype)


@lowers("full_dynamic")
def _full_dynamic(site: Site, shape: Var, value: Any, dtype: Any, rank: int) -> Var:
    return full(site.builder, shape, value, dtype)


@lowers("full_like")
def _full_like(site: Site, x: Var, value: Any, dtype: Any) -> Var:
    return full(site.builder, shape_of(x), value, dtype)


@lowers("arange", "linspace", "eye")
def _folded(site: Site, *params: Any) -> Var:
    """What has no inputs is computed now."""
    return site.builder.constant(site.node.op.numpy_kernel(*params))


@lowers("arange_dynamic")
def _arange_dynamic(site: Site, start: Var, stop: Var, step: Var) -> Var:
    dtype = site.out.dtype
    wide = dtypes.float64 if dtypes.kind(dtype) == "floating" else INT64
    first, last, apart = (cast(n, wide) for n in (start, stop, step))
    if wide == INT64:
        return site.builder.make("Range", first, last, apart, uniform=3, shape=(None,))
    n = cast(site.builder.unary("Ceil", (last - first) / apart), INT64)
    return cast(arange(site.builder, n), wide) * apart + first


@lowers("shape_of")
def _shape_of(site: Site, x: Var) -> Var:
    return shape_of(x)


# --- reshaping


@lowers("reshape")
def _reshape(site: Site, x: Var, shape: Any) -> Var:
    return reshape(x, shape)


@lowers("reshape_dynamic")
def _reshape_dynamic(site: Site, x: Var, shape: Var, rank: int) -> Var:
    if None not in site.out.shape:
        return reshape(x, site.out.shape)
    # allowzero=0 reads a -1; an axis of size 0 beside unknown ones is rare enough to be left out
    known = [-2 if n is None else n for n in site.out.shape]
    if known.count(-2) == 1 and 0 not in known:
        return reshape(x, [-1 if n == -2 else n for n in known])
    return site.builder.make("Reshape", x, cast(shape, INT64), shape=site.out.shape)


@lowers("expand_dims")
def _expand_dims(site: Site, x: Var, axis: Any) -> Var:
    return unsqueeze(x, axis if isinstance(axis, tuple) else (axis,))


@lowers("squeeze")
def _squeeze(site: Site, x: Var, axis: Any) -> Var:
    return squeeze(x, axis if isinstance(axis, tuple) else (axis,))


@lowers("transpose")
def _transpose(site: Site, x: Var, axes: Any) -> Var:
    return transpose(x, axes)


@lowers("matrix_transpose")
def _matrix_transpose(site: Site, x: Var) -> Var:
    return swap(x, -1, -2)


@lowers("broadcast_to")
def _broadcast_to(site: Site, x: Var, shape: Any) -> Var:
    return expand(x, shape)


@lowers("broadcast_to_dynamic")
def _broadcast_to_dynamic(site: Site, x: Var, shape: Var, rank: int) -> Var:
    return expand(x, shape)


@lowers("sum_to", "sum_to_dynamic")
def _sum_to(site: Site, x: Var, *rest: Any) -> Var:
    return sum_to(x, rest[-1] if site.node.op.name == "sum_to" else rest[0], site.out.shape)


def sum_to(x: Var, target: Any, shape: Any) -> Var:
    """`x` summed to a shape that broadcasts to its own. Which axes are 1 may be known only at run time."""
    lead = x.ndim - len(shape)
    if lead:
        x = total(x, tuple(range(lead)))
    ones = tuple([i for i, n in enumerate(shape) if n == 1])
    if ones:
        x = total(x, ones, True)
    unsure = [i for i, (n, m) in enumerate(zip(shape, x.shape, strict=True)) if n is None and m != 1]
    # a size that is not known is 1, or that of x: the sum over the axis, of which there is one row, or all of x
    b = x.builder
    wanted = target if isinstance(target, Var) else vector(b, target)
    for i in unsure:
        n = pick(cast(wanted, INT64), 0, i)
        whole = b.compare("Equal", n, size(x, i)) & ~b.compare("Equal", n, 1)
        summed = where(whole, x, total(x, (i,), True))
        x = cut(summed, i, 0, n)
    return x


@lowers("broadcast_sizes")
def _broadcast_sizes(site: Site, *vectors: Var) -> Var:
    rank = max(v.shape[0] or 0 for v in vectors)
    widened = [
        concat([site.builder.constant(np.ones(rank - (v.shape[0] or 0), np.int64)), cast(v, INT64)], 0)
        if (v.shape[0] or 0) < rank else cast(v, INT64)
        for v in vectors
    ]  # fmt: skip
    result = widened[0]
    for v in widened[1:]:  # not the larger one: beside a 1 there may be a 0
        result = where(site.builder.compare("Equal", result, 1), v, result)
    return result


# --- joining and cutting


@lowers("concat")
def _concat(site: Site, *arguments: Any) -> Var:
    return concat(arguments[:-1], arguments[-1])


@lowers("stack")
def _stack(site: Site, *arguments: Any) -> Var:
    return stack(arguments[:-1], arguments[-1])


@lowers("unstack")
def _unstack(site: Site, x: Var, axis: int, num: int) -> list[Var]:
    return [pick(x, axis, i) for i in range(num)]


@lowers("split")
def _split(site: Site, x: Var, parts: Any, axis: int) -> list[Var]:
    ends = np.cumsum(parts).tolist()
    return [cut(x, axis, end - n, end) for n, end in zip(parts, ends, strict=True)]


@lowers("split_ends")
def _split_ends(site: Site, parts: Var, n: Var) -> Var:
    return site.builder.make("CumSum", cast(parts, INT64), site.builder.constant(0, INT64))


@lowers("flip")
def _flip(site: Site, x: Var, axes: Any) -> Var:
    return flip(x, axes)


@lowers("roll")
def _roll(site: Site, x: Var, shift: Any, axes: Any) -> Var:
    shifts = shift if isinstance(shift, tuple) else (shift,)
    for by, axis in zip(shifts, axes if isinstance(axes, tuple) else (axes,), strict=True):
        x = rolled(x, by, axis)
    return x


def rolled(x: Var, by: int, axis: int) -> Var:
    n = size(x, axis)
    if isinstance(n, int):
        by = by % n if n else 0
        return concat([cut(x, axis, n - by, None), cut(x, axis, 0, n - by)], axis) if by else x
    period = where(equal_zero(n), like(n, 1), n)  # of no rows a remainder would be an error
    places = x.builder.binary("Mod", arange(x.builder, n) - by, period)
    return gather(x, places, axis)


@lowers("tile")
def _tile(site: Site, x: Var, reps: Any) -> Var:
    shape = [None if n is None else n * r for n, r in zip(x.shape, reps, strict=True)]
    return site.builder.make("Tile", x, vector(site.builder, reps), shape=shape) if reps else x


@lowers("repeat")
def _repeat(site: Site, x: Var, repeats: int, axis: int) -> Var:
    wide = unsqueeze(x, (axis + 1,))
    whole = sizes(x)
    wide = expand(wide, [*whole[: axis + 1], repeats, *whole[axis + 1 :]])
    return reshape(wide, [*whole[:axis], whole[axis] * repeats, *whole[axis + 1 :]])


@lowers("repeat_places")
def _repeat_places(site: Site, repeats: Var) -> Var:
    """The place of a result: how many rows end before it or at it."""
    b = site.builder
    ends = b.make("CumSum", cast(repeats, INT64), b.constant(0, INT64))
    whole = reduce("Sum", cast(repeats, INT64), (0,))
    before = unsqueeze(arange(b, whole), (1,)) >= unsqueeze(ends, (0,))
    return reduce("Sum", cast(before, INT64), (1,))


# --- margins


@lowers("pad")
def _pad(site: Site, x: Var, margins: Any, value: Any) -> Var:
    return pad(x, margins, value) if margins else x


@lowers("pad_continued")
def _pad_continued(site: Site, x: Var, margins: Any, mode: str) -> Var:
    for axis, margin in enumerate(margins):
        if any(margin):
            x = gather(x, sources(x, axis, size(x, axis), margin, mode), axis)
    return x


def sources(x: Var, axis: int, n: Any, margin: Any, mode: str) -> Var:
    """Which element stands at each place of a continued axis."""
    b = x.builder
    places = arange(b, n + margin[0] + margin[1]) - margin[0]
    last = n - 1
    if mode == "edge":
        low = where(places < 0, like(places, 0), places)
        return where(b.compare("Greater", low, last), last, low)
    if mode == "wrap":
        return b.binary("Mod", places, n)
    offset = 0 if mode == "symmetric" else 1
    period = n * 2 - 2 * offset
    period = where(equal_zero(period), like(places, 1), period) if isinstance(period, Var) else max(period, 1)
    folded = b.binary("Mod", places, period)
    return where(b.compare("Less", folded, n), folded, b.binary("Sub", period - 1 + offset, folded))


def equal_zero(x: Var) -> Var:
    return x.builder.compare("Equal", x, 0)


@lowers("pad_folded")
def _pad_folded(site: Site, x: Var, margins: Any, mode: str) -> Var:
    for axis, margin in enumerate(margins):
        if not any(margin):
            continue
        n = size(x, axis) - margin[0] - margin[1]
        places = sources(x, axis, n, margin, mode)
        one_hot = cast(
            x.builder.compare("Equal", unsqueeze(arange(x.builder, n), (1,)), unsqueeze(places, (0,))), x.dtype
        )
        along = move(x, axis, -2) if x.ndim > 1 else unsqueeze(x, (1,))
        made = x.builder.make(
            "MatMul",
            one_hot,
            along,
            uniform=2,
            shape=(*along.shape[:-2], n if isinstance(n, int) else None, along.shape[-1]),
        )
        x = move(made, -2, axis) if x.ndim > 1 else squeeze(made, (1,))
    return x


@lowers("crop_or_fill", "crop_or_fill_to", "crop_or_fill_to_dynamic")
def _crop_or_fill(site: Site, x: Var, *params: Any) -> Var:
    name = site.node.op.name
    if name == "crop_or_fill":
        axes, wanted = params
    elif name == "crop_or_fill_to":
        axes, wanted = range(x.ndim), params[0]
    else:
        axes, wanted = range(x.ndim), [pick(cast(params[0], INT64), 0, i) for i in range(x.ndim)]
    for axis, n in zip(axes, wanted, strict=True):
        have = x.shape[axis]
        if have is not None and isinstance(n, int):
            margin = [(0, 0)] * x.ndim
            margin[axis] = (0, max(0, n - have))
            x = pad(cut(x, axis, 0, n), margin) if n != have else x
            continue
        ends: list[Any] = [(0, 0)] * x.ndim
        ends[axis] = (0, n if isinstance(n, Var) else int(n))
        x = cut(pad(x, ends), axis, 0, n)
    return x


@lowers("uneven", "hollow")
def _marker(site: Site, x: Var, *params: Any) -> Var:
    return x


@lowers("kept_if")
def _kept_if(site: Site, condition: Var, x: Var) -> Var:
    return where(condition, x, zeros_like(x))


@lowers("fftshift")
def _fftshift(site: Site, x: Var, axes: Any, inverse: bool) -> Var:
    for axis in axes:
        n = x.shape[axis]
        if n is None:
            raise Refused("the size of the axis is not known")
        x = rolled(x, (n + 1) // 2 if inverse else n // 2, axis)
    return x

"""Ops that pick elements, and that put them back.

Whatever stands between the brackets of `x[...]` is applied to the numbers of the elements: then putting something
there is one scatter of a flat tensor, whatever the key.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.export.to_onnx.arrays import (
    BOOL,
    INT64,
    arange,
    cast,
    cut,
    equal,
    expand,
    full,
    gather,
    gather_elements,
    gather_nd,
    is_nan,
    like,
    pick,
    reduce,
    reshape,
    scatter_elements,
    scatter_nd,
    shape_of,
    signed_in_order,
    size,
    sizes,
    stack,
    times,
    top_k,
    total,
    transpose,
    unsqueeze,
    vector,
    where,
)
from limelight.export.to_onnx.builder import Builder, Var, broadcast
from limelight.export.to_onnx.registry import Site, lowers, refuses

_OPEN = (None, None, None)
_FAR = 2**62
"""A place beyond every axis."""


def at_key(x: Var, key: Any, operand: Var | None) -> Var:
    """`x[key]`, where the operand fills the marks of the key."""
    if any(part == "i" for part in key):
        return _at_arrays(x, key, operand)
    feed = iter([] if operand is None else [pick(cast(operand, INT64), 0, i) for i in range(_marks(key))])
    axis, new, gone = 0, [], []
    place = 0
    for part in key:
        if part is None:
            new.append(place)
            place += 1
            continue
        if isinstance(part, tuple):
            start, stop, step = [next(feed) if isinstance(bound, str) else bound for bound in part]
            if (start, stop, step) != _OPEN:
                x = _stepped(x, axis, start, stop, step)
            place += 1
        else:
            at = next(feed) if part == "t" else part
            x = _single(x, axis, at)
            gone.append(axis)
        axis += 1
    x = _without(x, gone)
    return unsqueeze(x, new) if new else x


def _marks(key: Any) -> int:
    return sum(sum(isinstance(b, str) for b in part) if isinstance(part, tuple) else part == "t" for part in key)


def _stepped(x: Var, axis: int, start: Any, stop: Any, step: Any) -> Var:
    if isinstance(step, Var):
        b = x.builder
        back = step < 0
        low = where(back, like(step, _FAR), like(step, 0)) if start is None else start
        high = where(back, like(step, -_FAR), like(step, _FAR)) if stop is None else stop
        ends = [vector(b, [n]) for n in (low, high, 0, step)]
        return gather(x, b.make("Slice", arange(b, size(x, axis)), *ends, shape=(None,)), axis)
    return cut(x, axis, start, stop, 1 if step is None else step)


def _single(x: Var, axis: int, at: Any) -> Var:
    at = at if isinstance(at, Var) else x.builder.constant(at, INT64)
    return gather(x, unsqueeze(at, (0,)), axis)


def _without(x: Var, axes: Sequence[int]) -> Var:
    if not axes:
        return x
    shape = [n for i, n in enumerate(x.shape) if i not in axes]
    return x.builder.make("Squeeze", x, vector(x.builder, list(axes)), shape=shape)


def _at_arrays(x: Var, key: Any, operand: Any) -> Var:
    """Advanced indexing: slices first; then the indexed axes in front, gathered together; then where NumPy has them."""
    n = sum(part == "i" for part in key)
    feed = iter([operand] if n == 1 else [pick(operand, 0, i) for i in range(n)])
    picked: list[tuple[int, Any]] = []  # axis of x after the slices, and what indexes it
    kept: list[Any] = []  # the axes that stay, in order, None for new ones
    axis, place, last, together = 0, 0, -1, True
    for i, part in enumerate(key):
        if part is None:
            kept.append(None)
            continue
        if isinstance(part, tuple):
            if part != _OPEN:
                x = cut(x, axis, part[0], part[1], 1 if part[2] is None else part[2])
            kept.append(axis)
        else:
            picked.append((axis, next(feed) if part == "i" else part))
            together = together and last in (-1, i - 1)
            place, last = (len(kept) if last < 0 else place), i
        axis += 1
    return _gathered(x, picked, [*kept, *range(axis, x.ndim)], place if together else 0)


def _gathered(x: Var, picked: list[tuple[int, Any]], kept: list[Any], at: int) -> Var:
    """`x` at arrays of places along some axes, whose own axes come to stand before those kept from `at` on."""
    b = x.builder
    indices = [cast(v, INT64) if isinstance(v, Var) else b.constant(np.asarray(v, np.int64)) for _, v in picked]
    shape = broadcast(*[v.shape for v in indices])
    stay = [a for a in kept if a is not None]
    if len(indices) == 1 and None not in kept and at == picked[0][0]:
        return gather(x, indices[0], at)
    front = transpose(x, [a for a, _ in picked] + stay)
    if len(indices) > 1:
        zero = indices[0] * 0
        for v in indices[1:]:
            zero = zero + v * 0
        common = stack([v + zero for v in indices], -1)
    else:
        common = unsqueeze(indices[0], (-1,))
    taken = gather_nd(front, common)
    taken = Var(b, taken.name, taken.dtype, (*shape, *front.shape[len(picked) :]))
    lead = len(shape)
    before = sum(a is not None for a in kept[:at])
    order = [lead + j for j in range(before)] + list(range(lead)) + [lead + j for j in range(before, len(stay))]
    new = [j if j < at else j + lead for j, a in enumerate(kept) if a is None]
    return unsqueeze(transpose(taken, order), new)


def places_at(b: Builder, shape: Any, key: Any, operand: Var | None) -> Var:
    """The numbers of the elements that `x[key]` would pick out of an `x` of this shape."""
    n = times(*shape)
    return at_key(reshape(arange(b, n), shape), key, operand)


def put(flat: Var, places: Var, values: Var, how: str) -> Var:
    """A vector with values at places, one for each: set, or combined with what is there."""
    return scatter_elements(flat, reshape(places, (-1,)), reshape(values, (-1,)), 0, how)


def _target(given: Any, rank: int) -> list[Any]:
    if isinstance(given, Var):
        return [pick(cast(given, INT64), 0, i) for i in range(rank)]
    return list(given)


@lowers("slice")
def _slice(site: Site, x: Var, key: Any) -> Var:
    return at_key(x, key, None)


@lowers("dynamic_slice", "index")
def _index(site: Site, x: Var, operand: Var, key: Any) -> Var:
    return at_key(x, key, operand)


@lowers("slice_scatter", "slice_scatter_dynamic", "dynamic_slice_scatter", "dynamic_slice_scatter_dynamic",
        "index_scatter", "index_scatter_dynamic")  # fmt: skip
def _put_back(site: Site, x: Var, *rest: Any) -> Var:
    """Zeros, with `x` added at the key."""
    name = site.node.op.name
    rest_list = list(rest)
    operand = None if name.startswith("slice") else rest_list.pop(0)
    if name.endswith("_dynamic"):
        given, key, rank = rest_list
        shape = _target(given, rank)
        shape = [g if n is None else n for g, n in zip(shape, site.out.shape, strict=True)]
    else:
        key, shape = rest_list
    places = places_at(site.builder, shape, key, operand)
    zeros = full(site.builder, [times(*shape)], 0, x.dtype)
    return reshape(put(zeros, places, x, "add"), shape)


@lowers("index_update", "index_add", "index_multiply", "index_min", "index_max")
def _update(site: Site, x: Var, updates: Var, operand: Var, key: Any) -> Var:
    how = {"update": "none", "add": "add", "multiply": "mul", "min": "min", "max": "max"}[
        site.node.op.name.removeprefix("index_")
    ]
    shape = sizes(x)
    places = places_at(site.builder, shape, key, operand)
    values = expand(updates, shape_of(places))
    return reshape(put(reshape(x, (-1,)), places, values, how), shape)


@lowers("index_places")
def _index_places(site: Site, x: Var, operand: Var, key: Any) -> Var:
    return places_at(site.builder, sizes(x), key, operand)


@lowers("index_wins")
def _index_wins(site: Site, x: Var, operand: Var, key: Any) -> Var:
    places = places_at(site.builder, sizes(x), key, operand)
    return _wins(site.builder, times(*sizes(x)), places)


def _wins(b: Builder, n: Any, places: Var) -> Var:
    """Whether an element is the last one of those with its place."""
    flat = reshape(places, (-1,))
    order = arange(b, size(flat, 0))
    seats = scatter_elements(full(b, [n], 0, INT64), flat, order, 0, "max")
    return reshape(equal(gather(seats, flat, 0), order), sizes(places))


@lowers("pack_indices")
def _pack(site: Site, *xs: Var) -> Var:
    zero = cast(xs[0], INT64) * 0
    for x in xs[1:]:
        zero = zero + cast(x, INT64) * 0
    return stack([cast(x, INT64) + zero for x in xs])


@lowers("nonzero")
def _nonzero(site: Site, x: Var) -> Var:
    truth = x if x.dtype == BOOL else ~equal(x, 0)
    return site.builder.make("NonZero", truth, dtype=INT64, shape=(x.ndim, None))


@lowers("one_hot")
def _one_hot(site: Site, indices: Var, depth: int, dtype: Any) -> Var:
    wide = unsqueeze(cast(indices, INT64), (-1,))
    return cast(equal(wide, arange(site.builder, depth)), dtype)


@lowers("element_place")
def _element_place(site: Site, index: Var, n: Var) -> Var:
    return where(index < 0, n + index * 0, index + n * 0)


# --- along axes


@lowers("take")
def _take(site: Site, x: Var, indices: Var, axis: int) -> Var:
    return gather(x, indices, axis)


@lowers("take_scatter", "take_scatter_dynamic")
def _take_scatter(site: Site, x: Var, indices: Var, *rest: Any) -> Var:
    if site.node.op.name == "take_scatter":
        axis, shape = rest
    else:
        axis, shape = rest[1], _target(rest[0], rest[2])
    key = (*((_OPEN,) * axis), "i")
    places = places_at(site.builder, shape, key, indices)
    zeros = full(site.builder, [times(*shape)], 0, x.dtype)
    return reshape(put(zeros, places, x, "add"), shape)


@lowers("embedding")
def _embedding(site: Site, table: Var, indices: Var, *params: Any) -> Var:
    return gather(table, indices, 0)


@lowers("take_along_axis", "reorder")
def _take_along(site: Site, x: Var, indices: Var, axis: int) -> Var:
    return gather_elements(*_spread(x, indices, axis), axis)


def _spread(x: Var, indices: Var, axis: int) -> tuple[Var, Var]:
    """Both with the same sizes, but for the axis."""
    indices = cast(indices, INT64)
    if all(m == n and m is not None for i, (m, n) in enumerate(zip(x.shape, indices.shape, strict=True)) if i != axis):
        return x, indices
    thin = cut(x, axis, 0, 1)
    ones = shape_of(cast(thin, "float32") + cast(cut(indices, axis, 0, 1), "float32"))
    lead = [pick(ones, 0, i) for i in range(x.ndim)]
    x_shape, i_shape = list(lead), list(lead)
    x_shape[axis], i_shape[axis] = size(x, axis), size(indices, axis)
    return expand(x, x_shape), expand(indices, i_shape)


@lowers("scatter_along_axis", "scatter_along_axis_dynamic")
def _scatter_along(site: Site, x: Var, indices: Var, *rest: Any) -> Var:
    if site.node.op.name == "scatter_along_axis":
        axis, shape = rest
    else:
        axis, shape = rest[1], _target(rest[0], rest[2])
    places = _along_places(site.builder, shape, indices, axis)
    values = expand(x, shape_of(places)) if None in x.shape or x.shape != places.shape else x
    zeros = full(site.builder, [times(*shape)], 0, x.dtype)
    return reshape(put(zeros, places, values, "add"), shape)


def _along_places(b: Builder, shape: Any, indices: Var, axis: int) -> Var:
    """The numbers of the elements that `take_along_axis` would pick."""
    numbers = reshape(arange(b, times(*shape)), shape)
    return gather_elements(*_spread(numbers, indices, axis), axis)


@lowers("put_along_axis")
def _put_along(site: Site, x: Var, values: Var, indices: Var, axis: int) -> Var:
    places = _along_places(site.builder, sizes(x), indices, axis)
    return reshape(put(reshape(x, (-1,)), places, expand(values, shape_of(places)), "none"), sizes(x))


@lowers("put_wins")
def _put_wins(site: Site, x: Var, indices: Var, axis: int) -> Var:
    shape = sizes(x)
    return _wins(site.builder, times(*shape), _along_places(site.builder, shape, indices, axis))


@lowers("gather_nd")
def _gather_nd(site: Site, x: Var, indices: Var) -> Var:
    if indices.shape[-1] == 0:
        return expand(x, [*sizes(indices)[:-1], *sizes(x)])
    return gather_nd(x, indices)


@lowers("scatter", "scatter_dynamic")
def _scatter(site: Site, updates: Var, indices: Var, *rest: Any) -> Var:
    shape = rest[0]
    zeros = full(site.builder, shape, 0, updates.dtype)
    return scatter_nd(zeros, indices, updates, "add")


# --- segments


def _segments(x: Var, ids: Var, num: Any, how: str, neutral: Any) -> Var:
    b = x.builder
    if num is None:
        num = reduce("Max", reshape(cast(ids, INT64), (-1,)), (0,)) + 1
    rest = sizes(x)[ids.ndim :]
    start = full(b, [num, *rest], neutral, x.dtype)
    return scatter_nd(start, unsqueeze(cast(ids, INT64), (-1,)), x, how)


@lowers("segment_sum", "segment_prod", "segment_max", "segment_min")
def _segment(site: Site, x: Var, ids: Var, num: Any) -> Var:
    word = site.node.op.name.removeprefix("segment_")
    if word in ("sum", "prod"):
        return _segments(x, ids, num, {"sum": "add", "prod": "mul"}[word], 0 if word == "sum" else 1)
    limits: Any = np.iinfo(x.dtype) if not x.floating else None
    low = limits.min if limits else -math.inf
    high = limits.max if limits else math.inf
    return _segments(x, ids, num, word, low if word == "max" else high)


@lowers("segment_count")
def _segment_count(site: Site, ids: Var, num: Any) -> Var:
    ones = expand(site.builder.constant(1, INT64), shape_of(ids))
    found = _segments(ones, ids, num, "add", 0)
    return where(found < 1, like(found, 1), found)


@lowers("add_up_rows")
def _add_up_rows(site: Site, values: Var, indices: Var) -> list[Var]:
    b = site.builder
    flat = reshape(cast(indices, INT64), (-1,))
    names = b.emit("Unique", [flat], 3, sorted=1)
    rows, places = Var(b, names[0], INT64, (None,)), reshape(Var(b, names[2], INT64, (None,)), sizes(indices))
    start = full(b, [size(rows, 0), *sizes(values)[indices.ndim :]], 0, values.dtype)
    return [scatter_nd(start, unsqueeze(places, (-1,)), values, "add"), rows, places]


@lowers("distinct")
def _distinct(site: Site, x: Var) -> list[Var]:
    b = site.builder
    through = reshape(x, (-1,))
    through = through if x.floating else cast(signed_in_order(through), INT64)
    names = b.emit("Unique", [through], 4, sorted=1)
    first, inverse, counted = (Var(b, name, INT64, (None,)) for name in names[1:])
    return [first, reshape(inverse, sizes(x)), counted]


@lowers("segment_places")
def _segment_places(site: Site, data: Var, ids: Var) -> Var:
    b = site.builder
    width = reduce("Prod", vector(b, [*sizes(data)[ids.ndim :], 1]), (0,))
    rows = reshape(cast(ids, INT64), (-1, 1))
    return reshape(rows * width + arange(b, pick(reshape(width, (1,)), 0, 0)), (-1,))


@lowers("segment_neighbour")
def _segment_neighbour(site: Site, ids: Var, by: int) -> Var:
    b = site.builder
    n = size(ids, 0)
    order = ordered(cast(ids, INT64), 0, descending=False)[1]
    ahead = arange(b, n) + by
    held = (ahead >= 0) & b.compare("Less", ahead, n)
    ahead = where(held, ahead, like(ahead, 0))
    there = gather(order, ahead, 0)
    alike = held & equal(gather(ids, there, 0), gather(ids, order, 0))
    return gather(where(alike, there, like(there, -1)), ordered(order, 0, descending=False)[1], 0)


# --- order


def sort_key(x: Var, *, descending: bool) -> Var:
    return cast(x, "int32") if x.dtype == BOOL else x


def ordered(x: Var, axis: int, *, descending: bool) -> tuple[Var, Var]:
    """Values in order and their places, equal ones in the order in which they stand; NaN is larger than all."""
    if x.dtype == BOOL:
        x = cast(x, "int32")
    if not x.floating:
        return top_k(x, size(x, axis), axis, largest=descending)
    spoilt = is_nan(x)
    last = math.inf
    plain = where(spoilt, like(x, last), x)
    # two sorts: by value, then (stably) NaN behind infinity
    _, places = top_k(plain, size(x, axis), axis, largest=descending)
    rank = gather_elements(cast(spoilt, "int32"), places, axis)
    _, again = top_k(rank, size(x, axis), axis, largest=descending)
    places = gather_elements(places, again, axis)
    return gather_elements(x, places, axis), places


@lowers("sort")
def _sort(site: Site, x: Var, axis: int, descending: bool) -> Var:
    return cast(ordered(x, axis, descending=descending)[0], x.dtype) if x.ndim else x


@lowers("argsort")
def _argsort(site: Site, x: Var, axis: int, descending: bool) -> Var:
    return ordered(x, axis, descending=descending)[1]


@lowers("top_k_places")
def _top_k(site: Site, x: Var, k: int, axis: int) -> Var:
    return cut(ordered(x, axis, descending=True)[1], axis, 0, k)


@lowers("searchsorted")
def _searchsorted(site: Site, x: Var, values: Var, side: str) -> Var:
    """How many elements lie before: for few of them as quick as halving."""
    wide = unsqueeze(values, (-1,))
    before = (x < wide) if side == "left" else (x <= wide)
    if x.floating:
        before = (
            before
            | (is_nan(wide) & ~is_nan(x))
            | (is_nan(wide) & is_nan(x) if side == "right" else is_nan(x) & ~is_nan(x))
        )
    return total(cast(before, INT64), (values.ndim,))


@lowers("isin")
def _isin(site: Site, x: Var, values: Var, invert: bool) -> Var:
    found = equal(unsqueeze(x, (-1,)), reshape(values, (-1,)))
    n = total(cast(found, "int32"), (x.ndim,))
    return equal(n, 0) if invert else n > 0


refuses("its bins are searched in float64 by NumPy's rules; use bincount", "histogram")

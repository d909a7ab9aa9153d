"""Batching rules of indexing: slices, arrays of positions, and their transposes."""

from __future__ import annotations

from typing import Any

from limelight import dispatch
from limelight.batching.rules import Site, front, rule, shape_with
from limelight.registry import get
from limelight.tensor import Tensor

_ALL = (None, None, None)


@rule("slice")
def sliced(site: Site) -> Any:
    return site.run(site.inputs, (_ALL, *site.attrs[0]))


@rule("dynamic_slice")
def dynamic_slice(site: Site) -> Any:
    return NotImplemented if site.mask[1] else site.run(site.inputs, (_ALL, *site.attrs[0]))


@rule("slice_scatter", "dynamic_slice_scatter")
def slice_scatter(site: Site) -> Any:
    key, shape = site.attrs
    if any(site.mask[1:]) or not isinstance(site.size, int):
        return NotImplemented
    return site.run(site.inputs, (_ALL, *key), (site.size, *shape))


@rule("slice_scatter_dynamic", "dynamic_slice_scatter_dynamic")
def slice_scatter_dynamic(site: Site) -> Any:
    *given, shape = site.inputs
    key, rank = site.attrs
    if any(site.mask[1:]):
        return NotImplemented
    return site.run((*given, shape_with(site.size, shape)), (_ALL, *key), rank + 1)


# take: along one axis


@rule("take")
def take(site: Site) -> Any:
    x, indices = site.inputs
    (axis,) = site.attrs
    if not site.mask[1]:
        return site.run((x, indices), axis + 1)
    if not site.mask[0]:
        return front(site.run((x, indices), axis), axis)
    if not isinstance(site.size, int) or None in x.shape:
        return NotImplemented
    n, count = site.size, x.shape[axis + 1]
    rows = _to_front(x, axis).reshape((n * count, *_without(x.shape[1:], axis)))
    found = site.run((rows, _offset(indices, n, count)), 0)
    return _back(found, indices.ndim - 1, axis)


def _to_front(x: Tensor, axis: int) -> Tensor:
    """(n, a.., size, b..) -> (n, size, a.., b..)."""
    rest = [i for i in range(1, x.ndim) if i != axis + 1]
    return x.transpose((0, axis + 1, *rest))


def _without(shape: Any, axis: int) -> tuple[Any, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _offset(indices: Tensor, n: int, count: int) -> Tensor:
    """Indices into all examples' rows, laid end to end."""
    i = indices.astype("int64")
    first: Tensor = dispatch.apply(get("arange"), (), (0, count, n, i.dtype))
    return (i < 0).where(i + count, i) + first.reshape((n,) + (1,) * (i.ndim - 1))


def _back(x: Tensor, extra: int, axis: int) -> Tensor:
    """(n, i.., a.., b..) -> (n, a.., i.., b..): the `extra` axes of the indices go behind `axis` others."""
    index = list(range(1, 1 + extra))
    rest = list(range(1 + extra, x.ndim))
    return x.transpose((0, *rest[:axis], *index, *rest[axis:]))


@rule("take_scatter")
def take_scatter(site: Site) -> Any:
    g, indices = site.inputs
    axis, shape = site.attrs
    if not isinstance(site.size, int):
        return NotImplemented
    if not site.mask[1]:
        return site.run((g, indices), axis + 1, (site.size, *shape))
    g = site.lead(0)
    if None in (*g.shape, *indices.shape):
        return NotImplemented
    n, count, extra = site.size, shape[axis], indices.ndim - 1
    rest = _without(shape, axis)
    moved = g.transpose((0, *range(1 + axis, 1 + axis + extra), *range(1, 1 + axis), *range(1 + axis + extra, g.ndim)))
    rows = site.run((moved, _offset(indices, n, count)), 0, (n * count, *rest))
    return _back(rows.reshape((n, count, *rest)), 1, axis)


@rule("take_scatter_dynamic")
def take_scatter_dynamic(site: Site) -> Any:
    g, indices, shape = site.inputs
    axis, rank = site.attrs
    if any(site.mask[1:]):
        return NotImplemented
    return site.run((g, indices, shape_with(site.size, shape)), axis + 1, rank + 1)


# index: arrays of positions, by NumPy's rule of where their axes stand in the result


def _marks(key: Any) -> list[int]:
    return [i for i, part in enumerate(key) if part is not None and not isinstance(part, tuple)]


def _together(key: Any) -> bool:
    places = _marks(key)
    return places == list(range(places[0], places[-1] + 1))


def _start(key: Any) -> int:
    """Before which axis of the result the positions' axes stand."""
    return _marks(key)[0] if _together(key) else 0


def _index_rank(indices: Tensor, key: Any) -> int:
    """How many axes the positions have together; where there are several arrays they are stacked."""
    return indices.ndim - int(key.count("i") > 1)


def _per_example(site: Site, key: Any) -> Tensor:
    """The positions with one more array in front, which says of which example: what `("i", *key)` takes."""
    indices = site.inputs[1]
    several = key.count("i") > 1
    stacked = indices.transpose((1, 0, *range(2, indices.ndim))) if several else indices.expand_dims(0)
    stacked = stacked.astype("int64")
    shape = stacked.shape[1:]
    steps = dispatch.apply(get("arange"), (), (0, 1, site.size, stacked.dtype))
    example = steps.reshape((1, site.size) + (1,) * (len(shape) - 1)).broadcast_to((1, *shape))
    found: Tensor = dispatch.apply(get("concat"), (example, stacked), (0,))
    return found


@rule("index")
def index(site: Site) -> Any:
    x, indices = site.inputs
    (key,) = site.attrs
    if not site.mask[1]:
        found = site.run((x, indices), (_ALL, *key))
        return found if _together(key) else front(found, _index_rank(indices, key))
    rank = _index_rank(indices, key) - 1
    if not site.mask[0]:
        if key.count("i") > 1:
            indices = indices.transpose((1, 0, *range(2, indices.ndim)))
        return front(site.run((x, indices), key), _start(key))
    if not isinstance(site.size, int) or None in indices.shape:
        return NotImplemented
    return _back(site.run((x, _per_example(site, key)), ("i", *key)), rank, _start(key))


@rule("index_scatter")
def index_scatter(site: Site) -> Any:
    g, indices = site.inputs
    key, shape = site.attrs
    if not isinstance(site.size, int):
        return NotImplemented
    wider = (site.size, *shape)
    if not site.mask[1]:
        rank = _index_rank(indices, key)
        if not _together(key):  # then the positions' axes come before the examples'
            g = g.transpose((*range(1, 1 + rank), 0, *range(1 + rank, g.ndim)))
        return site.run((g, indices), (_ALL, *key), wider)
    if None in indices.shape:
        return NotImplemented
    g, rank, start = site.lead(0), _index_rank(indices, key) - 1, _start(key)
    order = (0, *range(1 + start, 1 + start + rank), *range(1, 1 + start), *range(1 + start + rank, g.ndim))
    return site.run((g.transpose(order), _per_example(site, key)), ("i", *key), wider)


@rule("index_scatter_dynamic")
def index_scatter_dynamic(site: Site) -> Any:
    g, indices, shape = site.inputs
    key, rank = site.attrs
    if any(site.mask[1:]) or not _together(key):
        return NotImplemented
    return site.run((g, indices, shape_with(site.size, shape)), (_ALL, *key), rank + 1)

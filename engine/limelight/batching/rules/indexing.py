"""Batching rules of indexing: slices, arrays of positions, and their transposes.

Positions that differ between examples become arrays of positions with one more array, which says of which example.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from limelight.batching.rule_table import Site, batch_shape, front, kind
from limelight.core import dispatch
from limelight.core.dtypes import int64
from limelight.core.op import get
from limelight.core.tensor import Tensor, constant

_ALL = (None, None, None)


@kind("slice")
def slice_(site: Site) -> Any:
    return site.run(site.inputs, (_ALL, *site.attrs[0]))


@kind("dynamic_slice")
def dynamic_slice(site: Site) -> Any:
    if not site.mask[1]:
        return site.run(site.inputs, (_ALL, *site.attrs[0]))
    picked = _as_index(site, "index")
    return NotImplemented if picked is None else index(picked)


@kind("slice_scatter")
def slice_scatter(site: Site) -> Any:
    key, shape = site.attrs
    if any(site.mask[1:]):
        picked = _as_index(site, "index_scatter")
        return NotImplemented if picked is None else index_scatter(picked)
    if not isinstance(site.size, int):
        return NotImplemented
    return site.run(site.inputs, (_ALL, *key), (site.size, *shape))


@kind("slice_scatter_dynamic")
def slice_scatter_dynamic(site: Site) -> Any:
    *operands, shape = site.inputs
    key, rank = site.attrs
    if len(operands) > 1 and site.mask[1] and not site.mask[2]:
        picked = _as_index(site, "index_scatter_dynamic")
        return NotImplemented if picked is None else index_scatter_dynamic(picked)
    if any(site.mask[1:]):
        return NotImplemented
    return site.run((*operands, batch_shape(site.size, shape)), (_ALL, *key), rank + 1)


def _as_index(site: Site, op: str) -> Site | None:
    """The same by arrays of positions, where no bound of a slice is a tensor."""
    key = site.attrs[0]
    if any(isinstance(bound, str) for part in key if isinstance(part, tuple) for bound in part):
        return None
    x, positions, *more = site.inputs
    if key.count("t") == 1:
        positions = positions[:, 0]
    marks = tuple(["i" if isinstance(part, str) else part for part in key])
    return replace(site, op=get(op), inputs=(x, positions, *more), attrs=(marks, *site.attrs[1:]))


# take: along one axis


@kind("take")
def take(site: Site) -> Any:
    x, indices = site.inputs
    (axis,) = site.attrs
    if not 0 <= axis < site.rank(0):
        return NotImplemented  # the op alone says what is wrong
    if not site.mask[1]:
        return site.run((x, indices), axis + 1)
    if not site.mask[0]:
        return front(site.run((x, indices), axis), axis)
    return index(replace(site, op=get("index"), attrs=(_key_of(axis),)))


def _key_of(axis: int) -> tuple[Any, ...]:
    return ((_ALL,) * axis) + ("i",)


@kind("take_scatter")
def take_scatter(site: Site) -> Any:
    axis, shape = site.attrs
    if site.mask[1]:
        return index_scatter(replace(site, op=get("index_scatter"), attrs=(_key_of(axis), shape)))
    return site.run(site.inputs, axis + 1, (site.size, *shape)) if isinstance(site.size, int) else NotImplemented


@kind("take_scatter_dynamic")
def take_scatter_dynamic(site: Site) -> Any:
    g, indices, shape = site.inputs
    axis, rank = site.attrs
    if site.mask[2]:
        return NotImplemented
    if site.mask[1]:
        op = get("index_scatter_dynamic")
        return index_scatter_dynamic(replace(site, op=op, attrs=(_key_of(axis), rank)))
    return site.run((g, indices, batch_shape(site.size, shape)), axis + 1, rank + 1)


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


def counted(size: Any) -> Tensor:
    """0, 1, ... for as many examples as there are."""
    if isinstance(size, int):
        steps: Tensor = dispatch.apply(get("arange"), (), (0, 1, size, int64))
    else:
        steps = dispatch.apply(get("arange_dynamic"), (constant(0, int64), size, constant(1, int64)))
    return steps


def _per_example(site: Site, key: Any) -> Tensor:
    """The positions with one more array in front, which says of which example: what `("i", *key)` takes."""
    indices = site.inputs[1]
    several = key.count("i") > 1
    stacked = (indices.transpose((1, 0, *range(2, indices.ndim))) if several else indices.expand_dims(0)).astype(int64)
    example = counted(site.size).expand_dims((0, *range(2, stacked.ndim))) + stacked[:1] * 0
    positions: Tensor = dispatch.apply(get("concat"), (example, stacked), (0,))
    return positions


def _scattered(site: Site, key: Any) -> Tensor:
    """What is to be put at positions that differ, with their axes first."""
    g, rank, start = site.lead(0), _index_rank(site.inputs[1], key) - 1, _start(key)
    order = (0, *range(1 + start, 1 + start + rank), *range(1, 1 + start), *range(1 + start + rank, g.ndim))
    moved: Tensor = g.transpose(order)
    return moved


@kind("index")
def index(site: Site) -> Any:
    x, indices = site.inputs
    (key,) = site.attrs
    if not site.mask[1]:
        result = site.run((x, indices), (_ALL, *key))
        return result if _together(key) else front(result, _index_rank(indices, key))
    if not site.mask[0]:
        if key.count("i") > 1:
            indices = indices.transpose((1, 0, *range(2, indices.ndim)))
        return front(site.run((x, indices), key), _start(key))
    result = site.run((x, _per_example(site, key)), ("i", *key))
    rank, start = _index_rank(indices, key) - 1, _start(key)
    own, rest = range(1, 1 + rank), list(range(1 + rank, result.ndim))
    return result.transpose((0, *rest[:start], *own, *rest[start:]))


@kind("index_scatter")
def index_scatter(site: Site) -> Any:
    g, indices = site.inputs
    key, shape = site.attrs
    if not isinstance(site.size, int):
        return NotImplemented
    wider = (site.size, *shape)
    if site.mask[1]:
        return site.run((_scattered(site, key), _per_example(site, key)), ("i", *key), wider)
    if not _together(key):  # then the positions' axes come before the examples'
        rank = _index_rank(indices, key)
        g = g.transpose((*range(1, 1 + rank), 0, *range(1 + rank, g.ndim)))
    return site.run((g, indices), (_ALL, *key), wider)


@kind("index_scatter_dynamic")
def index_scatter_dynamic(site: Site) -> Any:
    g, indices, shape = site.inputs
    key, rank = site.attrs
    if site.mask[2] or not (site.mask[1] or _together(key)):
        return NotImplemented
    wider = batch_shape(site.size, shape)
    if site.mask[1]:
        return site.run((_scattered(site, key), _per_example(site, key), wider), ("i", *key), rank + 1)
    return site.run((g, indices, wider), (_ALL, *key), rank + 1)

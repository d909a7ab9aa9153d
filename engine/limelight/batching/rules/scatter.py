"""Batching rules of look-ups and updates by index, of segments, and of sorted search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from limelight.batching.rule_table import Site, front, kind
from limelight.batching.rules.indexing import counted
from limelight.batching.rules.indexing import take as take_rule
from limelight.core import dispatch
from limelight.core.dtypes import int64
from limelight.core.op import get
from limelight.core.tensor import Tensor


@kind("embedding")
def embedding(site: Site) -> Any:
    """Rows of one table, or of one for each example; the gradient is dense."""
    return take_rule(replace(site, op=get("take"), attrs=(0,)))


@kind("gather_nd")
def gather_nd(site: Site) -> Any:
    x, indices = site.inputs
    if not site.mask[0]:
        return site.run((x, indices))
    return site.run((x, _with_example(site, 1)))


@kind("scatter")
def scatter(site: Site) -> Any:
    (shape,) = site.attrs
    if not isinstance(site.size, int):
        return NotImplemented
    return site.run((site.lead(0), _with_example(site, 1)), (site.size, *shape))


def _with_example(site: Site, i: int) -> Tensor:
    """Positions with one more coordinate in front, which says of which example."""
    indices = site.lead(i).astype(int64)
    example = counted(site.size).reshape((-1,) + (1,) * (indices.ndim - 1)) + indices[..., :1] * 0
    positions: Tensor = dispatch.apply(get("concat"), (example, indices), (indices.ndim - 1,))
    return positions


@kind("segments")
def segments(site: Site) -> Any:
    """By the same segments: examples go behind the rows."""
    data, ids = site.inputs
    if site.mask[1]:
        return NotImplemented
    k = ids.ndim
    result = site.run((data.transpose((*range(1, 1 + k), 0, *range(1 + k, data.ndim))), ids), *site.attrs)
    return front(result, 1)


@kind("isin")
def isin(site: Site) -> Any:
    """In one and the same set for all examples."""
    return site.run(site.inputs, *site.attrs) if site.mask == (True, False) else NotImplemented


@kind("searchsorted")
def searchsorted(site: Site) -> Any:
    """In one and the same sorted vector for all examples."""
    return site.run(site.inputs, *site.attrs) if site.mask == (False, True) else NotImplemented

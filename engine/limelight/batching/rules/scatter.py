"""Batching rules of look-ups and updates by index, of segments, and of sorted search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from limelight.batching.rule_table import Site, elementwise, front, rule
from limelight.batching.rules.indexing import counted
from limelight.batching.rules.indexing import take as take_rule
from limelight.core import dispatch
from limelight.core.dtypes import int64
from limelight.core.op import get
from limelight.core.tensor import Tensor

rule("beta_density", "beta_tail", "betainc", "gamma_tail", "truncated_normal_quantile")(elementwise)


@rule("embedding")
def embedding(site: Site) -> Any:
    """Rows of one table, or of one for each example; the gradient is dense."""
    return take_rule(replace(site, op=get("take"), attrs=(0,)))


@rule("gather_nd")
def gather_nd(site: Site) -> Any:
    x, indices = site.inputs
    if not site.mask[0]:
        return site.run((x, indices))
    return site.run((x, _with_example(site, 1)))


@rule("scatter")
def scatter(site: Site) -> Any:
    (shape,) = site.attrs
    if not isinstance(site.size, int):
        return NotImplemented
    return site.run((site.lead(0), _with_example(site, 1)), (site.size, *shape))


def _with_example(site: Site, i: int) -> Tensor:
    """Positions with one more coordinate in front, which says of which example."""
    indices = site.lead(i).astype(int64)
    example = counted(site.size).reshape((-1,) + (1,) * (indices.ndim - 1)) + indices[..., :1] * 0
    found: Tensor = dispatch.apply(get("concat"), (example, indices), (indices.ndim - 1,))
    return found


@rule("segment_sum", "segment_max", "segment_min", "segment_prod")
def segments(site: Site) -> Any:
    """By the same segments: examples go behind the rows."""
    data, ids = site.inputs
    if site.mask[1]:
        return NotImplemented
    k = ids.ndim
    found = site.run((data.transpose((*range(1, 1 + k), 0, *range(1 + k, data.ndim))), ids), *site.attrs)
    return front(found, 1)


@rule("isin", "searchsorted")
def compared(site: Site) -> Any:
    """One of the operands is looked through, and the other's axes do not matter."""
    looked_through, of_any_shape = (1, 0) if site.op == "isin" else (0, 1)
    if site.mask[looked_through] or not site.mask[of_any_shape]:
        return NotImplemented
    return site.run(site.inputs, *site.attrs)

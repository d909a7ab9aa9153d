"""Batching rules of random ops: independent numbers for each example, in one wider draw.

Their first operand is the generator.
"""

from __future__ import annotations

from typing import Any

from limelight.batching.rule_table import Shared, Site, batch_shape, kind


@kind("draw")
def draw(site: Site) -> Any:
    *rest, shape = site.attrs
    return site.run(site.inputs, *rest, (site.size, *shape)) if isinstance(site.size, int) else NotImplemented


@kind("draw_dynamic")
def draw_dynamic(site: Site) -> Any:
    *generator, shape = site.inputs
    *rest, rank = site.attrs
    if any(site.mask):
        return NotImplemented
    return site.run((*generator, batch_shape(site.size, shape)), *rest, rank + 1)


@kind("draw_like")
def draw_like(site: Site) -> Any:
    """One draw for each element, or row, of the parameters."""
    last = len(site.inputs) - 1
    return site.run((*site.inputs[:last], site.lead(last)), *site.attrs)


@kind("split")
def split(site: Site) -> Any:
    """Examples that share a generator share its children, of which each example draws numbers of its own."""
    return tuple([Shared(child) for child in site.run(site.inputs, *site.attrs)])

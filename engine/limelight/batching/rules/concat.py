"""Batching rules of ops that join tensors."""

from __future__ import annotations

from typing import Any

from limelight.batching.rule_table import Site, rule


@rule("concat", "stack")
def joined(site: Site) -> Any:
    (axis,) = site.attrs
    return site.run([site.lead(i) for i in range(len(site.inputs))], axis + 1)


@rule("pack_indices")
def pack_indices(site: Site) -> Any:
    """They broadcast, and stand along a new first axis."""
    rank = max(map(site.rank, range(len(site.inputs))))
    packed = site.run([site.wider(i, rank) for i in range(len(site.inputs))])
    return packed.transpose((1, 0, *range(2, packed.ndim)))


@rule("softmax_cross_entropy", "softmax_residual")
def by_classes(site: Site) -> Any:
    return site.run([site.lead(i) for i in range(len(site.inputs))], *site.attrs)

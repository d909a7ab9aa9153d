"""Batching rules of ops that join tensors."""

from __future__ import annotations

from typing import Any

from limelight.batching.rule_table import Site, kind


@kind("join")
def join(site: Site) -> Any:
    (axis,) = site.attrs
    if not 0 <= axis <= site.rank(0):
        return NotImplemented  # the op alone says what is wrong
    return site.run([site.lead(i) for i in range(len(site.inputs))], axis + 1)


@kind("pack_indices")
def pack_indices(site: Site) -> Any:
    """They broadcast, and stand along a new first axis."""
    rank = max(map(site.rank, range(len(site.inputs))))
    packed = site.run([site.wider(i, rank) for i in range(len(site.inputs))])
    return packed.transpose((1, 0, *range(2, packed.ndim)))

"""Batching rules of linear algebra: stacks of matrices take another leading axis as they are."""

from __future__ import annotations

from typing import Any

from limelight.batching.rule_table import Site, kind


@kind("matrix_stacks")
def matrix_stacks(site: Site) -> Any:
    """Axes count from the end, and those in front broadcast."""
    rank = max(site.rank(0), site.rank(1))
    return site.run([site.wider(0, rank), site.wider(1, rank)], *site.attrs)


@kind("join_last_axis")
def join_last_axis(site: Site) -> Any:
    """Joined along the last axis, so both need the examples."""
    return NotImplemented if site.rank(0) != site.rank(1) else site.run([site.lead(0), site.lead(1)])


@kind("pinv")
def pinv(site: Site) -> Any:
    """One tolerance for all matrices, or one for each of a stack."""
    return NotImplemented if site.mask[1] else site.run(site.inputs, *site.attrs)

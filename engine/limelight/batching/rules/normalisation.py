"""Batching rules of batch normalisation: each example is a batch of its own, with its own moments."""

from __future__ import annotations

from typing import Any

from limelight.batching.rule_table import Site, kind
from limelight.core import dispatch
from limelight.core.op import get


def _inner(site: Site, i: int) -> tuple[int, ...]:
    """The axes of input `i`, with the examples in front, over which moments are taken."""
    return tuple(range(1, site.rank(i)))


@kind("batch_norm_training")
def batch_norm_training(site: Site) -> Any:
    rank, axes = site.rank(0), _inner(site, 0)
    scale, offset = site.wider(1, rank), site.wider(2, rank)
    scores, mean, variance = dispatch.apply(get("standardise"), (site.lead(0),), (axes, *site.attrs))
    return scores * scale + offset, mean.squeeze(axes), variance.squeeze(axes)


@kind("batch_norm_gradient")
def batch_norm_gradient(site: Site) -> Any:
    (epsilon,), axes, rank = site.attrs, _inner(site, 1), site.rank(1)
    h, x = site.lead(0), site.lead(1)
    mean, variance, scale = [site.wider(i, rank) for i in (2, 3, 4)]
    root = 1.0 / (variance + epsilon).sqrt()
    scores = (x - mean) * root
    product = h * scores
    inner = h - (scores * product.mean(axes, True) + h.mean(axes, True))
    return inner * (scale * root), product.sum(axes), h.sum(axes)

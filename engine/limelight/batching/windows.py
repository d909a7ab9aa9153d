"""Batching rules of convolutions and pooling, whose operands have an axis of examples already: two become one."""

from __future__ import annotations

from typing import Any

from limelight.batching.rules import Site, rule
from limelight.tensor import Tensor


def _merged(x: Tensor) -> Tensor:
    """(n, b, ...) -> (n * b, ...)."""
    return x.reshape((-1, *x.shape[2:]))


def _apart(x: Tensor, size: int) -> Tensor:
    """(n * b, ...) -> (n, b, ...)."""
    return x.reshape((size, -1, *x.shape[1:]))


def _known(site: Site) -> bool:
    """Whether sizes are there to be multiplied: they are but for an unknown number of examples, or none at all."""
    return isinstance(site.size, int) and all(None not in x.shape and 0 not in x.shape for x in site.inputs)


def _for_all(site: Site, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    return (None if shape[0] is None else site.size * shape[0], *shape[1:])


@rule("max_pool", "avg_pool", "max_pool_gradient", "max_pool_pick")
def pooled(site: Site) -> Any:
    if not _known(site):
        return NotImplemented
    given = [_merged(site.lead(i)) for i in range(len(site.inputs))]
    return _apart(site.run(given, *site.attrs), site.size)


@rule("avg_pool_gradient")
def spread(site: Site) -> Any:
    *rest, shape = site.attrs
    if not _known(site):
        return NotImplemented
    return _apart(site.run([_merged(site.lead(0))], *rest, _for_all(site, shape)), site.size)


@rule("conv", "conv_transpose")
def convolved(site: Site) -> Any:
    """With filters for all examples. Where each has its own they are convolved one by one."""
    x, filters = site.inputs
    if site.mask[1] or not _known(site):
        return NotImplemented
    attrs = list(site.attrs)
    if site.op == "conv_transpose":
        attrs[-1] = _for_all(site, attrs[-1])
    return _apart(site.run((_merged(x), filters), *attrs), site.size)

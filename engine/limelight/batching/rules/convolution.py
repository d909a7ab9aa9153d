"""Batching rules of convolutions and pooling, whose operands have an axis of examples already: two become one."""

from __future__ import annotations

from typing import Any

from limelight.batching.rule_table import Site, front, kind
from limelight.core.tensor import Tensor


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


@kind("pooling")
def pooling(site: Site) -> Any:
    if not _known(site):
        return NotImplemented
    operands = [_merged(site.lead(i)) for i in range(len(site.inputs))]
    return _apart(site.run(operands, *site.attrs), site.size)


@kind("pooling_gradient")
def pooling_gradient(site: Site) -> Any:
    *rest, shape = site.attrs
    if not _known(site):
        return NotImplemented
    return _apart(site.run([_merged(site.lead(0))], *rest, _for_all(site, shape)), site.size)


@kind("convolution")
def convolution(site: Site) -> Any:
    """With filters for all examples; or, where each has its own, with each example as a group of channels."""
    if not _known(site):
        return NotImplemented
    stride, padding, dilation, groups, *shape = site.attrs
    if not site.mask[1]:
        operands = [_merged(site.inputs[0]), site.inputs[1]]
        return _apart(
            site.run(operands, stride, padding, dilation, groups, *[_for_all(site, n) for n in shape]), site.size
        )
    operands = [_beside(site.lead(0)), _beside(site.lead(1))]
    wider = [(*n[:-1], None if n[-1] is None else site.size * n[-1]) for n in shape]
    return _one_by_one(site.run(operands, stride, padding, dilation, site.size * groups, *wider), site.size)


@kind("filter_gradient")
def filter_gradient(site: Site) -> Any:
    """One gradient for each example, which is a group of channels."""
    if not _known(site):
        return NotImplemented
    stride, padding, dilation, groups, shape = site.attrs
    operands = [_beside(site.lead(0)), _beside(site.lead(1))]
    wider = (*shape[:-1], None if shape[-1] is None else site.size * shape[-1])
    return _one_by_one(site.run(operands, stride, padding, dilation, site.size * groups, wider), site.size)


def _beside(x: Tensor) -> Tensor:
    """(n, ..., channels) -> (..., n * channels)."""
    moved = x.transpose((*range(1, x.ndim - 1), 0, x.ndim - 1))
    return moved.reshape((*moved.shape[:-2], -1))


def _one_by_one(x: Tensor, size: int) -> Tensor:
    """(..., n * channels) -> (n, ..., channels)."""
    apart = x.reshape((*x.shape[:-1], size, -1))
    return front(apart, apart.ndim - 2)

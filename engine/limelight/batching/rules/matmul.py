"""Batching rules of matrix products."""

from __future__ import annotations

from math import prod
from typing import Any

from limelight.batching.rule_table import Site, kind
from limelight.core import shapes
from limelight.core.tensor import Tensor


@kind("matmul")
def matmul(site: Site) -> Any:
    """Examples that are vectors become matrices with one row or column, unless one product of matrices does it all."""
    x, y = site.inputs
    rows, columns = site.rank(0), site.rank(1)
    if not site.mask[1] and columns <= 2:
        return x @ y
    if not site.mask[0] and rows == 2 and columns == 1:
        return y @ x.mT
    rank = max(rows, columns, 2)
    left = _matrices(x, site.mask[0], rows, rank, -2)
    right = _matrices(y, site.mask[1], columns, rank, -1)
    product = left @ right
    if rows == 1:
        product = product.squeeze(-2)
    return product.squeeze(-1) if columns == 1 else product


def _matrices(x: Tensor, batched: bool, rank: int, wanted: int, place: int) -> Tensor:
    """`x` with one example's axes lined up: a vector's missing one at `place`, others before its matrices."""
    if rank == 1:
        x, rank = x.expand_dims(place), 2
    return x.expand_dims(tuple(range(1, 1 + wanted - rank))) if batched and rank < wanted else x


@kind("tensordot")
def tensordot(site: Site) -> Any:
    x, y = site.inputs
    ((mine, its),) = site.attrs
    if not site.mask[1]:
        return site.run((x, y), (tuple([a + 1 for a in mine]), its))
    if not site.mask[0]:
        product = site.run((x, y), (mine, tuple([a + 1 for a in its])))
        at = x.ndim - len(mine)
        return product.transpose((at, *[i for i in range(product.ndim) if i != at]))
    return _both(site, mine, its)


def _both(site: Site, mine: tuple[int, ...], its: tuple[int, ...]) -> Any:
    """One product of matrices for each example."""
    x, y = site.inputs
    if None in (*x.shape, *y.shape):
        return NotImplemented
    free = [i + 1 for i in range(site.rank(0)) if i not in mine]
    its_free = [i + 1 for i in range(site.rank(1)) if i not in its]
    left = x.transpose((0, *free, *[a + 1 for a in mine]))
    right = y.transpose((0, *[a + 1 for a in its], *its_free))
    kept, others = _sizes(x, free), _sizes(y, its_free)
    inner = prod([x.shape[a + 1] for a in mine])
    n = x.shape[0]
    product = left.reshape((n, prod(kept), inner)) @ right.reshape((n, inner, prod(others)))
    return product.reshape((n, *kept, *others))


def _sizes(x: Tensor, axes: list[int]) -> list[Any]:
    shape: shapes.Shape = x.shape
    return [shape[i] for i in axes]

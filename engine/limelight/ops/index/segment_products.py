"""Products over segments: `segment_prod`.

Their gradients are products of the other factors, by doubling, not by division: so they are right at zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import known
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.ops._kernel_parts import stable_argsort
from limelight.ops.index._segment_rules import segment_infer, segment_kernel, segment_operands

__all__ = ["segment_prod"]

# segment_prod


_segment_places = entry_point(defop(
    "segment_places",
    inputs="data:any ids:integer",
    infer=lambda data, ids: known((data.size,), dtypes.int64),
    kernel=lambda xp, data, ids: _places_kernel(xp, data, ids),
    why_no_gradient="its result is an index",
    batching="loop",
))  # fmt: skip


def _places_kernel(xp: Any, data: Any, ids: Any) -> Any:
    """An id for each element rather than for each row: a vector."""
    width = data.size // ids.size if ids.size else 0
    return (ids.astype(np.int64).reshape(-1, 1) * width + xp.arange(width)).reshape(-1)


def _prod_gradient(g: Tensor, data: Tensor, ids: Tensor) -> Tensor:
    if ids.ndim == 1:
        return g[ids] * _products_of_others(ids, data.conj())
    return g[ids] * _products_of_others(_segment_places((data, ids)), data.conj().reshape((-1,))).reshape(data.sizes())


_segment_prod = entry_point(defop(
    "segment_prod",
    inputs="data ids:integer",
    attrs="num",
    infer=segment_infer("segment_prod"),
    kernel=segment_kernel("segment_prod", "multiply", "multiply"),
    accepts="numeric",
    vjp={"data": _prod_gradient},
    maths={"data": "x̄ᵢ = ȳ[ids] Π of the others*"},
    batching="segments",
))  # fmt: skip


def segment_prod(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None) -> Tensor:
    """The product of the rows of `data` that share an id, element by element; 1 where there are none. Numeric.

    The gradient is right where elements are zero, too, to any order. Ids and errors are as for `segment_sum`.

    >>> import limelight as ll
    >>> ll.segment_prod(ll.constant([3.0, 2.0, 4.0]), ll.constant([1, 0, 1])).tolist()
    [2.0, 12.0]
    """
    return _segment_prod(*segment_operands("segment_prod", data, segment_ids, num_segments))


# the product of the others in a segment, without a division

_neighbour: EntryPoint = entry_point(defop(
    "segment_neighbour",
    inputs="ids",
    attrs="by",
    infer=lambda ids, by: known(ids.shape, dtypes.int64),
    kernel=lambda xp, ids, by: _neighbour_kernel(xp, ids, by),
    accepts="integer",
    why_no_gradient="its result is an index",
    batching="loop",
))  # fmt: skip


def _neighbour_kernel(xp: Any, ids: Any, by: int) -> Any:
    """For each place of the vector `ids` the one that is `by` further on in its segment; -1 where there is none."""
    n, order = len(ids), stable_argsort(xp, ids)
    ahead = xp.arange(n) + by
    held = (ahead >= 0) & (ahead < n)
    ahead = xp.clip(ahead, 0, max(n - 1, 0))
    alike = held & (ids[order[ahead]] == ids[order])
    return xp.where(alike, order[ahead], -1)[stable_argsort(xp, order)].astype(np.int64)


_UNKNOWN = 1 << 31
"""The rows that there may be where their number is unknown."""


@method("_segment_others")
def _products_of_others(ids: Tensor, x: Tensor) -> Tensor:
    """For each row of `x` the product of all others with the same id; `ids` is a vector.

    Products of 1, 2, 4, ... rows before, and of as many after, are combined: 2 log n multiplications of everything.
    """
    n = _UNKNOWN if ids.shape[0] is None else ids.shape[0]
    before, after = (_product_to_one_side(ids, x, sign, n) for sign in (-1, 1))
    return before * after


def _product_to_one_side(ids: Tensor, x: Tensor, sign: int, n: int) -> Tensor:
    """The product of all rows before (or after) each one in its segment."""
    product, by = _neighbours(ids, x, sign), 1
    while by < n - 1:
        product = product * _neighbours(ids, product, sign * by)
        by *= 2
    return product


def _neighbours(ids: Tensor, x: Tensor, by: int) -> Tensor:
    """For each row the one `by` further on in its segment, 1 where there is none."""
    places = _neighbour(ids, by)
    exists = (places >= 0).reshape((-1,) + (1,) * (x.ndim - 1))
    return exists.where(x[places], 1)

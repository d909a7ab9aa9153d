"""Tensors as sets: their distinct values (`unique_all` and the like), and `isin`.

One op returns places and counts; the values are picked with these, and so have gradients. In a trace the number of
distinct values is an unknown size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import entry_point, entry_point_of_many
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Tensor
    inverse_indices: Tensor


# distinct: places and counts, from which everything else follows


def _distinct_infer(x: TensorSpec) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    return known((None,), dtypes.int64), known(x.shape, dtypes.int64), known((None,), dtypes.int64)


def _distinct_kernel(xp: Any, x: Any) -> tuple[Any, Any, Any]:
    """NaNs differ from each other; -0.0 and 0.0 are equal, the first one stands for both."""
    if x.dtype == dtypes.bfloat16:
        x = x.astype(dtypes.float32)
    distinct = xp.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    _, first, inverse, counts = distinct
    return first.astype(np.int64), inverse.reshape(x.shape).astype(np.int64), counts.astype(np.int64)


_distinct: Callable[..., tuple[Tensor, ...]] = entry_point_of_many(defop(
    "distinct",
    inputs="x",
    infer=_distinct_infer,
    kernel=_distinct_kernel,
    multiple=True,
    why_no_gradient="its results are indices and counts",
    batching="loop",
))  # fmt: skip


def unique_all(x: TensorLike, /) -> UniqueAll:
    """The distinct values of `x`, sorted, with where each stands first, which of them each element is, and how often.

    A named tuple of `values` (a vector; its gradient goes to the first of equal elements), `indices` (into the
    flattened `x`), `inverse_indices` (of the shape of `x`) and `counts`, all of these int64. Each NaN is a value of its
    own.

    >>> import limelight as ll
    >>> found = ll.unique_all(ll.constant([3, 1, 3]))
    >>> found.values.tolist(), found.indices.tolist(), found.inverse_indices.tolist(), found.counts.tolist()
    ([1, 3], [1, 0], [1, 0, 1], [1, 2])
    """
    x = as_tensor(x)
    indices, inverse, counts = _distinct((x,))
    return UniqueAll(x.reshape(-1)[indices], indices, inverse, counts)


def unique_counts(x: TensorLike, /) -> UniqueCounts:
    """The distinct values of `x`, sorted, and how often each occurs: see `unique_all`.

    >>> import limelight as ll
    >>> ll.unique_counts(ll.constant([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    distinct = unique_all(x)
    return UniqueCounts(distinct.values, distinct.counts)


def unique_inverse(x: TensorLike, /) -> UniqueInverse:
    """The distinct values of `x`, sorted, and which of them each element is: see `unique_all`.

    >>> import limelight as ll
    >>> ll.unique_inverse(ll.constant([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    distinct = unique_all(x)
    return UniqueInverse(distinct.values, distinct.inverse_indices)


def unique_values(x: TensorLike, /) -> Tensor:
    """The distinct values of `x`, sorted, as a vector: see `unique_all`.

    >>> import limelight as ll
    >>> ll.unique_values(ll.constant([3, 1, 3])).tolist()
    [1, 3]
    """
    return unique_all(x).values


# isin

_isin = entry_point(defop(
    "isin",
    inputs="x values",
    attrs="invert",
    infer=lambda x, values, invert: known(x.shape, dtypes.bool_),
    kernel=lambda xp, x, values, invert: xp.isin(x, values, invert=invert),
    why_no_gradient="its result is boolean",
    batching="isin",
))  # fmt: skip


def isin(x1: TensorLike, x2: TensorLike, /, *, invert: bool = False) -> Tensor:
    """Whether each element of `x1` is among those of `x2`; with `invert`, whether it is not. NaN equals nothing.

    Operands of one kind of dtype; one of them may be a Python number.

    >>> import limelight as ll
    >>> ll.isin(ll.constant([1, 2, 3]), ll.constant([2, 5])).tolist()
    [False, True, False]
    """
    if type(invert) is not bool:
        invert = shapes.flag("isin", "invert", invert)
    return _isin((x1, x2), invert)

"""Reductions over rows that share an id: `segment_sum`, `segment_mean`, `segment_max`, `segment_min`."""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.spec import known
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops.index._scatter_add import add_rows
from limelight.ops.index._segment_rules import rows_and_ids, segment_infer, segment_kernel, segment_operands

__all__ = ["segment_max", "segment_mean", "segment_min", "segment_sum"]

# segment_sum


def _sum_kernel(xp: Any, data: Any, ids: Any, num: int | None) -> Any:
    rows, places, size = rows_and_ids("segment_sum", data, ids, num)
    return add_rows(xp, size, places, rows)


_segment_sum = entry_point(defop(
    "segment_sum",
    inputs="data ids:integer",
    attrs="num",
    infer=segment_infer("segment_sum"),
    kernel=_sum_kernel,
    accepts="numeric",
    vjp={"data": lambda g, ids: g[ids]},
    linear="data",
    maths={"data": "x̄ = ȳ[ids]"},
    batching="segments",
))  # fmt: skip


def segment_sum(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None) -> Tensor:
    """The sum of the rows of `data` that share an id, a row for each id from 0 on; 0 where there are none. Numeric.

    `segment_ids`: integers of the shape of the first axes of `data`, in any order. `num_segments`: how many rows the
    result has; without it one more than the largest id, which in a staged function is a size unknown until it runs.
    Raises ShapeError when the shapes do not fit, OutOfBoundsError for an id below 0 or not below `num_segments`
    (JAX drops such rows, TensorFlow those below 0).

    >>> import limelight as ll
    >>> ll.segment_sum(ll.constant([1.0, 2.0, 4.0]), ll.constant([1, 0, 1])).tolist()
    [2.0, 5.0]
    """
    return _segment_sum(*segment_operands("segment_sum", data, segment_ids, num_segments))


# segment_mean


def segment_mean(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None) -> Tensor:
    """The mean of the rows of `data` that share an id; 0 where there are none. Floating or complex.

    Ids and errors are as for `segment_sum`.

    >>> import limelight as ll
    >>> ll.segment_mean(ll.constant([1.0, 2.0, 4.0]), ll.constant([1, 0, 1]), 3).tolist()
    [2.0, 2.5, 0.0]
    """
    (data, ids), num = segment_operands("segment_mean", data, segment_ids, num_segments)
    segment_infer("segment_mean")(data.spec, ids.spec, num)
    counts = _segment_count(ids, num).astype(data.dtype)
    return _segment_sum((data, ids), num) / counts.reshape((-1,) + (1,) * (data.ndim - ids.ndim))


_segment_count = entry_point(defop(
    "segment_count",
    inputs="ids",
    attrs="num",
    infer=lambda ids, num: known((num,), dtypes.int64),
    kernel=lambda xp, ids, num: _count_kernel(xp, ids, num),
    accepts="integer",
    why_no_gradient="it counts",
    batching="loop",
))  # fmt: skip


def _count_kernel(xp: Any, ids: Any, num: int | None) -> Any:
    """How many rows each segment has, and 1 for those that have none: what their sum is divided by."""
    _, places, size = rows_and_ids("segment_mean", ids, ids, num)
    return xp.maximum(xp.bincount(places.astype(np.int64), minlength=size), 1)


# segment_max and segment_min


def _extreme_gradient(g: Tensor, data: Tensor, ids: Tensor, out: Tensor, num: int | None) -> Tensor:
    """The gradient where the extreme was taken; equal ones share it."""
    taken = (data == out[ids]).astype(data.dtype)
    return (g / _segment_sum((taken, ids), num))[ids] * taken


_segment_max = entry_point(defop(
    "segment_max",
    inputs="data ids:integer",
    attrs="num",
    infer=segment_infer("segment_max"),
    kernel=segment_kernel("segment_max", "maximum", "max"),
    accepts="real",
    vjp={"data": _extreme_gradient},
    maths={"data": "x̄ = ȳ[ids] where x is the largest"},
    batching="segments",
))  # fmt: skip


def segment_max(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None) -> Tensor:
    """The largest of the rows of `data` that share an id, element by element; real.

    -inf, or the least integer, where there are none. Equal ones share the gradient. Ids and errors are as for
    `segment_sum`.

    >>> import limelight as ll
    >>> ll.segment_max(ll.constant([1.0, 2.0, 4.0]), ll.constant([1, 0, 1])).tolist()
    [2.0, 4.0]
    """
    return _segment_max(*segment_operands("segment_max", data, segment_ids, num_segments))


_segment_min = entry_point(defop(
    "segment_min",
    inputs="data ids:integer",
    attrs="num",
    infer=segment_infer("segment_min"),
    kernel=segment_kernel("segment_min", "minimum", "min"),
    accepts="real",
    vjp={"data": _extreme_gradient},
    maths={"data": "x̄ = ȳ[ids] where x is the smallest"},
    batching="segments",
))  # fmt: skip


def segment_min(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None) -> Tensor:
    """The smallest of the rows of `data` that share an id, element by element; real.

    inf, or the largest integer, where there are none. Equal ones share the gradient. Ids and errors are as for
    `segment_sum`.

    >>> import limelight as ll
    >>> ll.segment_min(ll.constant([1.0, 2.0, 4.0]), ll.constant([1, 0, 1])).tolist()
    [2.0, 1.0]
    """
    return _segment_min(*segment_operands("segment_min", data, segment_ids, num_segments))

"""How often integers occur, `bincount`, and how many numbers fall between bounds, `histogram`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.dtypes import DType
from limelight.core.eager import entry_point, entry_point_of_many
from limelight.core.host_kernels import by_host
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._shape_rules import SHORT

__all__ = ["bincount", "histogram"]

# bincount


def _bincount_infer(x: TensorSpec, minlength: int) -> TensorSpec:
    if x.rank != 1:
        raise ShapeError(f"bincount: {x} must be a vector; reshape it to (-1,)")
    return known((minlength if x.shape[0] == 0 else None,), dtypes.int64)


def _bincount_kernel(xp: Any, x: Any, minlength: int) -> Any:
    if x.size and x.min() < 0:
        raise IndexError(f"{x.min()} is below 0: what is counted are the integers 0, 1, ...")
    if (
        x.size and x.dtype == np.uint64 and int(x.max()) >= 2**63
    ):  # as int64 it would be negative, which JAX takes for 0
        raise IndexError(f"{x.max()} is more than there are places for: the counts up to it would not fit in memory")
    return xp.bincount(x.astype(np.int64), minlength=minlength)


_bincount = entry_point(defop(
    "bincount",
    inputs="x",
    attrs="minlength",
    infer=_bincount_infer,
    kernel=_bincount_kernel,
    accepts="integer",
    why_no_gradient="it counts",
    batching="loop",
))  # fmt: skip


def bincount(x: TensorLike, /, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, ... occurs in a vector of integers: int64, up to the largest, at least `minlength` long.

    For sums of weights see `segment_sum`. Raises ShapeError for other ranks, OutOfBoundsError for negative integers,
    ArgumentError for a negative `minlength`.

    >>> import limelight as ll
    >>> ll.bincount(ll.constant([0, 2, 2]), minlength=4).tolist()
    [1, 0, 2, 0]
    """
    least = shapes.whole("bincount", "minlength", minlength)
    if least < 0:
        raise ArgumentError(f"bincount: minlength must be at least 0, got {minlength}")
    return _bincount(x, least)


# histogram


def _edge_dtype(dtype: DType) -> DType:
    return dtype if dtype == dtypes.float64 else dtypes.float32


def _histogram_infer(x: TensorSpec, bins: Any, limits: Any) -> tuple[TensorSpec, TensorSpec]:
    count = bins if isinstance(bins, int) else len(bins) - 1
    return known((count,), dtypes.int64), known((count + 1,), _edge_dtype(x.dtype))


def _histogram_kernel(xp: Any, x: Any, bins: Any, limits: Any) -> tuple[Any, Any]:
    array = np.asarray(x)
    array = array.astype(np.float32) if array.dtype in SHORT else array
    counts, edges = np.histogram(array, bins if isinstance(bins, int) else np.array(bins), limits)
    return xp.asarray(counts.astype(np.int64)), xp.asarray(edges.astype(_edge_dtype(x.dtype)))


_histogram = entry_point_of_many(defop(
    "histogram",
    inputs="x",
    attrs="bins limits",
    infer=_histogram_infer,
    kernel=_histogram_kernel,
    special={"cupy": by_host(_histogram_kernel, "histogram on the host, whose rounding at the edges is NumPy's")},
    accepts="real",
    why_no_gradient="it counts",
    multiple=True,
    batching="loop",
))  # fmt: skip


def histogram(
    x: TensorLike, /, bins: int | Sequence[float] = 10, range: tuple[float, float] | None = None
) -> tuple[Tensor, Tensor]:
    """How many elements of `x` fall into each bin, int64, and the bins' edges, one more. Real.

    `bins`: how many of equal width lie in `range` (by default from the least element to the largest), or their edges
    in ascending order. A bin has its lower edge, the last one both. Raises ArgumentError for no bins, edges out of
    order, an empty range; RunError for NaN or infinity where there is no `range`.

    >>> import limelight as ll
    >>> counts, edges = ll.histogram(ll.constant([0.0, 0.1, 0.9]), bins=2, range=(0.0, 1.0))
    >>> counts.tolist(), edges.tolist()
    ([2, 1], [0.0, 0.5, 1.0])
    """
    if isinstance(bins, (list, tuple)) or getattr(bins, "ndim", False):
        edges = tuple([float(edge) for edge in bins])  # type: ignore[union-attr]  # several, as asked above
        if len(edges) < 2 or any(a > b for a, b in pairwise(edges)):
            raise ArgumentError(f"histogram: bins must be at least two edges in ascending order, got {bins!r}")
        return _histogram((as_tensor(x),), edges, None)  # type: ignore[return-value]  # one tensor
    count = shapes.whole("histogram", "bins", bins)
    if count < 1:
        raise ArgumentError(f"histogram: bins must be at least 1, got {bins}")
    limits = None if range is None else (float(range[0]), float(range[1]))
    if limits is not None and not limits[0] <= limits[1]:
        raise ArgumentError(f"histogram: range must be (least, largest), got {range}")
    return _histogram((as_tensor(x),), count, limits)  # type: ignore[return-value]  # one tensor

"""The largest elements along an axis, and where they are: `top_k`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._kernel_parts import stable_argsort
from limelight.ops._shape_rules import SHORT

__all__ = ["top_k"]

_MANY: Final = 64
"""From this many elements on, and where few of them are wanted, finding the k-th first is quicker than sorting all."""


def _check(x: Any, size: int | None, k: int, axis: int) -> None:
    if size is not None and k > size:
        raise ShapeError(f"top_k: k={k} of {x}, which has {size} elements along axis {axis}; k may be {size} at most")


def _top_k_infer(x: TensorSpec, k: int, axis: int) -> TensorSpec:
    _check(x, x.shape[axis], k, axis)
    return known((*x.shape[:axis], k, *x.shape[axis + 1 :]), dtypes.int64)


def _top_k_kernel(xp: Any, x: Any, k: int, axis: int) -> Any:
    _check(f"a tensor of shape {shapes.show(x.shape)}", x.shape[axis], k, axis)
    x = x.astype(dtypes.float32) if x.dtype in SHORT else x
    rows = x if axis == x.ndim - 1 else x.swapaxes(axis, -1)
    if xp is np and rows.shape[-1] >= _MANY and 0 < 8 * k <= rows.shape[-1]:
        places = _few_of_many(rows, k)
    else:
        places = _descending(xp, rows)[..., :k].astype(dtypes.int64, copy=False)
    return places if axis == x.ndim - 1 else places.swapaxes(axis, -1)


def _descending(xp: Any, rows: Any) -> Any:
    """The places that sort from the largest down, equal ones from the first on: those of reversed rows, reversed."""
    return (rows.shape[-1] - 1 - stable_argsort(xp, rows[..., ::-1]))[..., ::-1]


def _few_of_many(rows: Any, k: int) -> Any:
    """All that are larger than the k-th, and as many equal to it, from the first on, as are missing; then sorted."""
    kth = np.partition(rows, rows.shape[-1] - k, axis=-1)[..., -k, None]
    larger, equal = rows > kth, rows == kth
    if rows.dtype.kind == "f":  # NaN counts as the largest
        nan, kth_nan = np.isnan(rows), np.isnan(kth)
        larger, equal = larger | (nan & ~kth_nan), equal | (nan & kth_nan)
    missing = k - larger.sum(-1, keepdims=True)
    chosen = larger | (equal & (equal.cumsum(-1) <= missing))
    places = np.nonzero(chosen)[-1].reshape(*rows.shape[:-1], k)
    order = _descending(np, np.take_along_axis(rows, places, -1))
    return np.take_along_axis(places, order, -1)


_top_places = entry_point(defop(
    "top_k_places",
    inputs="x",
    attrs="k axis",
    infer=_top_k_infer,
    kernel=_top_k_kernel,
    accepts="real",
    why_no_gradient="its result is an index",
    batching="along_axis",
))  # fmt: skip


def top_k(x: TensorLike, k: int, /, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The `k` largest elements along `axis`, from the largest down, and their places (int64); real.

    Of equal ones the first come first; NaN counts as the largest. The values have a gradient. Raises ShapeError when
    there are fewer than `k`, ArgumentError for a negative `k`.

    >>> import limelight as ll
    >>> values, places = ll.top_k(ll.constant([1.0, 4.0, 2.0, 4.0]), 3)
    >>> values.tolist(), places.tolist()
    ([4.0, 4.0, 2.0], [1, 3, 2])
    """
    x = as_tensor(x)
    count = shapes.whole("top_k", "k", k)
    if count < 0:
        raise ArgumentError(f"top_k: k must not be negative, got {k}")
    along = shapes.one_axis("top_k", x.ndim, axis)
    places = _top_places(x, count, along)
    return x.take_along_axis(places, axis=along), places

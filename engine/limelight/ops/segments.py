"""Reductions over segments: rows that share an id are added up, multiplied, averaged, or compared."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from limelight import dtypes
from limelight.eager import Entry, entry
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._infer import SHORT
from limelight.ops._scattered import add_rows, checked_places
from limelight.registry import defop
from limelight.spec import TensorSpec, known
from limelight.tensor import Tensor, TensorLike, as_tensor, method

__all__ = ["segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum"]


def _infer(name: str) -> Any:
    def infer(data: TensorSpec, ids: TensorSpec, num: int | None) -> TensorSpec:
        lead = data.shape[: ids.rank]
        fits = ids.rank <= data.rank and all(None in (m, n) or m == n for m, n in zip(lead, ids.shape, strict=True))
        if not ids.rank or not fits:
            raise ShapeError(
                f"{name}: segment ids {ids} must have the shape of the first axes of data {data}: an id for each row"
            )
        return known((num, *data.shape[ids.rank :]), data.dtype)

    return infer


def _parts(name: str, data: Any, ids: Any, num: int | None) -> tuple[Any, Any, int]:
    """The data as rows, their ids as a vector, and how many segments there are.

    Raises ValueError where these do not fit, which the op's shape rule then says better.
    """
    if data.shape[: ids.ndim] != ids.shape or not ids.ndim:
        raise ValueError(f"{name}: segment ids of shape {ids.shape} do not fit data of shape {data.shape}")
    if num is None:
        num = int(ids.max()) + 1 if ids.size else 0
    ids = checked_places(ids, num, 0, from_end=False)
    if ids.ndim == 1:
        return data, ids, num
    return data.reshape(ids.size, *data.shape[ids.ndim :]), ids.reshape(-1), num


def _reduced(name: str, ufunc: str, method: str) -> Any:
    """A kernel that starts from the neutral element; 16-bit floats are reduced in float32."""

    def kernel(xp: Any, data: Any, ids: Any, num: int | None) -> Any:
        rows, places, size = _parts(name, data, ids, num)
        wide = rows.astype(dtypes.float32) if rows.dtype in SHORT else rows
        neutral = _neutral(wide.dtype, method)
        if xp is np and wide.ndim > 1 and wide.size >= _MANY:
            return _sorted_first(getattr(np, ufunc), wide, places, size, neutral).astype(data.dtype)
        out = xp.full((size, *rows.shape[1:]), neutral, wide.dtype)
        if hasattr(out, "at"):
            return getattr(out.at[places], method)(wide).astype(data.dtype)
        getattr(xp, ufunc).at(out, places, wide)
        return out.astype(data.dtype, copy=False)

    return kernel


_MANY: Final = 4096
"""Elements of rows from which on sorting them first is quicker than NumPy's way of going through single elements."""


def _sorted_first(ufunc: Any, rows: Any, places: Any, size: int, neutral: Any) -> Any:
    """Rows brought together by segment, and reduced where each begins: a tenth of the time of `ufunc.at`."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    out = np.full((size, *rows.shape[1:]), neutral, rows.dtype)
    out[ordered[starts]] = ufunc.reduceat(rows[order], starts, axis=0)
    return out


def _neutral(dtype: Any, method: str) -> Any:
    if method == "multiply":
        return 1
    if dtypes.kind(dtype) != "integer":
        return -np.inf if method == "max" else np.inf
    limits = np.iinfo(dtype)
    return limits.min if method == "max" else limits.max


def _sum_kernel(xp: Any, data: Any, ids: Any, num: int | None) -> Any:
    rows, places, size = _parts("segment_sum", data, ids, num)
    return add_rows(xp, size, places, rows)


def _given(name: str, data: TensorLike, segment_ids: TensorLike, num_segments: int | None) -> tuple[Any, ...]:
    data, ids = as_tensor(data), as_tensor(segment_ids)
    num = None if num_segments is None else num_segments.__index__()
    if num is not None and num < 0:
        raise ArgumentError(f"{name}: num_segments must not be negative, got {num}")
    return (data, ids), num


# segment_sum

_segment_sum = entry(defop(
    "segment_sum",
    inputs="data ids:integer",
    attrs="num",
    infer=_infer("segment_sum"),
    kernel=_sum_kernel,
    accepts="numeric",
    vjp={"data": lambda g, ids: g[ids]},
    linear="data",
    maths={"data": "x̄ = ȳ[ids]"},
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
    return _segment_sum(*_given("segment_sum", data, segment_ids, num_segments))


# segment_mean


def segment_mean(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None) -> Tensor:
    """The mean of the rows of `data` that share an id; 0 where there are none. Floating or complex.

    Ids and errors are as for `segment_sum`.

    >>> import limelight as ll
    >>> ll.segment_mean(ll.constant([1.0, 2.0, 4.0]), ll.constant([1, 0, 1]), 3).tolist()
    [2.0, 2.5, 0.0]
    """
    (data, ids), num = _given("segment_mean", data, segment_ids, num_segments)
    _infer("segment_mean")(data.spec, ids.spec, num)
    counts = _segment_count(ids, num).astype(data.dtype)
    return _segment_sum((data, ids), num) / counts.reshape((-1,) + (1,) * (data.ndim - ids.ndim))


_segment_count = entry(defop(
    "segment_count",
    inputs="ids",
    attrs="num",
    infer=lambda ids, num: known((num,), dtypes.int64),
    kernel=lambda xp, ids, num: _count_kernel(xp, ids, num),
    accepts="integer",
    why_no_gradient="it counts",
))  # fmt: skip


def _count_kernel(xp: Any, ids: Any, num: int | None) -> Any:
    """How many rows each segment has, and 1 for those that have none: what their sum is divided by."""
    _, places, size = _parts("segment_mean", ids, ids, num)
    return xp.maximum(xp.bincount(places.astype(np.int64), minlength=size), 1)


# segment_max and segment_min


def _shared(g: Tensor, data: Tensor, ids: Tensor, out: Tensor, num: int | None) -> Tensor:
    """The gradient where the extreme was taken; equal ones share it."""
    taken = (data == out[ids]).astype(data.dtype)
    return (g / _segment_sum((taken, ids), num))[ids] * taken


_segment_max = entry(defop(
    "segment_max",
    inputs="data ids:integer",
    attrs="num",
    infer=_infer("segment_max"),
    kernel=_reduced("segment_max", "maximum", "max"),
    accepts="real",
    vjp={"data": _shared},
    maths={"data": "x̄ = ȳ[ids] where x is the largest"},
))  # fmt: skip


def segment_max(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None) -> Tensor:
    """The largest of the rows of `data` that share an id, element by element; real.

    -inf, or the least integer, where there are none. Equal ones share the gradient. Ids and errors are as for
    `segment_sum`.

    >>> import limelight as ll
    >>> ll.segment_max(ll.constant([1.0, 2.0, 4.0]), ll.constant([1, 0, 1])).tolist()
    [2.0, 4.0]
    """
    return _segment_max(*_given("segment_max", data, segment_ids, num_segments))


_segment_min = entry(defop(
    "segment_min",
    inputs="data ids:integer",
    attrs="num",
    infer=_infer("segment_min"),
    kernel=_reduced("segment_min", "minimum", "min"),
    accepts="real",
    vjp={"data": _shared},
    maths={"data": "x̄ = ȳ[ids] where x is the smallest"},
))  # fmt: skip


def segment_min(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None) -> Tensor:
    """The smallest of the rows of `data` that share an id, element by element; real.

    inf, or the largest integer, where there are none. Equal ones share the gradient. Ids and errors are as for
    `segment_sum`.

    >>> import limelight as ll
    >>> ll.segment_min(ll.constant([1.0, 2.0, 4.0]), ll.constant([1, 0, 1])).tolist()
    [2.0, 1.0]
    """
    return _segment_min(*_given("segment_min", data, segment_ids, num_segments))


# segment_prod


_segment_places = entry(defop(
    "segment_places",
    inputs="data:any ids:integer",
    infer=lambda data, ids: known((data.size,), dtypes.int64),
    kernel=lambda xp, data, ids: _places_kernel(xp, data, ids),
    why_no_gradient="its result is an index",
))  # fmt: skip


def _places_kernel(xp: Any, data: Any, ids: Any) -> Any:
    """An id for each element rather than for each row: a vector."""
    width = data.size // ids.size if ids.size else 0
    return (ids.astype(np.int64).reshape(-1, 1) * width + xp.arange(width)).reshape(-1)


def _prod_gradient(g: Tensor, data: Tensor, ids: Tensor) -> Tensor:
    if ids.ndim == 1:
        return g[ids] * _others(ids, data.conj())
    return g[ids] * _others(_segment_places((data, ids)), data.conj().reshape((-1,))).reshape(data.sizes())


_segment_prod = entry(defop(
    "segment_prod",
    inputs="data ids:integer",
    attrs="num",
    infer=_infer("segment_prod"),
    kernel=_reduced("segment_prod", "multiply", "multiply"),
    accepts="numeric",
    vjp={"data": _prod_gradient},
    maths={"data": "x̄ᵢ = ȳ[ids] Π of the others*"},
))  # fmt: skip


def segment_prod(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None) -> Tensor:
    """The product of the rows of `data` that share an id, element by element; 1 where there are none. Numeric.

    The gradient is right where elements are zero, too, to any order. Ids and errors are as for `segment_sum`.

    >>> import limelight as ll
    >>> ll.segment_prod(ll.constant([3.0, 2.0, 4.0]), ll.constant([1, 0, 1])).tolist()
    [2.0, 12.0]
    """
    return _segment_prod(*_given("segment_prod", data, segment_ids, num_segments))


# the product of the others in a segment, without a division

_neighbour: Entry = entry(defop(
    "segment_neighbour",
    inputs="ids",
    attrs="by",
    infer=lambda ids, by: known(ids.shape, dtypes.int64),
    kernel=lambda xp, ids, by: _neighbour_kernel(xp, ids, by),
    accepts="integer",
    why_no_gradient="its result is an index",
))  # fmt: skip


def _neighbour_kernel(xp: Any, ids: Any, by: int) -> Any:
    """For each place of the vector `ids` the one that is `by` further on in its segment; -1 where there is none."""
    n, order = len(ids), xp.argsort(ids, stable=True)
    ahead = xp.arange(n) + by
    held = (ahead >= 0) & (ahead < n)
    ahead = xp.clip(ahead, 0, max(n - 1, 0))
    alike = held & (ids[order[ahead]] == ids[order])
    return xp.where(alike, order[ahead], -1)[xp.argsort(order, stable=True)].astype(np.int64)


_UNKNOWN = 1 << 31
"""The rows that there may be where their number is unknown."""


@method("_segment_others")
def _others(ids: Tensor, x: Tensor) -> Tensor:
    """For each row of `x` the product of all others with the same id; `ids` is a vector.

    Products of 1, 2, 4, ... rows before, and of as many after, are combined: 2 log n multiplications of everything.
    """
    n = _UNKNOWN if ids.shape[0] is None else ids.shape[0]
    before, after = (_run(ids, x, sign, n) for sign in (-1, 1))
    return before * after


def _run(ids: Tensor, x: Tensor, sign: int, n: int) -> Tensor:
    """The product of all rows before (or after) each one in its segment."""
    product, by = _moved(ids, x, sign), 1
    while by < n - 1:
        product = product * _moved(ids, product, sign * by)
        by *= 2
    return product


def _moved(ids: Tensor, x: Tensor, by: int) -> Tensor:
    """For each row the one `by` further on in its segment, 1 where there is none."""
    places = _neighbour(ids, by)
    exists = (places >= 0).reshape((-1,) + (1,) * (x.ndim - 1))
    return exists.where(x[places], 1)

"""Updates of `x` at an index, on a copy: `index_update`, `index_add`, ..., which `x.at[i].set(v)`, ... call.

Of several updates of one place the last stays, and has the gradient; sums add up; equal extremes share the gradient.
Products pull back through products of the other factors by doubling: 2 log n multiplications, and no division.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from limelight.core import backends, dtypes, shapes
from limelight.core.dispatch import active
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.index_expression import (
    Key,
    array_shape,
    as_numbers,
    basic_shape,
    check_positions,
    filled,
    native,
    signed_places,
)
from limelight.core.op import defop
from limelight.core.repeated_places import change_at, is_parallel, last_named
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, constant, method, wrap
from limelight.errors import DTypeError, ShapeError
from limelight.ops._gradient_terms import zeros
from limelight.ops._shape_rules import SHORT
from limelight.ops.index._scatter_add import add_rows, check_places_of_key

__all__ = ["index_add", "index_max", "index_min", "index_multiply", "index_update"]


# what the ops share: a key whose marks the operand `indices` fills (an empty vector where it has none)


def _part_shape(name: str, x: TensorSpec, indices: TensorSpec, key: Key) -> Shape:
    if "i" not in key:
        return basic_shape(name, x.shape, key)
    return array_shape(name, x.shape, key, indices.shape if key.count("i") == 1 else indices.shape[1:])


def _native_index(indices: Any, key: Key) -> Any:
    if "i" in key:
        return filled(key, (indices,) if key.count("i") == 1 else tuple(indices))
    return filled(key, as_numbers(indices)) if indices.size else native(key)


def _update_infer(name: str) -> Any:
    def infer(x: TensorSpec, updates: TensorSpec, indices: TensorSpec, key: Key) -> TensorSpec:
        part = _part_shape(name, x, indices, key)
        met = shapes.broadcast(name, part, updates.shape)
        if len(met) != len(part) or any(1 in (m,) and n not in (1, None) for m, n in zip(part, met, strict=True)):
            raise ShapeError(
                f"{name}: updates {updates} do not broadcast to the part of {x} that the index names, of shape "
                f"{shapes.show(part)}; reshape them, or sum them to that shape"
            )
        return known(x.shape, x.dtype)

    return infer


def _update_kernel(name: str, how: str, ufunc: str) -> Callable[..., Any]:
    """A kernel that updates a copy of `x`: `how` is the method of arrays with `.at`, `ufunc` what NumPy has for it."""

    def kernel(xp: Any, x: Any, updates: Any, indices: Any, key: Key) -> Any:
        where = _native_index(signed_places(indices) if xp is np and "i" in key else indices, key)
        if hasattr(x, "at"):
            if "i" in key:
                check_places_of_key(x.shape, indices, key)
            else:
                check_positions(x.shape, where)
            return getattr(x.at[where], how)(updates)
        if is_parallel(x):
            return _update_copy_in_parallel(xp, x, where, updates, ufunc, indices, key)
        try:
            return _update_copy(x, where, updates, ufunc, "i" in key)
        except IndexError:
            check_places_of_key(x.shape, indices, key)
            raise
        except OverflowError:  # a uint64 that is too large for NumPy to look for
            check_positions(x.shape, where)
            raise

    return kernel


def _update_copy(x: Any, where: Any, updates: Any, ufunc: str, repeated: bool) -> Any:
    out = np.array(x)
    if not ufunc:
        out[where] = updates
    elif not repeated:
        out[where] = getattr(np, ufunc)(out[where], updates)
    elif ufunc == "add" and len(where) == 1 and updates.ndim > 1 and updates.shape[-1] > 1:
        out += _whole_rows(out, where[0], updates)
    elif x.dtype in SHORT:  # rounded once
        return _update_copy(x.astype(dtypes.float32), where, updates.astype(dtypes.float32), ufunc, True).astype(
            x.dtype
        )
    else:
        getattr(np, ufunc).at(out, where, updates)
    return out


def _update_copy_in_parallel(xp: Any, x: Any, where: Any, updates: Any, ufunc: str, indices: Any, key: Key) -> Any:
    if "i" in key:
        check_places_of_key(x.shape, indices, key)
        out = xp.array(x)
        change_at(xp, ufunc or "set", out, where, updates)
        return out
    check_positions(x.shape, where)
    out = xp.array(x)
    out[where] = getattr(xp, ufunc)(out[where], updates) if ufunc else updates
    return out


def _whole_rows(out: Any, places: Any, updates: Any) -> Any:
    """What to add where the index is an array of rows: the usual case, for which there are faster routes."""
    places = np.arange(len(out))[places]
    rows = np.broadcast_to(updates, (*places.shape, *out.shape[1:]))
    return add_rows(np, len(out), places.reshape(-1), rows.reshape(-1, *out.shape[1:]))


def _part_at(g: Tensor, indices: Tensor, key: Key) -> Tensor:
    part: Tensor = g._at_key(key, indices if "i" in key or indices.shape != (0,) else None)
    return part


# index_update

_last_wins = entry_point(defop(
    "index_wins",
    inputs="x:any indices:integer",
    attrs="key",
    infer=lambda x, indices, key: known(_part_shape("index_wins", x, indices, key), dtypes.bool_),
    kernel=lambda xp, x, indices, key: _last_wins_kernel(xp, x, _native_index(indices, key)),
    why_no_gradient="its result is boolean",
    batching="index_places",
))  # fmt: skip


def _last_wins_kernel(xp: Any, x: Any, where: Any) -> Any:
    """Which of the updates that go to one place stays there: the last."""
    return xp.asarray(last_named(xp if is_parallel(x) else np, x.shape, where))


def _update_gradient(g: Tensor, x: Tensor, indices: Tensor, updates_shape: Any, key: Key) -> Tensor:
    part = _part_at(g, indices, key)
    if "i" in key:
        part = _last_wins((x, indices), key).where(part, zeros(g.dtype, ()))
    return part.sum_to(updates_shape)


_index_update: EntryPoint = entry_point(defop(
    "index_update",
    inputs="x updates indices:integer",
    attrs="key",
    infer=_update_infer("index_update"),
    kernel=_update_kernel("index_update", "set", ""),
    vjp={
        "x": lambda g, indices, key: _index_update((g, zeros(g.dtype, ()), indices), key),
        "updates": _update_gradient,
    },
    maths={"x": "x̄ = ȳ, 0 at the index", "updates": "ū = ȳ[index], 0 for one that another has replaced"},
    batching="index_update",
))  # fmt: skip


def index_update(x: TensorLike, index: Any, updates: TensorLike, /) -> Tensor:
    """`x` with `updates` at `index`: the functional form of `x[index] = updates`. Also `x.at[index].set(updates)`.

    `index` is anything that may stand in `x[...]`; `updates` broadcast to the shape of that part, and are cast to the
    dtype of `x` within its kind. Where a place is named several times the last one stays, and has the gradient. Raises
    ShapeError when `updates` do not fit, OutOfBoundsError for a place that `x` has not (JAX drops such updates).

    >>> import limelight as ll
    >>> ll.index_update(ll.constant([1, 2, 3]), slice(1, None), 0).tolist()
    [1, 0, 0]
    """
    return _run("index_update", _index_update, x, index, updates)


_NONE: Final = np.zeros(0, np.int64)
"""What stands for the arrays of an index that has none."""


@functools.cache
def _no_places(backend: str) -> Any:
    return backends.load(backend).from_numpy(_NONE)


def _run(name: str, run: EntryPoint, x: TensorLike, index: Any, updates: TensorLike) -> Tensor:
    x = as_tensor(x)
    key, indices = x._located(index)
    if not isinstance(updates, Tensor):
        updates = _as_updates(name, x, updates)
    if updates.dtype is not x.dtype:
        if dtypes.kind(updates.dtype) != dtypes.kind(x.dtype):
            raise DTypeError(
                f"{name}: updates {updates.spec} do not mix with {x.spec}; write ll.astype(updates, ll.{x.dtype.name})"
            )
        updates = updates.astype(x.dtype)
    if indices is None:
        indices = constant(_NONE) if active else wrap(_no_places(x._device.backend), x._device)  # there: no copy
    return run((x, updates, indices), key)


def _as_updates(name: str, x: Tensor, updates: Any) -> Tensor:
    """Python scalars take on the dtype of `x` within its kind."""
    if type(updates) in (bool, int, float, complex):
        if not dtypes.fits(updates, x.dtype) or (type(updates) is int and not dtypes.in_range(updates, x.dtype)):
            raise DTypeError(f"{name}: {updates!r} does not fit into {x.spec}; write ll.astype on the tensor first")
        value = np.array(updates, x.dtype)
        return constant(value) if active else wrap(value)
    return as_tensor(updates)


# index_add

_index_add = entry_point(defop(
    "index_add",
    inputs="x updates indices:integer",
    attrs="key",
    infer=_update_infer("index_add"),
    kernel=_update_kernel("index_add", "add", "add"),
    accepts="numeric",
    vjp={
        "x": lambda g: g,
        "updates": lambda g, indices, updates_shape, key: _part_at(g, indices, key).sum_to(updates_shape),
    },
    maths={"x": "x̄ = ȳ", "updates": "ū = ȳ[index]"},
    batching="index_update",
))  # fmt: skip


def index_add(x: TensorLike, index: Any, updates: TensorLike, /) -> Tensor:
    """`x` with `updates` added at `index`; where a place is named several times they add up. Numeric.

    Also `x.at[index].add(updates)`. Indices and errors are as for `index_update`.

    >>> import limelight as ll
    >>> ll.index_add(ll.constant([1, 2, 3]), [0, 0], 10).tolist()
    [21, 2, 3]
    """
    return _run("index_add", _index_add, x, index, updates)


# index_multiply

_places = entry_point(defop(
    "index_places",
    inputs="x:any indices:integer",
    attrs="key",
    infer=lambda x, indices, key: known(_part_shape("index_places", x, indices, key), dtypes.int64),
    kernel=lambda xp, x, indices, key: xp.arange(x.size).reshape(x.shape)[_native_index(indices, key)].astype(np.int64),
    why_no_gradient="its result is an index",
    batching="index_places",
))  # fmt: skip


def _factor_gradient(g: Tensor, x: Tensor, updates: Tensor, indices: Tensor, updates_shape: Any, key: Key) -> Tensor:
    part = _part_at(g * x.conj(), indices, key)
    if "i" in key:
        whole = updates.broadcast_to(part.sizes()).conj()
        ids = _places((x, indices), key).reshape((-1,))
        part = part * ids._segment_others(whole.reshape((-1,))).reshape(part.sizes())
    return part.sum_to(updates_shape)


_index_multiply: EntryPoint = entry_point(defop(
    "index_multiply",
    inputs="x updates indices:integer",
    attrs="key",
    infer=_update_infer("index_multiply"),
    kernel=_update_kernel("index_multiply", "multiply", "multiply"),
    accepts="numeric",
    vjp={
        "x": lambda g, updates, indices, key: _index_multiply((g, updates.conj(), indices), key),
        "updates": _factor_gradient,
    },
    linear="x",
    maths={"x": "x̄ = ȳ, times u* at the index", "updates": "ū = (ȳ x*)[index] Π of the others there*"},
    batching="index_update",
))  # fmt: skip


def index_multiply(x: TensorLike, index: Any, updates: TensorLike, /) -> Tensor:
    """`x` multiplied by `updates` at `index`, by all of them where a place is named several times. Numeric.

    Also `x.at[index].multiply(updates)`. Indices and errors are as for `index_update`. Gradients are right at zeros.

    >>> import limelight as ll
    >>> ll.index_multiply(ll.constant([1, 2, 3]), [1, 1], 10).tolist()
    [1, 200, 3]
    """
    return _run("index_multiply", _index_multiply, x, index, updates)


# index_min and index_max


def _shares(g: Tensor, x: Tensor, updates: Tensor, indices: Tensor, out: Tensor, key: Key) -> tuple[Tensor, Tensor]:
    """The gradient of an extreme in parts, one for each of the equal ones it may have come from; and who they are."""
    own = (x == out).astype(x.dtype)
    given = (updates == _part_at(out, indices, key)).astype(x.dtype)
    return g / _index_add((own, given, indices), key), own


def _extreme_gradient_of_x(g: Tensor, x: Tensor, updates: Tensor, indices: Tensor, out: Tensor, key: Key) -> Tensor:
    share, own = _shares(g, x, updates, indices, out, key)
    return share * own


def _extreme_gradient_of_updates(
    g: Tensor, x: Tensor, updates: Tensor, indices: Tensor, out: Tensor, updates_shape: Any, key: Key
) -> Tensor:
    share, _ = _shares(g, x, updates, indices, out, key)
    taken = (updates == _part_at(out, indices, key)).astype(x.dtype)
    return (_part_at(share, indices, key) * taken).sum_to(updates_shape)


_index_min = entry_point(defop(
    "index_min",
    inputs="x updates indices:integer",
    attrs="key",
    infer=_update_infer("index_min"),
    kernel=_update_kernel("index_min", "min", "minimum"),
    accepts="real",
    vjp={"x": _extreme_gradient_of_x, "updates": _extreme_gradient_of_updates},
    maths={"x": "x̄ = ȳ where x is the smallest", "updates": "ū = ȳ[index] where u is the smallest"},
    batching="index_update",
))  # fmt: skip


def index_min(x: TensorLike, index: Any, updates: TensorLike, /) -> Tensor:
    """`x` with the smaller of `x` and `updates` at `index`; the smallest where a place is named several times. Real.

    Also `x.at[index].min(updates)`. Indices and errors are as for `index_update`. Equal ones share the gradient.

    >>> import limelight as ll
    >>> ll.index_min(ll.constant([1, 5, 3]), [1, 2], 4).tolist()
    [1, 4, 3]
    """
    return _run("index_min", _index_min, x, index, updates)


_index_max = entry_point(defop(
    "index_max",
    inputs="x updates indices:integer",
    attrs="key",
    infer=_update_infer("index_max"),
    kernel=_update_kernel("index_max", "max", "maximum"),
    accepts="real",
    vjp={"x": _extreme_gradient_of_x, "updates": _extreme_gradient_of_updates},
    maths={"x": "x̄ = ȳ where x is the largest", "updates": "ū = ȳ[index] where u is the largest"},
    batching="index_update",
))  # fmt: skip


def index_max(x: TensorLike, index: Any, updates: TensorLike, /) -> Tensor:
    """`x` with the larger of `x` and `updates` at `index`; the largest where a place is named several times. Real.

    Also `x.at[index].max(updates)`. Indices and errors are as for `index_update`. Equal ones share the gradient.

    >>> import limelight as ll
    >>> ll.index_max(ll.constant([1, 5, 3]), [0, 0], ll.constant([4, 2])).tolist()
    [4, 5, 3]
    """
    return _run("index_max", _index_max, x, index, updates)


_BY_NAME: Final = {
    "set": index_update,
    "add": index_add,
    "multiply": index_multiply,
    "min": index_min,
    "max": index_max,
}


@method("_updated")
def _by_name(x: Tensor, how: str, index: Any, updates: TensorLike) -> Tensor:
    """An update for `x.at[index]`, which is in a family of its own."""
    return _BY_NAME[how](x, index, updates)

"""`x[...]`: slices, and elements picked by integer arrays or boolean masks; and `nonzero`.

In a graph an index is data: ints, `(start, stop, step)`, None, and marks for arrays, never `slice` objects. So it
hashes, prints and parses. Boolean masks become integer arrays (`nonzero`), which works in a trace too, with an unknown
size. Static positions are the op `slice`; positions that are tensors, `dynamic_slice`; arrays of positions, `index`.

An index or axis that is not there raises an error that is a ValueError, as in other libraries, and an IndexError, as
Python's sequences have it (`AxisError`, `MaskError`, `OutOfBoundsError`).
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.devices import CPU0
from limelight.core.dispatch import active, local, scopes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.index_expression import (
    Key,
    among_arrays,
    array_shape,
    as_numbers,
    basic_shape,
    dynamic_shape,
    filled,
    native,
    pick,
    signed_places,
    within,
)
from limelight.core.op import defop
from limelight.core.repeated_places import change_at
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method, wrap
from limelight.errors import ArgumentError, AxisError, DTypeError, MaskError, ShapeError
from limelight.ops._given_shape import defop_with_shape
from limelight.ops.index._scatter_add import add_rows, check_places_of_key, checked_places
from limelight.user_code import source_line

__all__ = ["argwhere", "nonzero"]


def _zeros(xp: Any, shape: tuple[int, ...], beside: Any) -> Any:
    if xp is np and not isinstance(beside, np.ndarray | np.generic):  # a stand-in for an array (executors.loops)
        return np.zeros(shape, beside.dtype, like=beside)
    return xp.zeros(shape, beside.dtype)


def _set_at(xp: Any, shape: tuple[int, ...], key: Any, value: Any) -> Any:
    """Zeros with `value` at `key`, which names no place twice."""
    out = _zeros(xp, shape, value)
    if hasattr(out, "at"):
        return out.at[key].set(value)
    out[key] = value
    return out


def _add_at(xp: Any, shape: tuple[int, ...], key: Any, value: Any) -> Any:
    """Zeros with `value` added at `key`, which may name a place several times."""
    if xp is np and len(key) == 1 and value.ndim > key[0].ndim:  # whole rows, for which there are faster routes
        places = checked_places(key[0], shape[0], 0).reshape(-1)
        return add_rows(xp, shape[0], places, value.reshape(places.size, *shape[1:]))
    out = _zeros(xp, shape, value)
    if hasattr(out, "at"):
        return out.at[key].add(value)
    change_at(xp, "add", out, key, value)
    return out


def _given_shape_infer(g: TensorSpec, *rest: Any) -> TensorSpec:
    return known(rest[-1], g.dtype)


# slice: static positions

_slice_op = defop(
    "slice",
    view=True,
    inputs="x",
    attrs="key",
    infer=lambda x, key: known(basic_shape("x[...]", x.shape, key), x.dtype),
    kernel=lambda xp, x, key: x[native(key)],
    vjp={"x": lambda g, x_shape, key: _slice_scatter((g,), x_shape, key)},
    linear="x",
    maths={"x": "x̄[key] = ȳ, 0 elsewhere"},
    batching="slice",
)
_slice = entry_point(_slice_op)

_slice_scatter: EntryPoint = defop_with_shape(
    "slice_scatter",
    inputs="x",
    attrs="key",
    infer=_given_shape_infer,
    kernel=lambda xp, x, key, shape: _set_at(xp, shape, native(key), x),
    vjp={"x": lambda g, key: _slice(g, key)},
    linear="x",
    maths={"x": "x̄ = ȳ[key]"},
    batching="slice_scatter",
    dynamic_batching="slice_scatter_dynamic",
)

# dynamic_slice: positions that are tensors

_dynamic_slice = entry_point(defop(
    "dynamic_slice",
    inputs="x positions:integer",
    attrs="key",
    infer=lambda x, positions, key: known(dynamic_shape(x.shape, key, positions.content), x.dtype),
    kernel=lambda xp, x, positions, key: pick(x, key, positions),
    vjp={"x": lambda g, positions, x_shape, key: _dynamic_slice_scatter((g, positions), x_shape, key)},
    linear="x",
    maths={"x": "x̄[key] = ȳ, 0 elsewhere"},
    batching="dynamic_slice",
    on_host="positions",
))  # fmt: skip

_dynamic_slice_scatter: EntryPoint = defop_with_shape(
    "dynamic_slice_scatter",
    inputs="x positions:integer",
    attrs="key",
    infer=_given_shape_infer,
    kernel=lambda xp, x, positions, key, shape: _set_at(xp, shape, filled(key, as_numbers(positions)), x),
    vjp={"x": lambda g, positions, key: _dynamic_slice((g, positions), key)},
    linear="x",
    maths={"x": "x̄ = ȳ[key]"},
    batching="slice_scatter",
    dynamic_batching="slice_scatter_dynamic",
    on_host="positions",
)

# index: arrays of positions, one or several stacked


def _arrays(indices: Any, key: Key) -> Any:
    return (indices,) if key.count("i") == 1 else tuple(indices)


def _index_infer(x: TensorSpec, indices: TensorSpec, key: Key) -> TensorSpec:
    common = indices.shape if key.count("i") == 1 else indices.shape[1:]
    return known(array_shape("index", x.shape, key, common), x.dtype)


def _index_kernel(xp: Any, x: Any, indices: Any, key: Key) -> Any:
    if xp is not np:
        check_places_of_key(x.shape, indices, key)
    try:
        return x[filled(key, _arrays(signed_places(indices) if xp is np else indices, key))]
    except IndexError:
        check_places_of_key(x.shape, indices, key)
        raise


_index_op = defop(
    "index",
    inputs="x indices:integer",
    attrs="key",
    infer=_index_infer,
    kernel=_index_kernel,
    vjp={"x": lambda g, indices, x_shape, key: _index_scatter((g, indices), x_shape, key)},
    linear="x",
    maths={"x": "x̄[key] += ȳ"},
    batching="index",
)
_index = entry_point(_index_op)

_index_scatter: EntryPoint = defop_with_shape(
    "index_scatter",
    inputs="x indices:integer",
    attrs="key",
    infer=_given_shape_infer,
    kernel=lambda xp, x, indices, key, shape: _add_at(xp, shape, filled(key, _arrays(indices, key)), x),
    vjp={"x": lambda g, indices, key: _index((g, indices), key)},
    linear="x",
    maths={"x": "x̄ = ȳ[key]"},
    batching="index_scatter",
    dynamic_batching="index_scatter_dynamic",
)


def _pack_infer(*specs: TensorSpec) -> TensorSpec:
    return known((len(specs), *shapes.broadcast("index", *[spec.shape for spec in specs])), specs[0].dtype)


def _pack_kernel(xp: Any, *arrays: Any) -> Any:
    shape = np.broadcast_shapes(*[array.shape for array in arrays])  # broadcast_arrays refuses read-only arrays
    return xp.stack([xp.broadcast_to(array, shape) for array in arrays])


_pack_indices = entry_point(defop(
    "pack_indices",
    inputs="*xs",
    infer=_pack_infer,
    kernel=_pack_kernel,
    accepts="integer",
    why_no_gradient="its result is an index",
    batching="pack_indices",
))  # fmt: skip

# nonzero

_nonzero = entry_point(defop(
    "nonzero",
    inputs="x",
    infer=lambda x: known((x.rank, None), dtypes.int64),
    kernel=lambda xp, x: xp.stack(xp.nonzero(x)),
    why_no_gradient="its result is an index",
    batching="loop",
))  # fmt: skip


def nonzero(x: TensorLike, /) -> tuple[Tensor, ...]:
    """Where the elements of `x` are true, or not zero: an int64 vector for each axis. Raises ShapeError for scalars.

    >>> import limelight as ll
    >>> [places.tolist() for places in ll.nonzero(ll.constant([[0, 5], [7, 0]]))]
    [[0, 1], [1, 0]]
    """
    x = as_tensor(x)
    if not x.ndim:
        raise ShapeError("nonzero: a scalar has no axes to count along; reshape it to (1,) first")
    positions = _nonzero(x)
    return tuple([_slice(positions, (i,)) for i in range(x.ndim)])


def argwhere(x: TensorLike, /) -> Tensor:
    """Where the elements of `x` are true, or not zero: int64, (how many, axes), a row for each; see `nonzero`.

    While tracing their number is unknown. Raises ShapeError for scalars.

    >>> import limelight as ll
    >>> ll.argwhere(ll.constant([[0, 5], [7, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    x = as_tensor(x)
    if not x.ndim:
        raise ShapeError("argwhere: a scalar has no axes to count along; reshape it to (1,) first")
    return _nonzero(x).transpose((1, 0))


# x[...]


_BASIC: Final = frozenset([int, slice, type(None), type(...)])
_blank: Final = functools.partial(object.__new__, Tensor)


@method("__getitem__")
def _getitem(x: Tensor, key: Any) -> Tensor:
    """The part of `x` that `key` names, as in NumPy: ints, slices, `...`, None, integer arrays and boolean masks.

    Positions may be tensors. Raises ArgumentError for what is out of bounds, or no index at all.
    """
    if type(x) is not Tensor or x._device is not CPU0:
        return _index_by_ops(x, key)
    observer = None
    if active:
        observer = local.observer
        if scopes or observer is None:
            return _index_by_ops(x, key)
    kind = type(key)
    try:
        data = x._data[key] if kind is slice or kind is int else _index_by_numpy(x._data, kind, key)
    except (IndexError, TypeError, ValueError):
        data = None  # the long way round says what is wrong
    if data is None:
        return _index_by_ops(x, key)
    t = _blank()
    t._data = data
    t._device = CPU0
    t._uid = 0
    if observer is not None and x._uid:
        if kind is Tensor:
            places, marks = _as_places(key)
            observer.observe_many(_index_op, (x, places), (marks,), t)
        else:
            static = _static_key(key if kind is tuple else (key,))
            if static is None:
                return _index_by_ops(x, key)
            observer.observe(_slice_op.recipes, x, (static,), x._uid, 0, t)
    return t


source_line.speak_of(_getitem, "x[...]")  # the ops that it is made of are not what the user wrote


def _index_by_numpy(data: Any, kind: type, key: Any) -> Any:
    """What NumPy makes of an index that means the same to it, None for any other."""
    if kind is Tensor:
        places = key._data if key._device is CPU0 else None
        if places is None or not places.ndim or places.dtype.kind not in "iub":
            return None
        return data[places if places.dtype.kind != "u" else signed_places(places)]
    if kind is tuple:
        for part in key:
            if type(part) not in _BASIC:
                return None
        return data[key]
    return None


def _as_places(index: Tensor) -> tuple[Tensor, Key]:
    """An integer tensor or a mask as the operand `indices` of the op index, and that op's key."""
    if index._data.dtype != dtypes.bool_:
        return index, ("i",)
    places = index._data.nonzero()
    return wrap(places[0] if len(places) == 1 else np.stack(places)), ("i",) * len(places)


def _index_by_ops(x: Tensor, key: Any) -> Tensor:
    """`x[key]` by way of ops, for whoever watches."""
    if isinstance(key, Tensor) and not key.ndim and key.dtype == dtypes.bool_:  # a new axis of size 1 or 0
        x, key = x.expand_dims(0), key.reshape((1,))
    return _at_key(x, *_located(x, key))


@method("_at_key")
def _at_key(x: Tensor, marks: Key, operand: Tensor | None) -> Tensor:
    """The part of `x` that `_located` has found."""
    if operand is None:
        return _slice(x, marks)
    return (_index if "i" in marks else _dynamic_slice)((x, operand), marks)


@method("_located")
def _located(x: Tensor, key: Any) -> tuple[Key, Tensor | None]:
    """An index into `x` as a key and, where that has marks, the operand that fills them: also for ops that update."""
    if type(key) is Tensor and key._data.ndim and key._data.dtype.kind in "iu":
        return ("i",), key
    static = _static_key(key) if type(key) is tuple else _static_key((key,))
    if static is not None:
        return static, None
    parser = _Parser(x)
    for part in _expand_ellipsis(key if isinstance(key, tuple) else (key,), x):
        parser.take(part)
    return parser.result()


def _static_key(parts: tuple[Any, ...]) -> Key | None:
    """The key of an index without tensors, arrays and ellipses, quickly; None for any other."""
    key: list[Any] = []
    for part in parts:
        kind = type(part)
        if kind is slice:
            bounds = (part.start, part.stop, part.step)
            for bound in bounds:
                if bound is not None and type(bound) is not int:
                    return None
            key.append(bounds)
        elif kind is int or part is None:
            key.append(part)
        else:
            return None
    return tuple(key)


def _expand_ellipsis(parts: tuple[Any, ...], x: Tensor) -> list[Any]:
    """The parts with lists made tensors, and full slices in the place of an ellipsis."""
    expanded = [
        _as_index(part)
        if isinstance(part, (list, tuple, np.ndarray, Tensor)) or hasattr(part, "__as_tensor__")
        else part
        for part in parts
    ]
    places = [i for i, part in enumerate(expanded) if part is Ellipsis]
    if len(places) > 1:
        raise ArgumentError("an index can only have a single ellipsis ('...')")
    if places:
        used = sum(_axes_of(part) for part in expanded)
        expanded[places[0] : places[0] + 1] = [slice(None)] * max(0, x.ndim - used)
    return expanded


def _as_index(part: Any) -> Tensor:
    if isinstance(part, (list, tuple)):
        array = np.asarray(part)
        part = array.astype(np.int64) if array.size == 0 else array
    index = as_tensor(part)
    if dtypes.kind(index.dtype) not in ("integer", "bool"):
        raise DTypeError(
            f"an index must be of integers or booleans, not {index.dtype.name}; write ll.astype(i, ll.int32)"
        )
    return index


def _axes_of(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, Tensor) and part.dtype == dtypes.bool_ else 1


class _Parser:
    """Turns the parts of an index into a key, and the tensors among them into its operands."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.key: list[Any] = []
        self.arrays: list[Tensor] = []
        self.positions: list[Tensor] = []
        self.axis = 0

    def take(self, part: Any) -> None:
        if part is None:
            self.key.append(None)
            return
        if isinstance(part, slice):
            self.key.append(tuple([self._bound(bound) for bound in (part.start, part.stop, part.step)]))
        elif isinstance(part, Tensor):
            self._take_tensor(part)
            return
        elif isinstance(part, (bool, np.bool_)) or not hasattr(part, "__index__"):
            raise ArgumentError(
                f"{part!r} is no index; write integers, slices (a:b), '...', None, integer arrays or boolean masks"
            )
        else:
            self.key.append(part.__index__())
        self.axis += 1

    def _bound(self, bound: Any) -> Any:
        if not isinstance(bound, Tensor) and hasattr(bound, "__as_tensor__"):
            bound = bound.__as_tensor__()
        if not isinstance(bound, Tensor):
            return None if bound is None else bound.__index__()
        if type(bound) is Tensor:
            return bound.__index__()
        self.positions.append(bound)
        return "t"

    def _take_tensor(self, part: Tensor) -> None:
        if part.dtype == dtypes.bool_:
            self._take_mask(part)
            return
        if part.ndim:
            self.key.append("i")
            self.arrays.append(part)
        else:
            self.key.append(within(self.x.shape, self.axis, self._bound(part)))
        self.axis += 1

    def _take_mask(self, mask: Tensor) -> None:
        covered = self.x.shape[self.axis : self.axis + mask.ndim]
        alike = len(covered) == mask.ndim and all(
            None in (m, n) or m == n for m, n in zip(mask.shape, covered, strict=True)
        )
        if not mask.ndim or not alike:
            raise MaskError(
                f"a mask of shape {shapes.show(mask.shape)} does not fit the axes that it is for, "
                f"of shape {shapes.show(covered)}"
            )
        self.key += ["i"] * mask.ndim
        self.arrays += nonzero(mask)
        self.axis += mask.ndim

    def result(self) -> tuple[Key, Tensor | None]:
        if self.axis > self.x.ndim:
            raise AxisError(f"x[...]: too many indices for a tensor of shape {shapes.show(self.x.shape)}")
        key, arrays = among_arrays(tuple(self.key), self.arrays, self.positions)
        if "i" in key:
            return key, arrays[0] if len(arrays) == 1 else _pack_indices(arrays)
        return key, _pack_indices(arrays) if arrays else None

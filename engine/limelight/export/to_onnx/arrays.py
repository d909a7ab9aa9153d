"""The operations that lowerings are written with: shapes, reductions, gathering, over values of a graph of ONNX.

Sizes are Python's numbers where they are known, and else scalars of the graph, so that one lowering serves both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.export.to_onnx.builder import (
    Builder,
    Var,
    broadcast,
    computed_in,
)

INT64 = dtypes.int64
BOOL = dtypes.bool_


def unary(name: str, x: Var) -> Var:
    return x.builder.unary(name, x)


def cast(x: Var, dtype: Any) -> Var:
    return x.builder.cast(x, np.dtype(dtype))


def like(x: Var, value: Any) -> Var:
    """A scalar constant of the dtype of `x`."""
    return x.builder.constant(np.asarray(value, x.dtype))


def where(condition: Var, x: Any, y: Any) -> Var:
    b = condition.builder
    x, y = b.pair(x, y)
    shape = broadcast(condition.shape, x.shape, y.shape)
    if x.dtype == BOOL:
        return cast(where(condition, cast(x, "uint8"), cast(y, "uint8")), BOOL)
    wider = {"int16": "int32", "uint16": "int32", "uint64": "int64"}.get(x.dtype.name)
    if wider:
        return cast(where(condition, cast(x, wider), cast(y, wider)), x.dtype)
    return b.make("Where", condition, x, y, uniform=0, dtype=x.dtype, shape=shape)


def maximum(x: Any, y: Any) -> Var:
    return where(_nan_or(x, y, "GreaterOrEqual"), x, y)


def minimum(x: Any, y: Any) -> Var:
    return where(_nan_or(x, y, "LessOrEqual"), x, y)


def _nan_or(x: Any, y: Any, op: str) -> Var:
    """Where `x` is to be taken: it compares so with `y`, or is NaN."""
    b = (x if isinstance(x, Var) else y).builder
    x, y = b.pair(x, y)
    taken: Var = b.compare(op, x, y)
    return taken | is_nan(x) if x.floating else taken


def is_nan(x: Var) -> Var:
    return x.builder.make("IsNaN", x, dtype=BOOL)


def equal(x: Any, y: Any) -> Var:
    return (x if isinstance(x, Var) else y).builder.compare("Equal", x, y)


def signed_in_order(x: Var) -> Var:
    """uint64 as the int64 of the same order, anything else as it is: onnxruntime puts no uint64 in order."""
    return cast(_without_first_bit(x), INT64) if x.dtype == dtypes.uint64 else x


def back_in_order(x: Var, dtype: Any) -> Var:
    """What `signed_in_order` was taken of."""
    return _without_first_bit(cast(x, dtype)) if dtype == dtypes.uint64 else x


def _without_first_bit(x: Var) -> Var:
    """uint64 with its first bit turned over."""
    return x.builder.binary("BitwiseXor", x, like(x, 1 << 63))


# --- sizes and shapes


def size(x: Var, axis: int) -> Any:
    """The size of an axis: a number, or a scalar of the graph."""
    known = x.shape[axis]
    return known if known is not None else gather(shape_of(x), x.builder.constant(axis % x.ndim, INT64), 0)


def sizes(x: Var) -> list[Any]:
    """All sizes; those that are unknown are scalars of the graph."""
    if None not in x.shape:
        return list(x.shape)
    return [size(x, i) for i in range(x.ndim)]


def shape_of(x: Var) -> Var:
    b = x.builder
    if None not in x.shape:
        return b.constant(np.array(x.shape, np.int64).reshape(-1))
    return b.make("Shape", x, dtype=INT64, shape=(x.ndim,))


def vector(b: Builder, numbers: Any) -> Var:
    """A vector of int64 out of numbers and scalars of the graph."""
    if isinstance(numbers, Var):
        return cast(numbers, INT64)
    if not any(isinstance(n, Var) for n in numbers):
        return b.constant(np.array(list(numbers), np.int64).reshape(-1))
    parts = [
        unsqueeze(cast(n, INT64), (0,)) if isinstance(n, Var) else b.constant(np.array([n], np.int64)) for n in numbers
    ]
    return parts[0] if len(parts) == 1 else concat(parts, 0)


def _known(numbers: Any, rank: int | None = None) -> tuple[int | None, ...]:
    if isinstance(numbers, Var):
        if numbers.value is not None:
            return tuple(int(n) for n in numbers.value)
        return (None,) * (numbers.shape[0] if rank is None else rank)  # type: ignore[operator]
    return tuple(_number(n) for n in numbers)


def _number(n: Any) -> int | None:
    if isinstance(n, Var):
        return None if n.value is None else int(n.value)
    return int(n)


def times(*numbers: Any) -> Any:
    """The product of sizes."""
    known = math.prod(n for n in numbers if not isinstance(n, Var))
    result: Any = known
    for n in numbers:
        if isinstance(n, Var):
            result = n if isinstance(result, int) and result == 1 else n * result
    return result


def reshape(x: Var, shape: Any) -> Var:
    """`x` with another shape, in which sizes may be scalars of the graph and one may be -1."""
    known = _known(shape)
    if -1 in known and None not in x.shape and None not in known:
        rest = math.prod([n for n in known if n is not None and n != -1])
        known = tuple([math.prod(x.shape) // rest if n == -1 and rest else n for n in known])  # type: ignore[arg-type]
        shape = known
    final = tuple([None if n == -1 else n for n in known])
    return x.builder.make("Reshape", x, vector(x.builder, shape), shape=final, allowzero=1 if -1 not in known else 0)


def transpose(x: Var, axes: Sequence[int]) -> Var:
    axes = [a % x.ndim for a in axes]
    if axes == list(range(x.ndim)):
        return x
    return x.builder.make("Transpose", x, shape=[x.shape[a] for a in axes], perm=axes)


def swap(x: Var, i: int, j: int) -> Var:
    order = list(range(x.ndim))
    order[i], order[j] = order[j], order[i]
    return transpose(x, order)


def move(x: Var, source: int, target: int) -> Var:
    order = [i for i in range(x.ndim) if i != source % x.ndim]
    order.insert(target % x.ndim, source % x.ndim)
    return transpose(x, order)


def unsqueeze(x: Var, axes: Sequence[int]) -> Var:
    """New axes at these places of the result."""
    rank = x.ndim + len(axes)
    places = sorted(a % rank for a in axes)
    if not places:
        return x
    shape = list(x.shape)
    for place in places:
        shape.insert(place, 1)
    return x.builder.make("Unsqueeze", x, vector(x.builder, places), shape=shape)


def squeeze(x: Var, axes: Sequence[int]) -> Var:
    places = sorted(a % x.ndim for a in axes)
    if not places:
        return x
    shape = [n for i, n in enumerate(x.shape) if i not in places]
    return x.builder.make("Squeeze", x, vector(x.builder, places), shape=shape)


def expand(x: Var, shape: Any) -> Var:
    """`x` broadcast to a shape."""
    known = _known(shape)
    if known == x.shape and None not in known:
        return x
    if 0 in known and None not in known:
        return x.builder.constant(np.zeros(known, x.dtype))
    return x.builder.make("Expand", x, vector(x.builder, shape), shape=known)


def full(b: Builder, shape: Any, value: Any, dtype: Any) -> Var:
    return expand(b.constant(np.asarray(value, dtype)), shape)


def zeros_like(x: Var) -> Var:
    return full(x.builder, shape_of(x), 0, x.dtype)


def concat(xs: Sequence[Var], axis: int) -> Var:
    first = xs[0]
    if len(xs) == 1:
        return first
    axis %= first.ndim
    if all(x.value is not None for x in xs):
        return first.builder.constant(np.concatenate([x.value for x in xs], axis))
    shape = list(broadcast(*[x.shape for x in xs]))
    along = [x.shape[axis] for x in xs]
    shape[axis] = None if None in along else sum(along)  # type: ignore[arg-type]
    return first.builder.make("Concat", *xs, uniform=len(xs), shape=shape, axis=axis)


def stack(xs: Sequence[Var], axis: int = 0) -> Var:
    place = axis % (xs[0].ndim + 1)
    return concat([unsqueeze(x, (place,)) for x in xs], place)


def cut(x: Var, axis: int, start: Any, stop: Any, step: int = 1) -> Var:
    """Part of an axis, as `x[start:stop:step]`; bounds may be scalars of the graph. None for "to the end"."""
    b, shape = x.builder, list(x.shape)
    axis %= x.ndim
    n = shape[axis]
    if n is not None and not isinstance(start, Var) and not isinstance(stop, Var):
        shape[axis] = len(range(*slice(start, stop, step).indices(n)))
    else:
        shape[axis] = None
    low = (0 if step > 0 else np.iinfo(np.int64).max) if start is None else start
    high = (np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min) if stop is None else stop
    return b.make("Slice", x, vector(b, [low]), vector(b, [high]), vector(b, [axis]), vector(b, [step]), shape=shape)


def pick(x: Var, axis: int, place: Any) -> Var:
    """`x[place]` along an axis, which goes."""
    return gather(x, place if isinstance(place, Var) else x.builder.constant(place, INT64), axis)


def flip(x: Var, axes: Sequence[int]) -> Var:
    for axis in axes:
        x = cut(x, axis, None, None, -1)
    return x


def gather(x: Var, indices: Var, axis: int) -> Var:
    axis %= x.ndim
    indices = indices if indices.dtype.name in ("int32", "int64") else cast(indices, INT64)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if x.value is not None and indices.value is not None:
        return x.builder.constant(np.take(x.value, indices.value, axis))
    return x.builder.make("Gather", x, indices, shape=shape, axis=axis)


def gather_elements(x: Var, indices: Var, axis: int) -> Var:
    indices = indices if indices.dtype.name in ("int32", "int64") else cast(indices, INT64)
    return x.builder.make("GatherElements", x, indices, shape=indices.shape, axis=axis % x.ndim)


def gather_nd(x: Var, indices: Var) -> Var:
    """Elements at rows of `indices`, or what lies there."""
    depth = indices.shape[-1]
    assert depth is not None
    return x.builder.make("GatherND", x, cast(indices, INT64), shape=(*indices.shape[:-1], *x.shape[depth:]))


def scatter_nd(x: Var, indices: Var, updates: Var, reduction: str = "none") -> Var:
    if x.dtype == dtypes.uint64 and reduction in ("max", "min"):
        made = scatter_nd(signed_in_order(x), indices, signed_in_order(updates), reduction)
        return back_in_order(made, x.dtype)
    through = _scattered_in(x.dtype, reduction)
    if through != x.dtype:
        return cast(scatter_nd(cast(x, through), indices, cast(updates, through), reduction), x.dtype)
    (name,) = x.builder.emit("ScatterND", [x, cast(indices, INT64), updates], reduction=reduction)
    return Var(x.builder, name, x.dtype, x.shape)


def scatter_elements(x: Var, indices: Var, updates: Var, axis: int, reduction: str = "none") -> Var:
    if x.dtype == dtypes.uint64 and reduction in ("max", "min"):
        made = scatter_elements(signed_in_order(x), indices, signed_in_order(updates), axis, reduction)
        return back_in_order(made, x.dtype)
    through = _scattered_in(x.dtype, reduction)
    if through != x.dtype:
        return cast(scatter_elements(cast(x, through), indices, cast(updates, through), axis, reduction), x.dtype)
    name = x.builder.emit(
        "ScatterElements", [x, cast(indices, INT64), updates], axis=axis % x.ndim, reduction=reduction
    )[0]
    return Var(x.builder, name, x.dtype, x.shape)


def _scattered_in(dtype: Any, reduction: str) -> Any:
    if reduction == "none" or dtype.name in ("float32", "float64", "int32", "int64"):
        return dtype
    return np.dtype("int32" if dtype.itemsize <= 2 or dtype == BOOL else "int64")


def pad(x: Var, margins: Sequence[tuple[Any, Any]], value: Any = 0, mode: str = "constant") -> Var:
    b = x.builder
    ends = vector(b, [m[0] for m in margins] + [m[1] for m in margins])
    shape = [
        None if n is None or isinstance(before, Var) or isinstance(after, Var) else n + before + after
        for n, (before, after) in zip(x.shape, margins, strict=True)
    ]
    through = computed_in("Pad", x.dtype)
    inputs = [cast(x, through), ends]
    if mode == "constant":
        inputs.append(cast(value, through) if isinstance(value, Var) else b.constant(np.asarray(value, through)))
    (name,) = b.emit("Pad", inputs, mode=mode)
    return cast(Var(b, name, through, shape), x.dtype)


def arange(b: Builder, stop: Any, start: Any = 0) -> Var:
    """The whole numbers from `start` to `stop`, int64."""
    if not isinstance(stop, Var) and not isinstance(start, Var):
        return b.constant(np.arange(start, stop, dtype=np.int64))
    ends = [n if isinstance(n, Var) else b.constant(np.asarray(n, np.int64)) for n in (start, stop, 1)]
    return b.make("Range", *ends, uniform=3, shape=(None,))


# --- reductions


def all_axes(x: Var, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    return tuple([a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))])


def reduce(name: str, x: Var, axis: Any = None, keepdims: bool = False) -> Var:
    axes = all_axes(x, axis)
    if not axes:
        return x
    if x.dtype == dtypes.uint64 and name in ("Max", "Min"):
        return back_in_order(reduce(name, signed_in_order(x), axis, keepdims), x.dtype)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
    return x.builder.make(
        f"Reduce{name}", x, vector(x.builder, axes), shape=shape, keepdims=int(keepdims), noop_with_empty_axes=0
    )


def total(x: Var, axis: Any = None, keepdims: bool = False) -> Var:
    return reduce("Sum", x, axis, keepdims)


def mean(x: Var, axis: Any = None, keepdims: bool = False) -> Var:
    axes = all_axes(x, axis)
    return total(x, axes, keepdims) / count(x, axes)


def count(x: Var, axes: Sequence[int]) -> Var:
    """How many elements there are along axes, in the dtype of `x`."""
    n = times(*[size(x, a) for a in axes])
    return cast(n, x.dtype) if isinstance(n, Var) else like(x, n)


def matmul(x: Var, y: Var) -> Var:
    lead = broadcast(x.shape[:-2], y.shape[:-2])
    if not x.shape[-1] and not x.floating:  # none, or perhaps none, of which onnxruntime makes nothing
        x, y = pad_axis(x, x.ndim - 1), pad_axis(y, max(y.ndim - 2, 0))
    shape = (*lead, *((x.shape[-2],) if x.ndim > 1 else ()), *((y.shape[-1],) if y.ndim > 1 else ()))
    return x.builder.make("MatMul", x, y, uniform=2, shape=shape)


def pad_axis(x: Var, axis: int) -> Var:
    """One more zero at the end of an axis."""
    return pad(x, [(0, int(i == axis)) for i in range(x.ndim)])


def einsum(equation: str, *xs: Var) -> Var:
    letters: dict[str, int | None] = {}
    terms, out = equation.split("->")
    for term, x in zip(terms.split(","), xs, strict=True):
        for letter, n in zip(term, x.shape, strict=True):
            letters[letter] = n if letters.get(letter) is None else letters[letter]
    return xs[0].builder.make("Einsum", *xs, uniform=len(xs), shape=[letters[c] for c in out], equation=equation)


def cumsum(x: Var, axis: int, *, exclusive: bool = False, reverse: bool = False) -> Var:
    place = x.builder.constant(axis % x.ndim, INT64)
    return x.builder.make("CumSum", x, place, exclusive=int(exclusive), reverse=int(reverse))


def arg(x: Var, axis: int, keepdims: bool, *, largest: bool) -> Var:
    shape = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape) if keepdims or i != axis % x.ndim]
    name, x = "ArgMax" if largest else "ArgMin", signed_in_order(x)
    return x.builder.make(name, x, dtype=INT64, shape=shape, axis=axis % x.ndim, keepdims=int(keepdims))


def top_k(x: Var, k: Any, axis: int, *, largest: bool = True) -> tuple[Var, Var]:
    """The k first values in order, and their places."""
    if x.dtype == dtypes.uint64:
        values, places = top_k(signed_in_order(x), k, axis, largest=largest)
        return back_in_order(values, x.dtype), places
    b = x.builder
    through = computed_in("TopK", x.dtype)
    shape = list(x.shape)
    shape[axis] = k if isinstance(k, int) else None
    names = b.emit("TopK", [cast(x, through), vector(b, [k])], 2, axis=axis % x.ndim, largest=int(largest), sorted=1)
    return cast(Var(b, names[0], through, shape), x.dtype), Var(b, names[1], INT64, shape)

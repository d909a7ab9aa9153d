"""An array that is not there: what a kernel does with it becomes instructions of a table.

An op's kernel says in NumPy's functions what it does. Called with these arrays, for which NumPy asks them
(`__array_ufunc__`, `__array_function__`), it says the same to a table. So no list says again what each op is, and what
a kernel does that a table cannot (a look at the numbers, above all) refuses the node by itself.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from limelight.executors.loops.gathers import counted_from_front, picked, put, take, take_along_axis
from limelight.executors.loops.instructions import Instructions, NotLowered, new_array
from limelight.executors.loops.layout import Sizes, View, broadcast_strides, reshaped_strides

_SCALARS: Final = (bool, int, float, complex)
_SHORT_AXIS: Final = 32
_RAISES: Final = frozenset([np.power])  # for integers: a loop that needs Python


class TracedArray(NDArrayOperatorsMixin):
    """A stand-in for an array: see the module.

    Args:
        view: where its elements will be.
        to: the instructions, to which whatever is done with it is appended.
    """

    __slots__ = ("to", "view")

    def __init__(self, view: View, to: Instructions) -> None:
        self.view = view
        self.to = to

    @property
    def shape(self) -> Sizes:
        return self.view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.view.dtype

    @property
    def ndim(self) -> int:
        return len(self.view.shape)

    @property
    def size(self) -> int:
        return self.view.size

    @property
    def itemsize(self) -> int:
        return self.view.dtype.itemsize

    @property
    def T(self) -> TracedArray:
        return self.transpose()

    @property
    def mT(self) -> TracedArray:
        return self.swapaxes(-1, -2)

    def __len__(self) -> int:
        return self.view.shape[0]

    def __iter__(self) -> Iterator[TracedArray]:
        return iter([self[i] for i in range(len(self))])

    def item(self) -> Any:
        """The number, where it is known beforehand."""
        self.to.looked_at += 1
        if self.view.buffer.array is None or self.size != 1:
            raise NotLowered("its kernel looks at the numbers")
        return self.view.buffer.array.item()

    # Views

    def reshape(self, *shape: Any) -> TracedArray:
        sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if -1 in sizes:
            rest = -math.prod(sizes)
            sizes = tuple([self.size // rest if n == -1 else n for n in sizes])
        strides = reshaped_strides(self.view, sizes)
        if strides is None:
            return self._new(self.to.copied(self.view)).reshape(sizes)
        return self._new(self.view._replace(shape=sizes, strides=strides))

    def ravel(self) -> TracedArray:
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> TracedArray:
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = tuple(order or range(self.ndim - 1, -1, -1))
        view = self.view
        shape, strides = (tuple([sizes[i] for i in order]) for sizes in (view.shape, view.strides))
        return self._new(view._replace(shape=shape, strides=strides))

    def swapaxes(self, a: int, b: int) -> TracedArray:
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.transpose(order)

    def __getitem__(self, key: Any) -> TracedArray:
        parts, by_arrays = self._parts(key)
        view = picked(self.view, parts, self.to) if by_arrays else _indexed(self.view, parts)
        if view.dtype.kind == "c" and not view.shape and self.ndim:
            raise NotLowered("it picks a single complex number, which NumPy's operators multiply otherwise than arrays")
        return self._new(view)

    def _parts(self, key: Any) -> tuple[list[Any], bool]:
        """An index with a part for each axis, arrays as views, and None for new axes; and whether it has arrays."""
        parts = [self._view_of(x) if type(x) in _ARRAYS else x for x in (key if isinstance(key, tuple) else (key,))]
        if not all(part is None or part is Ellipsis or type(part) in _OF_AXES for part in parts):
            raise NotLowered(f"it is indexed by {' and '.join(sorted({type(part).__name__ for part in parts}))}")
        by_arrays = any(type(part) is View for part in parts)
        if by_arrays and any(part is None for part in parts):
            raise NotLowered("it is indexed by arrays and other things")
        if by_arrays:  # among which numbers are arrays, too
            parts = [self.to.constant(np.array(part, np.int64)) if type(part) is int else part for part in parts]
        n_axes = sum(type(part) in _OF_AXES for part in parts)
        at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
        parts[at : at + 1] = [slice(None)] * (self.ndim - n_axes)
        return parts, by_arrays

    def broadcast_to(self, shape: Sizes) -> TracedArray:
        return self._new(
            self.view._replace(shape=shape, strides=broadcast_strides(self.view.shape, self.view.strides, shape))
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        """Kernels write into arrays that they have just made."""
        parts, by_arrays = self._parts(key)
        if by_arrays:
            put(self.view, parts, self._view_of(value), self.to)
        else:
            self.to.copy(self._view_of(value), _indexed(self.view, parts))

    # New arrays

    def astype(self, dtype: Any, copy: bool = True) -> TracedArray:
        if not copy and self.dtype == dtype:
            return self
        return self._new(self.to.astype(self.view, np.dtype(dtype)))

    def take(self, places: Any, axis: int) -> TracedArray:
        return self._new(take(self.view, self._view_of(places), axis, self.to))

    def counted_from_front(self, size: int, from_end: bool) -> TracedArray:
        """These places of an axis of `size`, checked when the table runs: see `ops.index._scatter_add`."""
        return self._new(counted_from_front(self.view, size, from_end, self.to))

    def dot(self, other: Any) -> TracedArray:
        return self._new(self.to.dot(self.view, self._view_of(other)))

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> TracedArray:
        return self._place_of(np.maximum, axis, keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> TracedArray:
        return self._place_of(np.minimum, axis, keepdims)

    def _place_of(self, extremum: np.ufunc, axis: int | None, keepdims: bool) -> TracedArray:
        """The first place of an extremum, of which NaN is one: the smallest place of what is equal to it."""
        if self.dtype.kind == "c":
            raise NotLowered("complex numbers have no order")
        numbers: Any = np  # its functions ask their operands
        x = self._new(self.view if self.view.is_contiguous else self.to.copied(self.view))
        if axis is None:
            x, shape = x.reshape(-1), (1,) * self.ndim if keepdims else ()
            return x._place_of(extremum, 0, False).reshape(shape)
        n, axis = x.shape[axis], axis % x.ndim
        if n < _SHORT_AXIS and axis == x.ndim - 1 and x.size > n * n:  # loops along the others are fewer
            turned = self._new(self.to.copied(x.transpose((axis, *range(axis))).view))
            return turned._place_of(extremum, 0, False).reshape((*x.shape[:-1], *((1,) if keepdims else ())))
        is_there = numbers.equal(x, extremum.reduce(x, axis=axis, keepdims=True))
        if self.dtype.kind == "f":
            is_there = numbers.logical_or(is_there, numbers.not_equal(x, x))
        places = np.arange(n).reshape([n if i == axis else 1 for i in range(x.ndim)])
        first: TracedArray = numbers.minimum.reduce(
            numbers.where(is_there, places, np.array(n)), axis=axis, keepdims=keepdims
        )
        return first

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> TracedArray:
        if method == "reduce":
            return self._reduced(ufunc, *inputs, **options)
        if method == "at" and ufunc is np.add and isinstance(inputs[0], TracedArray):
            return inputs[0]._added_at(*inputs[1:])
        out = options.pop("out")[0] if "out" in options else None
        if method != "__call__" or options or ufunc.nout != 1 or not isinstance(out, TracedArray | None):
            raise NotLowered(f"NumPy's `{ufunc.__name__}` is called in a way that tables do not know")
        if ufunc is np.matmul and out is None:
            return self._new(self.to.matmul(*map(self._view_of, inputs)))
        if ufunc.signature is not None:
            raise NotLowered(f"`{ufunc.__name__}` is no function of elements")
        dtypes = _loop_dtypes(ufunc, tuple([type(x) if type(x) in _SCALARS else x.dtype for x in inputs]))
        views = [self._operand(x, dtype) for x, dtype in zip(inputs, dtypes, strict=False)]
        given = None if out is None else out.view
        return self._new(self.to.elementwise(ufunc, views, dtypes, given))

    def _added_at(self, key: Any, value: Any) -> TracedArray:
        parts, by_arrays = self._parts(key)
        if not by_arrays:
            raise NotLowered("numbers are added at places that are no arrays")
        put(self.view, parts, self._view_of(value), self.to, "add")
        return self

    def _reduced(
        self,
        ufunc: np.ufunc,
        x: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
    ) -> TracedArray:
        integers = x.dtype.kind in "biu" and ufunc in (np.add, np.multiply)  # which NumPy adds in a wider type
        if (dtype is None and integers) or dtype not in (None, x.dtype) or any(one is not None for one in out or ()):
            raise NotLowered("a reduction converts")
        start = ufunc.identity if initial is None else initial
        return self._new(self.to.reduction(ufunc, x.view, axis, keepdims, start))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> TracedArray:
        handler = _FUNCTIONS.get(function)
        if handler is None or kwargs.keys() - {"axis"}:
            raise NotLowered(f"tables do not know NumPy's `{function.__name__}`")
        return handler(self, *args, **kwargs)

    def _new(self, view: View) -> TracedArray:
        return TracedArray(view, self.to)

    def _view_of(self, x: Any) -> View:
        return x.view if isinstance(x, TracedArray) else self.to.constant(x)

    def _operand(self, x: Any, dtype: np.dtype[Any]) -> View:
        """The view of an operand of a ufunc; Python's numbers take the dtype of the loop."""
        if type(x) in _SCALARS:
            return self.to.constant(np.array(x, dtype))
        view = self._view_of(x)
        return view if view.dtype == dtype else self.to.astype(view, dtype)  # NumPy does so a few thousand at a time

    # What must not happen

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise NotLowered("its kernel looks at the numbers")

    __bool__ = __float__ = __complex__ = __array__

    def __int__(self) -> int:
        raise NumberUnknown("its kernel looks at the numbers")

    __index__ = __int__


class NumberUnknown(NotLowered, TypeError):  # noqa: N818  # no error: the plan's kernel runs the node instead
    """What Python's `int` raises for it: kernels may then take it for an index as it is, as JAX's arrays."""


_ARRAYS: Final = (TracedArray, np.ndarray)
_OF_AXES: Final = (int, slice, View)


def _indexed(view: View, parts: list[Any]) -> View:
    """Basic indexing, with one part for each axis and None for new ones."""
    offset, axis = view.offset, 0
    shape: list[int] = []
    strides: list[int] = []
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        n, stride = view.shape[axis], view.strides[axis]
        axis += 1
        if isinstance(part, int):
            if not -n <= part < n:
                raise NotLowered("an index is out of range")
            offset += part % n * stride
            continue
        start, stop, step = part.indices(n)
        if step < 0 or stop <= start:
            raise NotLowered("a slice is empty or runs backwards")
        offset += start * stride
        shape.append(len(range(start, stop, step)))
        strides.append(stride * step)
    return view._replace(offset=offset, shape=tuple(shape), strides=tuple(strides))


@functools.lru_cache(maxsize=4096)
def _loop_dtypes(ufunc: np.ufunc, given: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the loop that NumPy would run for these dtypes of operands (or types of Python's numbers)."""
    if ufunc in _RAISES and not all(one in (float, complex) or getattr(one, "kind", "i") in "fc" for one in given):
        raise NotLowered("its loop may raise an error of Python")
    try:
        return ufunc.resolve_dtypes((*given, None))
    except TypeError:
        raise NotLowered(f"NumPy has no loop of `{ufunc.__name__}` for it") from None


def _where(any_one: TracedArray, condition: Any, x: Any, y: Any) -> TracedArray:
    x, y = (_as_the_other(one, other) for one, other in ((x, y), (y, x)))
    return any_one._new(any_one.to.where(*map(any_one._view_of, (condition, x, y))))


def _as_the_other(x: Any, other: Any) -> Any:
    """One of Python's numbers in the dtype of the array beside it, where it is of its kind."""
    if type(x) not in _SCALARS:
        return x
    if type(other) in _SCALARS or np.result_type(other.dtype, x) != other.dtype:
        raise NotLowered("`where` with numbers of Python")
    return np.array(x, other.dtype)


def _concatenate(any_one: TracedArray, arrays: Any, axis: int = 0) -> TracedArray:
    return any_one._new(any_one.to.concatenated([any_one._view_of(x) for x in arrays], axis))


def _zeros(any_one: TracedArray, shape: Any, dtype: Any) -> TracedArray:
    array = any_one._new(new_array(tuple(shape), np.dtype(dtype)))
    array[...] = np.zeros((), dtype)
    return array


def _stack(any_one: TracedArray, arrays: Any, axis: int = 0) -> TracedArray:
    at = axis % (any_one.ndim + 1)
    index = (slice(None),) * at + (None,)
    views = [TracedArray(any_one._view_of(x), any_one.to)[index].view for x in arrays]
    return any_one._new(any_one.to.concatenated(views, at))


def _moveaxis(_: TracedArray, x: TracedArray, source: Any, destination: Any) -> TracedArray:
    sources, targets = ([i % x.ndim for i in ([one] if isinstance(one, int) else one)] for one in (source, destination))
    order = [i for i in range(x.ndim) if i not in sources]
    for target, i in sorted(zip(targets, sources, strict=True)):
        order.insert(target, i)
    return x.transpose(order)


def _take_along_axis(any_one: TracedArray, x: Any, places: Any, axis: int) -> TracedArray:
    x, places = any_one._view_of(x), any_one._view_of(places)
    return any_one._new(take_along_axis(x, places, axis % len(x.shape), any_one.to))


_FUNCTIONS: Final[dict[Any, Callable[..., TracedArray]]] = {
    np.where: _where,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.zeros: _zeros,
    np.broadcast_to: lambda _, x, shape: x.broadcast_to(tuple(shape)),
    np.reshape: lambda _, x, shape: x.reshape(shape),
    np.transpose: lambda _, x, axes=None: x.transpose(axes),
    np.swapaxes: lambda _, x, a, b: x.swapaxes(a, b),
    np.matrix_transpose: lambda _, x: x.mT,
    np.moveaxis: _moveaxis,
    np.take_along_axis: _take_along_axis,
    np.expand_dims: lambda _, x, axis: _expanded(x, axis),
}


def _expanded(x: TracedArray, axis: int) -> TracedArray:
    return x[(slice(None),) * (axis % (x.ndim + 1)) + (None,)]

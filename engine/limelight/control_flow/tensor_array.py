"""`TensorArray`: a list of tensors of one shape that loops fill, element by element.

It is a structure around one tensor, the stacked elements, and immutable: what writes returns a new array. So gradients,
batches, loops and staged functions take it as they take any nest. Where nothing records or traces, writes are put down
and made together when the elements are next asked for: a loop of n writes copies the elements once, not n times. Else a
write copies them, as `x.at[i].set(v)` does; there a loop that makes one element in each step is a `ll.scan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from limelight.core import dispatch, dtypes, shapes
from limelight.core.devices import CPU0
from limelight.core.dispatch import apply
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.op import get
from limelight.core.shapes import Shape
from limelight.core.tensor import Tensor, TensorLike, as_tensor, constant, wrap
from limelight.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError
from limelight.ops.create.creation import zeros
from limelight.ops.index.element_place import FROM_ZERO
from limelight.ops.index.take import take
from limelight.ops.shape.broadcast import broadcast_to
from limelight.ops.shape.concat import concat
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code.dropped_result import warn_if_dropped
from limelight.user_code.tracebacks import in_place_of_python

_LAST: Final = 2**31 - 2  # `size` is an int32
_LEAST_PUT_DOWN: Final = 64  # writes that may be put down before they are made, beside twice as many as elements


class _Write(NamedTuple):
    """A write that is put down: the ones before it, the place, the value, and how many they are."""

    before: _Write | None
    place: int
    value: np.ndarray[Any, Any]
    length: int

    def made(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A copy of `rows` with all that was written."""
        writes: list[_Write] = [self]
        while (before := writes[-1].before) is not None:
            writes.append(before)
        rows = rows.copy()
        for write in reversed(writes):
            rows[write.place] = write.value
        return rows


class TensorArray:
    """A list of tensors of one dtype and shape, which `write`, `scatter`, `unstack` and `split` fill.

    Immutable: these return a new array, `ta = ta.write(i, x)`. Elements that nobody has written are zeros. It is a
    structure (`ll.nest`): a variable of loops, an argument and a result of staged functions; all that it does is
    differentiable.

    Args:
        dtype: of the elements.
        size: how many; a number or an integer scalar.
        element_shape: the shape of an element. By default that of the first one written; `ll.while_loop` and `ll.scan`
            need it before. Loops that `autograph` converts find it by themselves, but where the body has a `break` or a
            `continue` before the write.
        dynamic_size: whether a write beyond the end makes the array longer. While tracing only a Python number as an
            index can do so. False.

    Raises:
        ArgumentError: `size` is negative.

    >>> import limelight as ll
    >>> ta = ll.TensorArray(ll.float32, 3)
    >>> for i in range(3):
    ...     ta = ta.write(i, ll.constant([1.0, 2.0]) * i)
    >>> ta.stack().tolist()
    [[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]]
    """

    __slots__ = ("__weakref__", "_rows", "_unwritten")
    __limelight_fields__ = ("rows",)
    __limelight_name__ = "TensorArray"
    dynamic_size: ClassVar[bool] = False
    is_shaped: ClassVar[bool] = True
    """Whether it is known what shape an element has."""
    _rows: Tensor
    """The elements, but for the writes that are put down."""
    _unwritten: _Write | None

    def __new__(
        cls,
        dtype: DTypeLike,
        size: int | TensorLike = 0,
        element_shape: Sequence[int | None] | None = None,
        dynamic_size: bool = False,
    ) -> Self:
        shape = None if element_shape is None else shapes.as_shape(element_shape)
        if shape is not None and None in shape:
            shape = None
        if isinstance(size, int) and size < 0:
            raise ArgumentError(f"TensorArray: size must not be negative, got {size}")
        kind = _KINDS[shape is not None, shapes.flag("TensorArray", "dynamic_size", dynamic_size)]
        array: Any = kind.__limelight_from_fields__(_zeros(dtypes.dtype(dtype), size, shape or (0,) * (shape is None)))
        return array  # type: ignore[no-any-return]  # of the class that fits, not of `cls`

    @classmethod
    def __limelight_from_fields__(cls, rows: Any) -> Self:
        return cls._made(rows, None)

    @classmethod
    def _made(cls, rows: Any, unwritten: _Write | None) -> Self:
        array = object.__new__(cls)
        object.__setattr__(array, "_rows", rows)
        object.__setattr__(array, "_unwritten", unwritten)
        return array

    @property
    def rows(self) -> Tensor:
        """The elements, stacked."""
        write = self._unwritten
        if write is not None:  # threads may do it twice, with the same result
            object.__setattr__(self, "_rows", wrap(write.made(self._rows._data)))
            object.__setattr__(self, "_unwritten", None)
        return self._rows

    @in_place_of_python
    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a TensorArray is immutable; write ta = ta.write(i, x), not ta.{name} = ...")

    def __reduce__(self) -> Any:
        return type(self).__limelight_from_fields__, (self.rows,)

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._rows.dtype

    @property
    def element_shape(self) -> Shape | None:
        """The shape of an element; None before the first is written, where it was not given."""
        return self._rows.shape[1:] if self.is_shaped else None

    def size(self) -> Tensor:
        """How many elements there are, an int32 scalar."""
        return as_tensor(self._rows.sizes()[0]).astype(dtypes.int32)

    def write(self, index: TensorLike, value: TensorLike) -> TensorArray:
        """The array with `value` as element `index`, from 0 on.

        Raises OutOfBoundsError for an index that is not there, ShapeError and DTypeError for a value unlike the others.
        Warns (LostChangeWarning) where the result is dropped.
        """
        _warn_if_dropped("write")
        value = self._element("write", value)
        array = self._shaped("write", value.shape)
        array, place = array._grown("write", index)
        before = array._unwritten  # first: another thread that makes them replaces the elements before it drops these
        rows = array._rows
        length = 1 if before is None else before.length + 1
        often = length > _LEAST_PUT_DOWN + 2 * (rows.shape[0] or 0)  # the same places again and again
        if dispatch.active or often or not _is_on_host(place, value, rows):
            return array._with(array.rows.at[place].set(value))
        return type(array)._made(rows, _Write(before, place, np.array(value._data), length))

    def read(self, index: TensorLike) -> Tensor:
        """Element `index`. Raises OutOfBoundsError where there is none, ArgumentError where nothing is written yet."""
        place = self._written("read")._place("read", index)
        last = self._unwritten
        if last is not None and type(place) is int and last.place == place and not dispatch.active:
            return wrap(last.value)  # as a loop reads that goes on from the element before
        row: Tensor = self.rows[place]
        return row

    def stack(self) -> Tensor:
        """All elements, along a new first axis."""
        return self._written("stack").rows

    def gather(self, indices: TensorLike) -> Tensor:
        """The elements `indices`, an integer vector, along a new first axis."""
        return take(self._written("gather").rows, self._places("gather", indices))

    def concat(self) -> Tensor:
        """All elements joined along their first axis. Raises ShapeError for elements that are scalars."""
        rows = self._written("concat").rows
        if rows.ndim < 2:
            raise ShapeError(
                "TensorArray.concat: the elements are scalars, which have no axis to be joined along; use stack()"
            )
        return rows.reshape((-1, *rows.shape[2:])) if None not in rows.shape[2:] else _joined(rows)

    def unstack(self, value: TensorLike) -> TensorArray:
        """The array whose elements are those of `value` along its first axis.

        Raises ShapeError where there are not as many, unless the size is dynamic, or they have another shape.
        """
        _warn_if_dropped("unstack")
        value = self._typed("unstack", value)
        if not value.ndim:
            raise ShapeError(f"TensorArray.unstack: {value.spec} is a scalar, and has no elements along a first axis")
        size, n = self._rows.shape[0], value.shape[0]
        if not self.dynamic_size and None not in (size, n) and size != n:
            raise ShapeError(f"TensorArray.unstack: {value.spec} has {n} elements, the array {size}")
        return self._shaped("unstack", value.shape[1:])._with(value)

    def scatter(self, indices: TensorLike, value: TensorLike) -> TensorArray:
        """The array with the elements of `value`, along its first axis, at `indices`, an integer vector.

        Raises ShapeError unless there are as many of both, OutOfBoundsError for an index that is not there.
        """
        _warn_if_dropped("scatter")
        value = self._typed("scatter", value)
        indices = as_tensor(indices)
        if not value.ndim or indices.ndim != 1 or not _may_equal(value.shape[0], indices.shape[0]):
            raise ShapeError(
                f"TensorArray.scatter: needs a vector of indices and a value with as many elements, got {indices.spec} "
                f"and {value.spec}"
            )
        array = self._shaped("scatter", value.shape[1:])
        if self.dynamic_size and indices.shape[0] and not isinstance(indices, SymbolicTensor):
            array = array._grown("scatter", int(indices.max()))[0]
        return array._with(array.rows.at[array._places("scatter", indices)].set(value))

    def split(self, value: TensorLike, lengths: Sequence[int]) -> TensorArray:
        """The array whose elements are pieces of `value` along its first axis, of the `lengths`, which are equal.

        Raises ShapeError where they are not, or do not make up the axis.
        """
        _warn_if_dropped("split")
        value, pieces = self._typed("split", value), shapes.wholes("TensorArray.split", "a length", lengths)
        if len(set(pieces)) != 1 or not value.ndim or not _may_equal(value.shape[0], sum(pieces)):
            raise ShapeError(
                f"TensorArray.split: pieces of lengths {pieces} of {value.spec}: they must be equal, as elements have "
                "one shape, and make up the first axis; use ll.split for a list of unequal ones"
            )
        return self.unstack(value.reshape((len(pieces), pieces[0], *value.shape[1:])))

    def __repr__(self) -> str:
        element = shapes.show(self._rows.shape[1:]) if self.is_shaped else "not known yet"
        size = f"{self._rows.shape[0]}{' or more' if self.dynamic_size else ''}"
        return f"<TensorArray of {size} {self.dtype.name} elements of shape {element}>"

    # Parts of the above

    def _with(self, rows: Tensor) -> TensorArray:
        return type(self).__limelight_from_fields__(rows)

    def _typed(self, method: str, value: TensorLike) -> Tensor:
        """`value` as a tensor of the array's dtype; Python numbers take it on."""
        if type(value) in (bool, int, float, complex, list):
            return constant(value, self.dtype)
        value = as_tensor(value)
        if value.dtype != self.dtype:
            raise DTypeError(
                f"TensorArray.{method}: the elements are {self.dtype.name}, got {value.spec}; write "
                f"ll.astype(x, ll.{self.dtype.name})"
            )
        return value

    _element = _typed

    def _written(self, method: str) -> TensorArray:
        if not self.is_shaped:
            raise ArgumentError(
                f"TensorArray.{method}: nothing has been written, so nobody knows what shape the elements have; give "
                "element_shape, as in ll.TensorArray(ll.float32, 3, element_shape=())"
            )
        return self

    def _shaped(self, method: str, shape: Shape) -> TensorArray:
        """An array for elements of `shape`. Raises ShapeError where this one has others."""
        if not self.is_shaped:
            return self.shaped_like(shape)
        here = self._rows.shape[1:]
        if len(here) != len(shape) or not all(map(_may_equal, here, shape)):
            raise ShapeError(
                f"TensorArray.{method}: the elements have shape {shapes.show(here)}, got one of {shapes.show(shape)}"
            )
        return self

    def shaped_like(self, shape: Shape) -> TensorArray:
        """The array, into which nothing has been written, for elements of `shape`."""
        kind = _KINDS[True, self.dynamic_size]
        return kind.__limelight_from_fields__(_zeros(self.dtype, self._rows.sizes()[0], shape))

    def _grown(self, method: str, index: Any) -> tuple[TensorArray, Any]:
        """The array, long enough for `index` if it may grow, and the index as a place in it."""
        size = self._rows.shape[0]
        known = isinstance(index, int) or not isinstance(as_tensor(index), SymbolicTensor)
        if self.dynamic_size and not known:
            raise ArgumentError(
                f"TensorArray.{method}: an array of dynamic size cannot grow to an index that is known only at run "
                "time; give the size, as in ll.TensorArray(dtype, n), or collect the elements with ll.scan or ll.map_fn"
            )
        if not self.dynamic_size or size is None or int(index) < size:
            return self, self._place(method, index)
        if int(index) > _LAST:
            raise OutOfBoundsError(f"TensorArray.{method}: index {int(index)} is too large; the last is {_LAST}")
        more = _zeros(self.dtype, int(index) + 1 - size, self._rows.shape[1:])
        array = self._with(concat((self.rows, more)))
        return array, array._place(method, index)

    def _place(self, method: str, index: Any) -> Any:
        """An index, checked as far as it is known: from 0 up to the size, and not from the end."""
        size = self._rows.shape[0]
        if not isinstance(index, int):
            index = as_tensor(index)
            if index.ndim or dtypes.kind(index.dtype) != "integer":
                raise ArgumentError(f"TensorArray.{method}: an index is an integer scalar, got {index.spec}")
            if isinstance(index, SymbolicTensor) or type(index) is not Tensor:
                return self._checked(index)
        if int(index) < 0 or (size is not None and int(index) >= size):
            raise OutOfBoundsError(f"TensorArray.{method}: there is no index {int(index)} in {self}{FROM_ZERO}")
        return int(index)

    def _places(self, method: str, indices: TensorLike) -> Tensor:
        indices = as_tensor(indices)
        if indices.ndim != 1 or (dtypes.kind(indices.dtype) != "integer" and indices.shape != (0,)):
            raise ArgumentError(f"TensorArray.{method}: needs an integer vector of indices, got {indices.spec}")
        return self._checked(indices)

    def _checked(self, indices: Tensor) -> Tensor:
        # As int64, or a short dtype could not say how many there are; but from 2**63 on uint64 would turn negative.
        wide = dtypes.uint64 if indices.dtype == dtypes.uint64 else dtypes.int64
        size = as_tensor(self._rows.sizes()[0]).astype(wide)
        places: Tensor = apply(get("element_place"), (indices.astype(wide), size))
        return places


class DynamicTensorArray(TensorArray):
    """One that grows."""

    __slots__ = ()
    dynamic_size = True


class UnshapedTensorArray(TensorArray):
    """One into which nothing has been written, and of which nobody knows what shape its elements will have."""

    __slots__ = ()
    __limelight_name__ = "unwritten TensorArray"
    __limelight_advice__ = (
        ": an array into which nothing is written has no element shape, which the first write gives it; write "
        "ll.TensorArray(dtype, size, element_shape=...), with () for scalars"
    )
    is_shaped = False


class UnshapedDynamicTensorArray(UnshapedTensorArray):
    """One of these that grows."""

    __slots__ = ()
    dynamic_size = True


_KINDS: dict[tuple[bool, bool], type[TensorArray]] = {
    (kind.is_shaped, kind.dynamic_size): kind
    for kind in (TensorArray, DynamicTensorArray, UnshapedTensorArray, UnshapedDynamicTensorArray)
}


def _is_on_host(place: Any, value: Tensor, rows: Tensor) -> bool:
    """Whether a write may be put down: of a value that is there, as NumPy's array, to a place that is a number."""
    return (
        type(place) is int and type(value) is Tensor and type(rows) is Tensor and value._device is rows._device is CPU0
    )


def _zeros(dtype: DType, size: Any, shape: Shape) -> Tensor:
    """Zeros of shape (size, *shape); the size may be a tensor."""
    if isinstance(size, int) and None not in shape:
        return zeros((size, *shape), dtype=dtype)  # type: ignore[arg-type]  # no size is None
    if None in shape:
        raise ShapeError(
            f"TensorArray: elements of shape {shapes.show(shape)}: their sizes must be known when the array is made; "
            "give them in the TensorSpec"
        )
    size = as_tensor(size).reshape((1,)).astype(dtypes.int64)
    return broadcast_to(constant(0, dtype), concat((size, constant(list(shape), dtypes.int64))))


def _joined(rows: Tensor) -> Tensor:
    sizes = rows.sizes()
    return rows.reshape(concat(((sizes[:1] * sizes[1:2]), sizes[2:])))


def _may_equal(m: int | None, n: int | None) -> bool:
    return None in (m, n) or m == n


def _warn_if_dropped(method: str) -> None:
    warn_if_dropped(
        f"TensorArray.{method} returns a new array, and this one stays as it is", f"array = array.{method}(...)", 3
    )

"""Handles to values that are different for each example, as the code for one example sees them."""

from __future__ import annotations

import functools
from typing import Any, Final

from limelight.core import dispatch, shapes
from limelight.core.devices import Device
from limelight.core.dtypes import DType
from limelight.core.op import get
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor
from limelight.errors import LeakedTensorError, LimelightError, SymbolicValueError
from limelight.user_code import source_line


class Batched(Tensor):
    """One example's tensor, standing for all examples' at once: they lie along the first axis of `_value`."""

    __slots__ = ("_batcher", "_value")
    _batcher: Any  # the Batcher, which knows this class
    _value: Tensor

    @property
    def _data(self) -> Any:  # stands where a tensor keeps its array, and explains
        raise _no_value(self)

    @property
    def dtype(self) -> DType:
        return self._value.dtype

    @property
    def shape(self) -> shapes.Shape:
        return self._value.shape[1:]

    @property
    def ndim(self) -> int:
        return len(self._value.shape) - 1

    @property
    def nbytes(self) -> int:
        return self.spec.nbytes or 0

    @property
    def device(self) -> Device:
        """Where all examples' values are: while tracing only the value itself knows, not its placeholder."""
        return self._value.device

    @property
    def spec(self) -> TensorSpec:
        return known(self.shape, self.dtype)

    def sizes(self) -> Any:
        return self.shape if shapes.is_static(self.shape) else dispatch.apply(get("shape_of"), (self,))

    def __format__(self, form: str) -> str:
        if form:
            raise _no_value(self)
        return repr(self)

    def __repr__(self) -> str:
        return f"<one example's {self.spec} in {self._batcher}>"


class Ragged(Batched):
    """One example's tensor where examples differ in shape, or may: each lies by itself in `values`.

    Residuals are such tensors, where examples make different numbers of steps, and what is computed with them; a result
    of a vectorised function is not.
    """

    __slots__ = ("_dtype", "_shape", "op", "values")
    op: str  # the op that gave it, for the error of who returns it
    values: list[Tensor]
    _dtype: DType
    _shape: shapes.Shape

    @property
    def device(self) -> Device:
        return self.values[0].device

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> shapes.Shape:
        """The sizes that all examples are known to share; None for the others."""
        return self._shape

    @property
    def ndim(self) -> int:
        return len(self._shape)


class BatchedObject:
    """An opaque Python value for each example."""

    __slots__ = ("_batcher", "_device", "_uid", "dtype", "shape", "spec", "values")

    def __init__(self, values: list[Any], batcher: Any) -> None:
        self.values = values
        self._batcher = batcher
        self._device = values[0]._device if values and hasattr(values[0], "_device") else None
        self._uid = 0
        self.dtype = None
        self.shape = ()
        self.spec = values[0].spec if values else None


class BatchedResource:
    """What a generator is inside: one example's, where each example has its own; mixed into the generator's class."""

    __slots__ = ()
    _batcher: Any
    values: list[Any]

    @property
    def _data(self) -> Any:
        here = source_line.here()
        if self._batcher.finished:
            raise LeakedTensorError(f"one example's generator leaked out of {self._batcher}, which has ended{here}")
        raise SymbolicValueError(f"one example's generator in {self._batcher}{here}: there is no one state to copy")

    def split(self, n: int = 2) -> list[Any]:
        """Generators split off that of each example."""
        parts = [x.split(n) for x in self.values]
        return [batched_resource(list(part), self._batcher) for part in zip(*parts, strict=True)]

    def __repr__(self) -> str:
        return f"<one example's generator in {self._batcher}>"


HANDLES: Final[set[type]] = {Batched, Ragged, BatchedObject}
"""The classes of handles to values that are different for each example."""


@functools.cache
def _class_of_one(kind: type) -> type:
    members = {"__slots__": ("_batcher", "values"), "__doc__": BatchedResource.__doc__}
    one = type(f"Batched{kind.__name__}", (BatchedResource, kind), members)
    HANDLES.add(one)
    return one


def batched_resource(values: list[Any], batcher: Any) -> Any:
    """The handle for one example's of `values`, a generator for each example."""
    kind: Any = type(values[0])
    handle: Any = object.__new__(_class_of_one(kind))
    handle.values = values
    handle.name = values[0].name
    handle.spec = values[0].spec
    handle._batcher = batcher
    handle._device = values[0]._device
    handle._uid = 0
    return handle


def _no_value(x: Batched) -> LimelightError:
    here = source_line.here()
    if x._batcher.finished:
        return LeakedTensorError(
            f"one example's tensor leaked out of {x._batcher}, which has ended{here}: {x.spec}. It has no value "
            "outside. Return it from the function instead of storing it in a global, list or attribute"
        )
    return SymbolicValueError(
        f"the value of one example's tensor, {x.spec} in {x._batcher}{here}: it is different for each example, so "
        "it has no NumPy array and cannot decide an `if` or `while`. For a choice by value write ll.where(pred, x, y) "
        "or ll.cond(pred, true_fn, false_fn), for arbitrary Python on real values ll.py_func(fn, inputs, output_specs)"
    )


def batched(value: Tensor, batcher: Any) -> Batched:
    """The handle for one example of `value`, whose first axis has the examples."""
    handle = object.__new__(Batched)
    handle._value = value
    handle._batcher = batcher
    handle._device = value._device
    handle._uid = 0
    return handle


def ragged(values: list[Tensor], op: str, batcher: Any) -> Ragged:
    """The handle for one example of `values`, one for each example, which have one dtype and one number of axes."""
    handle = object.__new__(Ragged)
    handle.values = values
    handle.op = op
    handle._batcher = batcher
    handle._device = values[0]._device
    handle._uid = 0
    handle._dtype = values[0].dtype
    handle._shape = functools.reduce(_common_shape, [x.shape for x in values])
    return handle


def _common_shape(a: shapes.Shape, b: shapes.Shape) -> shapes.Shape:
    shape = shapes.generalise(a, b)
    assert shape is not None, "results of one op have one number of axes"
    return shape

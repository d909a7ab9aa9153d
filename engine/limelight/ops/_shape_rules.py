"""Rules for the shape and dtype of results that many ops share: functions from specs (and parameters) to a spec.

Integers are summed and multiplied in at least 32 bits and else keep their dtype. Booleans are no numbers: they must be
cast before they are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.dtypes import DType
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.errors import ArgumentError, ShapeError

Axis = int | tuple[int, ...] | None
_REAL: Final = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
_WIDER: Final = {
    dtypes.int8: dtypes.int32,
    dtypes.int16: dtypes.int32,
    dtypes.uint8: dtypes.uint32,
    dtypes.uint16: dtypes.uint32,
}
TOTAL: Final[dict[DType, DType]] = {dtype: _WIDER.get(dtype, dtype) for dtype in dtypes.ALL}
"""The dtype of a sum or product: the input's own, but at least 32 bits for integers, as the Array API has it."""

COMPLEX: Final = frozenset(_REAL)

SHORT: Final = frozenset([dtypes.float16, dtypes.bfloat16])
"""The floats in which partial sums lose too much: kernels add them up in float32."""


def elementwise(rule: Callable[..., TensorSpec]) -> Callable[..., TensorSpec]:
    """Marks a shape rule whose ops compute each element from those at its place (`Op.elementwise`).

    Where an op has such a rule but is another kind (the inverse of a matrix), it says `elementwise=False`.
    """
    rule.elementwise = True  # type: ignore[attr-defined]  # functions take attributes
    return rule


@elementwise
def same(x: TensorSpec, *attrs: Any) -> TensorSpec:
    """The output is as the input."""
    return x if type(x) is TensorSpec and x.name is None else known(x.shape, x.dtype)  # tracing makes many


@elementwise
def real_of(x: TensorSpec) -> TensorSpec:
    """As the input, but real where the input is complex (abs, real, imag)."""
    return known(x.shape, _REAL.get(x.dtype, x.dtype))


@elementwise
def predicate(x: TensorSpec) -> TensorSpec:
    """A boolean for each element."""
    return known(x.shape, dtypes.bool_)


def broadcast(name: str) -> Callable[[TensorSpec, TensorSpec], TensorSpec]:
    """The operands' common shape, in their own dtype; `name` is the op's, for messages."""

    @elementwise
    def infer(x: TensorSpec, y: TensorSpec) -> TensorSpec:
        if x.shape == y.shape and None not in x.shape:
            return same(x)
        return known(shapes.broadcast(name, x.shape, y.shape, of=(x, y)), x.dtype)

    return infer


def compare(name: str) -> Callable[[TensorSpec, TensorSpec], TensorSpec]:
    """A boolean for each element of the operands' common shape."""

    @elementwise
    def infer(x: TensorSpec, y: TensorSpec) -> TensorSpec:
        return known(shapes.broadcast(name, x.shape, y.shape, of=(x, y)), dtypes.bool_)

    return infer


def own_dtype(dtype: DType) -> DType:
    """For `reduction`: the result has the dtype of the input."""
    return dtype


def real_dtype(dtype: DType) -> DType:
    """For `reduction`: the result is real, in the precision of the input."""
    return _REAL.get(dtype, dtype)


def reduction(name: str, dtype: Callable[[DType], DType], empty: bool = True) -> Callable[..., TensorSpec]:
    """The input without the axes `axis`, as `dtype(input's dtype)`; `empty=False` where no elements have no result."""

    def infer(x: TensorSpec, axis: Axis, keepdims: bool, *attrs: Any) -> TensorSpec:
        check_keepdims(name, keepdims)
        over = shapes.axes(name, x.rank, axis)
        if not empty and any(x.shape[i] == 0 for i in over):
            raise ShapeError(f"{name}: {x} has no elements along axis {axis}, and so no {name}")
        return known(shapes.reduce(x.shape, over, keepdims), dtype(x.dtype))

    return infer


def check_keepdims(name: str, keepdims: Any) -> None:
    """Raises ArgumentError for what is no flag: in NumPy a dtype or an array for the result stands at its place."""
    if not isinstance(keepdims, (bool, int, np.bool_)):
        raise ArgumentError(f"{name}: keepdims must be True or False, got {keepdims!r}; others go by name")


def axis_attr(axis: int | Sequence[int] | None) -> Axis:
    """`axis` as it stands in a graph: an int, a tuple of ints, or None."""
    if axis is None or type(axis) is int:
        return axis
    if isinstance(axis, (tuple, list)):
        return tuple([_as_int(a) for a in axis])
    return _as_int(axis)


def _as_int(axis: Any) -> int:
    """NumPy's integers as Python's; whatever else it is, the op's shape rule objects to it by the op's name.

    Raises ArgumentError for a tensor or an array with axes, which somebody takes for a second operand.
    """
    if getattr(axis, "ndim", 0):
        got = getattr(axis, "spec", None) or f"an array of shape {axis.shape}"
        raise ArgumentError(
            f"axis must be an int, a tuple of ints or None, got {got}; of two tensors, element by element, write "
            "ll.maximum(x, y), ll.minimum(x, y), or x + y"
        )
    number: int = axis.__index__() if hasattr(axis, "__index__") else axis
    return number


def check_axis_size(name: str, shape: Shape, axis: int) -> int:
    """The size of `axis`, which must be known; `name` is the op's, for the message."""
    size = shape[axis]
    if size is None:
        raise ShapeError(
            f"{name}: axis {axis} of {shapes.show(shape)} must have a known size; give it in the TensorSpec"
        )
    return size

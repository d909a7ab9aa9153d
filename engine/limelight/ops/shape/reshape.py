"""The shape of a tensor, read and changed: `shape_of`, `reshape`, `ravel`, `expand_dims`, `squeeze`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.devices import CPU0
from limelight.core.dispatch import active
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method, wrap
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._given_shape import defop_with_shape, sizes_as_vector
from limelight.ops._shape_rules import axis_attr

__all__ = ["expand_dims", "ravel", "reshape", "shape_of", "squeeze"]

# shape_of

_shape_of = entry_point(defop(
    "shape_of",
    inputs="x:any",
    infer=lambda x: known((x.rank,), dtypes.int64),
    kernel=lambda xp, x: xp.asarray(x.shape, dtype=np.int64),
    why_no_gradient="a shape does not depend on the values",
    of_shapes=True,
    batching="shape_of",
))  # fmt: skip


def shape_of(x: TensorLike, /) -> Tensor:
    """The shape of `x` as an int64 vector of length `x.ndim`: in a trace with unknown sizes, known at run time.

    >>> import limelight as ll
    >>> ll.shape_of(ll.zeros((2, 3))).tolist()
    [2, 3]
    """
    return _shape_of((x if isinstance(x, Tensor) or hasattr(x, "shape") else as_tensor(x),))


# reshape


def _reshape_infer(x: TensorSpec, shape: Shape) -> TensorSpec:
    if shape.count(-1) > 1:
        raise ShapeError(f"reshape: only one size may be -1, got {shapes.show(shape)}")
    if x.size is None or None in shape:
        return known(tuple([None if n == -1 else n for n in shape]), x.dtype)
    n_elements = prod([n for n in shape if n is not None and n != -1])
    fits = x.size == n_elements if -1 not in shape else n_elements and x.size % n_elements == 0
    if not fits:
        raise ShapeError(
            f"reshape: {x} has {x.size} elements and does not fit into {shapes.show(shape)}; "
            "the product of the sizes must stay the same (one size may be -1)"
        )
    return known(tuple([x.size // n_elements if n == -1 else n for n in shape]), x.dtype)


_reshape = defop_with_shape(
    "reshape",
    view=True,
    inputs="x",
    infer=_reshape_infer,
    kernel=lambda xp, x, shape: x.reshape(shape),
    vjp={"x": lambda g, x_shape: g.reshape(x_shape)},
    linear="x",
    maths={"x": "x̄ = reshape(ȳ, shape of x)"},
    batching="reshape",
    dynamic_batching="reshape_dynamic",
)


@method("reshape")
def reshape(x: TensorLike, /, shape: int | Sequence[int] | Tensor, *more: int, copy: bool | None = None) -> Tensor:
    """The elements of `x`, in row-major order, in a new shape.

    Args:
        x: any shape and dtype.
        shape: the sizes, one of which may be -1, or while tracing None, as `x.shape` has it for a size that is unknown;
            may be an integer vector (see `shape_of`).
        *more: the other sizes, where they are not a tuple: `x.reshape(2, -1)`.
        copy: makes no difference: as tensors are immutable nobody can tell a copy.

    Returns:
        A tensor of that shape.

    Raises:
        ShapeError: the number of elements would change, or sizes are negative or missing.
        ArgumentError: the sizes are a tuple, and something follows it: elements have no other order.

    >>> import limelight as ll
    >>> ll.reshape(ll.arange(6), (2, -1)).shape, ll.arange(6).reshape(3, 2).shape
    ((2, 3), (3, 2))
    """
    if more:
        shape = _joined(shape, more)
    if type(shape) is tuple and type(x) is Tensor and x._device is CPU0 and not active:
        try:
            data = x._data.reshape(shape)
            if data.shape == shape or -1 in shape:  # NumPy takes any negative size for -1
                return wrap(data)
        except (TypeError, ValueError):
            pass  # the long way round says what is wrong
    if isinstance(shape, Tensor):
        return _reshape((x,), shape)
    vector = sizes_as_vector(shape)
    return _reshape((x,), _sizes(x, shape) if vector is None else vector)


@method("ravel")
def ravel(x: TensorLike, /) -> Tensor:
    """The elements of `x` as a vector, in row-major order.

    >>> import limelight as ll
    >>> ll.ravel(ll.zeros((2, 3))).shape
    (6,)
    """
    return reshape(x, (-1,))


def _joined(first: Any, more: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sizes of `x.reshape(a, b)`, as NumPy's and PyTorch's arrays take them."""
    if isinstance(first, (tuple, list)) or isinstance(more[-1], str):
        raise ArgumentError("reshape: elements are in row-major order, and no other can be asked for")
    return (first, *more)


def _sizes(x: TensorLike, shape: Any) -> tuple[int, ...]:
    if isinstance(shape, int):
        return (shape,)
    if shape is None:
        raise ShapeError("reshape: needs sizes, got None; write -1 for a vector of all elements")
    if isinstance(shape, str) or not hasattr(shape, "__iter__"):
        return (shapes.as_size("reshape", shape),)
    if None in shape:
        shape = _with_the_unknown_size(getattr(x, "shape", ()), shape)
    sizes = tuple([n if type(n) is int else shapes.as_size("reshape", n) for n in shape])
    if any(n < -1 for n in sizes):
        raise ShapeError(f"reshape: sizes must be at least 0, or -1 for one of them, got {shapes.show(sizes)}")
    return sizes


def _with_the_unknown_size(given: Shape, shape: Sequence[int | None]) -> list[int]:
    """`shape` with -1 for None, which a shape has for its one unknown size: only where no other is possible."""
    others = [n for n in shape if n is not None and n != -1]
    told = shapes.show(tuple(shape))
    if not active or given.count(None) != 1 or list(shape).count(None) != 1 or list(shape).count(-1) > 1:
        raise ShapeError(
            f"reshape: {told} has None where a size is unknown while tracing, which does not say which; write "
            "`b, t, d = x.sizes()` for `b, t, d = x.shape`, whose sizes may be unknown, or -1 for the unknown one and "
            "numbers for all others"
        )
    known, asked = (prod(map(operator.index, [n for n in sizes if n is not None])) for sizes in (given, others))
    if -1 in shape and asked and known % asked == 0 and known:
        return [-1 if n is None else known // asked if n == -1 else n for n in shape]
    if -1 in shape or known != asked or not known:
        raise ShapeError(
            f"reshape: None in {told} is the unknown size of {shapes.show(given)}, and then the number of elements "
            "would change; write -1 for a size that follows from the others"
        )
    return [-1 if n is None else n for n in shape]


# expand_dims and squeeze


@functools.lru_cache(maxsize=256)
def _expansion(rank: int, axis: int | tuple[int, ...]) -> tuple[Any, ...]:
    """The index that inserts axes: None at their places in the result."""
    wanted = axis if isinstance(axis, tuple) else (axis,)
    places = shapes.axes("expand_dims", rank + len(wanted), wanted)
    return tuple([None if i in places else slice(None) for i in range(rank + len(wanted))])


def _expand_dims_infer(x: TensorSpec, axis: int | tuple[int, ...]) -> TensorSpec:
    sizes = iter(x.shape)
    return known(tuple([1 if part is None else next(sizes) for part in _expansion(x.rank, axis)]), x.dtype)


_expand_dims: EntryPoint = entry_point(defop(
    "expand_dims",
    view=True,
    inputs="x",
    attrs="axis",
    infer=_expand_dims_infer,
    kernel=lambda xp, x, axis: x[_expansion(x.ndim, axis)],
    vjp={"x": lambda g, axis: _squeeze(g, axis)},
    linear="x",
    maths={"x": "x̄ = ȳ without the axis"},
    batching="expand_dims",
))  # fmt: skip


@method("expand_dims")
def expand_dims(x: TensorLike, /, axis: int | Sequence[int] = 0) -> Tensor:
    """`x` with new axes of size 1 at the places `axis` of the result.

    Raises ArgumentError for a place that the result does not have.

    >>> import limelight as ll
    >>> ll.expand_dims(ll.zeros((2, 3)), axis=-1).shape
    (2, 3, 1)
    """
    return _expand_dims(x, axis_attr(axis))


def _squeeze_infer(x: TensorSpec, axis: int | tuple[int, ...]) -> TensorSpec:
    over = shapes.axes("squeeze", x.rank, axis)
    for i in over:
        if x.shape[i] not in (1, None):
            raise ShapeError(f"squeeze: axis {i} of {x} has size {x.shape[i]}; only axes of size 1 can be dropped")
    return known(shapes.reduce(x.shape, over, False), x.dtype)


_squeeze: EntryPoint = entry_point(defop(
    "squeeze",
    view=True,
    inputs="x",
    attrs="axis",
    infer=_squeeze_infer,
    kernel=lambda xp, x, axis: x.squeeze(axis),
    vjp={"x": lambda g, axis: _expand_dims(g, axis)},
    linear="x",
    maths={"x": "x̄ = ȳ with the axis back"},
    batching="along_axis",
))  # fmt: skip


@method("squeeze")
def squeeze(x: TensorLike, /, axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` without the axes `axis`, which must have size 1; by default without all of that size.

    Raises ShapeError where one of `axis` has another size, or, without `axis`, where a size is unknown while tracing.

    >>> import limelight as ll
    >>> ll.squeeze(ll.zeros((2, 1, 3)), axis=1).shape
    (2, 3)
    """
    if axis is None:
        x = as_tensor(x)
        if not shapes.is_static(x.shape):
            raise ShapeError(f"squeeze: which axes of {x.spec} have size 1 is unknown while tracing; write axis=...")
        axis = [i for i, n in enumerate(x.shape) if n == 1]
    return _squeeze(x, axis_attr(axis))

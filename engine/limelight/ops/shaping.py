"""Shapes of tensors: reading, changing, broadcasting and summing back to them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from limelight import dtypes, shapes
from limelight.errors import ShapeError
from limelight.eager import entry
from limelight.registry import defop
from limelight.shapes import Shape
from limelight.spec import TensorSpec, known
from limelight.tensor import Tensor, TensorLike, as_tensor, method


def _plain(shape: Any) -> Shape | None:
    """`shape` as a tuple of ints, or None when it is a tensor (a shape that is known only at run time)."""
    return None if isinstance(shape, Tensor) else shapes.as_shape(shape)


# shape_of

_shape_of = entry(defop(
    "shape_of",
    inputs="x:any",
    infer=lambda x: known((x.rank,), dtypes.int64),
    kernel=lambda xp, x: np.array(x.shape, dtype=np.int64),
    why_no_gradient="a shape does not depend on the values",
))  # fmt: skip


def shape_of(x: TensorLike, /) -> Tensor:
    """The shape of `x` as an int64 vector of length `x.ndim`: in a trace with unknown sizes, known at run time.

    >>> import limelight as ll
    >>> ll.shape_of(ll.zeros((2, 3))).tolist()
    [2, 3]
    """
    found: Tensor = _shape_of((x,))
    return found


# reshape


def _reshape_infer(x: TensorSpec, shape: Shape) -> TensorSpec:
    sizes = [n for n in shape if n != -1]
    if len(shape) - len(sizes) > 1:
        raise ShapeError(f"reshape: only one size may be -1, got {shapes.show(shape)}")
    total, given = x.size, prod(n for n in sizes if n is not None)
    if total is None:
        return known(tuple(_unknown_size(x.shape, shape) if n == -1 else n for n in shape), x.dtype)
    fits = total == given if -1 not in shape else given and total % given == 0
    if not fits and not (total == given == 0 and -1 not in shape):
        raise ShapeError(
            f"reshape: {x} has {total} elements and does not fit into {shapes.show(shape)}; "
            "the product of the sizes must stay the same (one size may be -1)"
        )
    return known(tuple(total // given if n == -1 else n for n in shape), x.dtype)


def _unknown_size(old: Shape, new: Shape) -> int | None:
    """The size behind -1 when the only unknown size of `old` stays a size of its own."""
    rest_old = prod(n for n in old if n is not None)
    rest_new = prod(n for n in new if n not in (None, -1))
    return None if old.count(None) + new.count(None) > 0 or not rest_new else rest_old // rest_new


_reshape = entry(defop(
    "reshape",
    inputs="x",
    attrs="shape",
    infer=_reshape_infer,
    kernel=lambda xp, x, shape: x.reshape(shape),
    vjp={"x": lambda g, x_shape: g.reshape(x_shape)},
    maths={"x": "x̄ = reshape(ȳ, shape of x)"},
))  # fmt: skip

_reshape_dynamic = entry(defop(
    "reshape_dynamic",
    inputs="x shape:integer",
    attrs="rank",
    infer=lambda x, shape, rank: known((None,) * rank, x.dtype),
    kernel=lambda xp, x, shape, rank: x.reshape(tuple(int(n) for n in shape)),
    vjp={"x": lambda g, x_shape: g.reshape(x_shape)},
    maths={"x": "x̄ = reshape(ȳ, shape of x)"},
))  # fmt: skip


@method("reshape")
def reshape(x: TensorLike, shape: int | Sequence[int] | Tensor, /) -> Tensor:
    """The elements of `x`, in row-major order, in a new shape; one size may be -1.

    `shape` may be an integer vector (see `shape_of`). Raises ShapeError when the number of elements would change.

    >>> import limelight as ll
    >>> ll.reshape(ll.arange(6), (2, -1)).shape
    (2, 3)
    """
    if isinstance(shape, Tensor):
        found: Tensor = _reshape_dynamic((x, shape), _rank_of(shape))
        return found
    wanted = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    result: Tensor = _reshape(x, wanted)
    return result


def _rank_of(shape: Tensor) -> int:
    if shape.ndim != 1 or shape.shape[0] is None:
        raise ShapeError(f"a shape must be a vector of known length, got {shape.spec}")
    return shape.shape[0]


# broadcast_to and its transpose, sum_to


def _broadcast_to_infer(x: TensorSpec, shape: Shape) -> TensorSpec:
    if shapes.broadcast("broadcast_to", x.shape, shape) != shape and None not in x.shape:
        raise ShapeError(f"broadcast_to: {x} does not broadcast to {shapes.show(shape)}; sizes must be equal or 1")
    return known(shape, x.dtype)


_broadcast_to = entry(defop(
    "broadcast_to",
    inputs="x",
    attrs="shape",
    infer=_broadcast_to_infer,
    kernel=lambda xp, x, shape: xp.broadcast_to(x, shape),
    vjp={"x": lambda g, x_shape: g.sum_to(x_shape)},
    maths={"x": "x̄ = ȳ summed over the repeated axes"},
))  # fmt: skip

_broadcast_to_dynamic = entry(defop(
    "broadcast_to_dynamic",
    inputs="x shape:integer",
    attrs="rank",
    infer=lambda x, shape, rank: known((None,) * rank, x.dtype),
    kernel=lambda xp, x, shape, rank: xp.broadcast_to(x, tuple(int(n) for n in shape)),
    vjp={"x": lambda g, x_shape: g.sum_to(x_shape)},
    maths={"x": "x̄ = ȳ summed over the repeated axes"},
))  # fmt: skip


@method("broadcast_to")
def broadcast_to(x: TensorLike, shape: int | Sequence[int] | Tensor, /) -> Tensor:
    """`x` repeated along new axes and axes of size 1 until it has `shape`.

    Raises ShapeError when `x` does not broadcast to it.

    >>> import limelight as ll
    >>> ll.broadcast_to(ll.constant([1.0, 2.0]), (3, 2)).shape
    (3, 2)
    """
    x = as_tensor(x)
    if isinstance(shape, Tensor):
        found: Tensor = _broadcast_to_dynamic((x, shape), _rank_of(shape))
        return found
    wanted = shapes.as_shape(shape)
    result: Tensor = x if x.shape == wanted else _broadcast_to(x, wanted)
    return result


def _sum_to(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    if x.shape == shape:
        return x
    lead = x.ndim - len(shape)
    over = tuple(range(lead)) + tuple(lead + i for i, n in enumerate(shape) if n == 1 and x.shape[lead + i] != 1)
    return x.sum(over, dtype=x.dtype).reshape(shape)


def _sum_to_infer(x: TensorSpec, shape: Shape) -> TensorSpec:
    if len(shape) > x.rank or shapes.broadcast("sum_to", x.shape, shape) != x.shape and None not in x.shape:
        raise ShapeError(f"sum_to: {x} was not broadcast from {shapes.show(shape)}")
    return known(shape, x.dtype)


_sum_to_static = entry(defop(
    "sum_to",
    inputs="x",
    attrs="shape",
    infer=_sum_to_infer,
    kernel=_sum_to,
    accepts="numeric",
    vjp={"x": lambda g, x_shape: g.broadcast_to(x_shape)},
    maths={"x": "x̄ = ȳ broadcast to the shape of x"},
))  # fmt: skip

_sum_to_dynamic = entry(defop(
    "sum_to_dynamic",
    inputs="x shape:integer",
    attrs="rank",
    infer=lambda x, shape, rank: known((None,) * rank, x.dtype),
    kernel=lambda xp, x, shape, rank: _sum_to(xp, x, tuple(int(n) for n in shape)),
    accepts="numeric",
    vjp={"x": lambda g, x_shape: g.broadcast_to(x_shape)},
    maths={"x": "x̄ = ȳ broadcast to the shape of x"},
))  # fmt: skip


@method("sum_to")
def sum_to(x: TensorLike, shape: Sequence[int] | Tensor, /) -> Tensor:
    """The transpose of `broadcast_to`: sums over the axes along which something of `shape` was repeated to give `x`.

    >>> import limelight as ll
    >>> ll.sum_to(ll.ones((3, 2)), (1, 2)).tolist()
    [[3.0, 3.0]]
    """
    x = as_tensor(x)
    if isinstance(shape, Tensor):
        found: Tensor = _sum_to_dynamic((x, shape), _rank_of(shape))
        return found
    wanted = tuple(shape)
    result: Tensor = x if x.shape == wanted else _sum_to_static(x, wanted)
    return result

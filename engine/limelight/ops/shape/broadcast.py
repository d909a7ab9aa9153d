"""Repeating to a shape, and summing back to one: `broadcast_to`, `sum_to`, `broadcast_arrays`, `meshgrid`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._given_shape import as_shape, defop_with_shape
from limelight.ops._gpu_reductions import reduced
from limelight.ops._kernel_parts import MOST_SUMMED, QUICK, add_reduce, ones, sum_by_ones
from limelight.ops._shape_rules import SHORT

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "meshgrid", "sum_to"]

# broadcast_to and its transpose, sum_to

MOST_REPEATED: Final = 4096
"""So few floats are multiplied with ones, 250 ns instead of the 1800 that a view takes; of more the memory matters."""


def _broadcast_to_infer(x: TensorSpec, shape: Shape) -> TensorSpec:
    if None in shape:
        return known(shape, x.dtype)
    if shapes.broadcast("broadcast_to", x.shape, shape) != shape:
        raise ShapeError(f"broadcast_to: {x} does not broadcast to {shapes.show(shape)}; sizes must be equal or 1")
    return known(shape, x.dtype)


def _broadcast_to_kernel(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    if xp is np and shape and x.dtype in QUICK and 0 < math.prod(shape) <= MOST_REPEATED:
        # Not of complex numbers: `inf * (1 + 0j)` has a part that is NaN.
        repeated = np.multiply(x, ones(shape, x.dtype))
        if repeated.shape == shape:
            return repeated
    if xp is np and x.ndim == 0:  # the gradient of a total: NumPy's function would look at axes for some microseconds
        try:
            return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
        except TypeError:  # of a stand-in for an array (executors.loops)
            pass
    return xp.broadcast_to(x, shape)


_broadcast_to = defop_with_shape(
    "broadcast_to",
    inputs="x",
    infer=_broadcast_to_infer,
    kernel=_broadcast_to_kernel,
    vjp={"x": lambda g, x_shape: g.sum_to(x_shape)},
    linear="x",
    maths={"x": "x̄ = ȳ summed over the repeated axes"},
    batching="broadcast_to",
    dynamic_batching="broadcast_to_dynamic",
)


@method("broadcast_to")
def broadcast_to(x: TensorLike, /, shape: int | Sequence[int] | Tensor) -> Tensor:
    """`x` repeated along new axes and axes of size 1 until it has `shape`; `x` itself where it has that shape already.

    Raises ShapeError when `x` does not broadcast to it.

    >>> import limelight as ll
    >>> ll.broadcast_to(ll.constant([1.0, 2.0]), (3, 2)).shape
    (3, 2)
    """
    x, wanted = as_tensor(x), as_shape(shape)
    return x if isinstance(wanted, tuple) and x.shape == wanted else _broadcast_to((x,), wanted)


def _sum_to_kernel(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    if x.shape == shape:
        return x
    lead = x.ndim - len(shape)
    over = tuple([i for i, n in enumerate(x.shape) if i < lead or (shape[i - lead] == 1 and n != 1)])
    if xp is np and x.dtype in QUICK and 1 < x.size <= MOST_SUMMED and x.ndim <= 2:
        if not shape:
            return x.ravel().dot(ones(x.size, x.dtype))
        if len(over) == 1 and x.ndim == 2:
            return sum_by_ones(x, over[0], not lead).reshape(shape)  # which checks sizes that were not known
    dtype = dtypes.float32 if x.dtype in SHORT else x.dtype
    total = add_reduce(x, over, dtype) if xp is np else reduced(xp, "sum", x, over, False, dtype=dtype)
    return total.reshape(shape).astype(x.dtype, copy=False)


def _sum_to_infer(x: TensorSpec, shape: Shape) -> TensorSpec:
    if len(shape) > x.rank or (
        None not in (*shape, *x.shape) and shapes.broadcast("sum_to", x.shape, shape) != x.shape
    ):
        raise ShapeError(f"sum_to: {x} was not broadcast from {shapes.show(shape)}")
    return known(shape, x.dtype)


_sum_to = defop_with_shape(
    "sum_to",
    inputs="x",
    infer=_sum_to_infer,
    kernel=_sum_to_kernel,
    accepts="numeric",
    vjp={"x": lambda g, x_shape: g.broadcast_to(x_shape)},
    linear="x",
    maths={"x": "x̄ = ȳ broadcast to the shape of x"},
    batching="sum_to",
    dynamic_batching="sum_to_dynamic",
)


@method("sum_to")
def sum_to(x: TensorLike, shape: Sequence[int] | Tensor, /) -> Tensor:
    """The transpose of `broadcast_to`: sums over the axes along which something of `shape` was repeated to give `x`.

    >>> import limelight as ll
    >>> ll.sum_to(ll.ones((3, 2)), (1, 2)).tolist()
    [[3.0, 3.0]]
    """
    if type(x) is Tensor and type(shape) is tuple and x._data.shape == shape:  # nothing was repeated
        return x
    if not isinstance(x, Tensor):
        x = as_tensor(x)
    if type(shape) is not tuple and not isinstance(shape, Tensor):
        shape = tuple(shape)
    return x if isinstance(shape, tuple) and x.shape == shape else _sum_to((x,), shape)


# broadcast_sizes: the common shape of shapes that are known at run time


def _broadcast_sizes_infer(*specs: TensorSpec) -> TensorSpec:
    ranks = [spec.shape[0] for spec in specs]
    return known((None if None in ranks else max([n or 0 for n in ranks]),), dtypes.int64)


def _broadcast_sizes_kernel(xp: Any, *vectors: Any) -> Any:
    return np.asarray(shapes.broadcast("broadcast_arrays", *[tuple(sizes.tolist()) for sizes in vectors]), np.int64)


_broadcast_sizes = entry_point(defop(
    "broadcast_sizes",
    inputs="*xs",
    infer=_broadcast_sizes_infer,
    kernel=_broadcast_sizes_kernel,
    accepts="integer",
    why_no_gradient="a shape does not depend on the values",
    batching="loop",
))  # fmt: skip


def _common(xs: Sequence[Tensor]) -> Any:
    """The shape in which they meet: a tuple, or in a trace with unknown sizes a symbolic vector."""
    shape = shapes.broadcast("broadcast_arrays", *[x.shape for x in xs])
    if None not in shape:
        return shape
    return _broadcast_sizes(tuple([np.asarray(n, np.int64) if isinstance(n := x.sizes(), tuple) else n for x in xs]))


def broadcast_arrays(*arrays: TensorLike) -> list[Tensor]:
    """The tensors, each repeated until it has the shape in which all of them meet; dtypes stay as they are.

    Raises ShapeError when the shapes do not broadcast.

    >>> import limelight as ll
    >>> [x.shape for x in ll.broadcast_arrays(ll.zeros((3, 1)), ll.ones(2))]
    [(3, 2), (3, 2)]
    """
    tensors = [as_tensor(x) for x in arrays]
    if not tensors:
        return []
    shape = _common(tensors)
    return [x.broadcast_to(shape) for x in tensors]


def broadcast_shapes(*given: int | Sequence[int | None]) -> Shape:
    """The shape in which shapes meet, by NumPy's rules; () of none. An unknown size (None) meets n as n.

    Raises ShapeError when they do not broadcast.

    >>> import limelight as ll
    >>> ll.broadcast_shapes((3, 1), (2,))
    (3, 2)
    """
    return shapes.broadcast("broadcast_shapes", *[shapes.as_shape(shape) for shape in given])


def meshgrid(*arrays: TensorLike, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid: a tensor for each of `n` vectors, with `n` axes, that varies along one of them.

    With `indexing="ij"` the first vector varies along axis 0, the second along axis 1; with "xy" these two are
    exchanged, as in pictures, which have rows first. Raises ShapeError for anything but vectors and scalars,
    ArgumentError for another indexing.

    >>> import limelight as ll
    >>> x, y = ll.meshgrid(ll.constant([1, 2, 3]), ll.constant([4, 5]))
    >>> x.tolist(), y.tolist()
    ([[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [5, 5, 5]])
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f'meshgrid: indexing must be "xy" or "ij", got {indexing!r}')
    tensors = [as_tensor(x) for x in arrays]
    for x in tensors:
        if x.ndim > 1:
            raise ShapeError(f"meshgrid: needs vectors, got {x.spec}; reshape it to (-1,) first")
    rank = len(tensors)
    places = list(range(rank))
    if indexing == "xy" and rank > 1:
        places[:2] = [1, 0]
    return broadcast_arrays(
        *[
            x.reshape([-1 if axis == place else 1 for axis in range(rank)])
            for x, place in zip(tensors, places, strict=True)
        ]
    )

"""Elements picked by a place of their own along an axis, and its transpose."""

from __future__ import annotations

from typing import Any

from limelight.core import shapes
from limelight.core.eager import Entry, entry
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import ShapeError
from limelight.ops._given_shape import shaped
from limelight.ops.index._scatter_add import add_along, checked_places

__all__ = ["take_along_axis"]


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _infer(x: TensorSpec, indices: TensorSpec, axis: int) -> TensorSpec:
    if x.rank != indices.rank:
        raise ShapeError(
            f"take_along_axis: {x} and the indices {indices} must have as many axes as each other; use expand_dims"
        )
    around = shapes.broadcast("take_along_axis", _without(x.shape, axis), _without(indices.shape, axis))
    return known((*around[:axis], indices.shape[axis], *around[axis + 1 :]), x.dtype)


def _places(xp: Any, shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """The index of every picked element, an array for each axis; axes of size 1 broadcast."""
    rank = len(shape)
    return tuple(
        [
            indices if i == axis else xp.arange(n).reshape([-1 if j == i else 1 for j in range(rank)])
            for i, n in enumerate(shape)
        ]
    )


def _kernel(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    if x.ndim != indices.ndim:
        raise ValueError("ranks differ")  # the shape rule says it better
    try:
        return xp.take_along_axis(x, indices, axis)
    except IndexError:
        checked_places(indices, x.shape[axis], axis)
        raise


_take_along_axis: Entry = entry(defop(
    "take_along_axis",
    inputs="x indices:integer",
    attrs="axis",
    infer=_infer,
    kernel=_kernel,
    vjp={"x": lambda g, indices, x_shape, axis: _scatter((g, indices), x_shape, axis)},
    linear="x",
    maths={"x": "x̄[indices along the axis] += ȳ"},
    batching="operands_along_axis",
))  # fmt: skip


@method("take_along_axis")
def take_along_axis(x: TensorLike, indices: TensorLike, /, *, axis: int = -1) -> Tensor:
    """`out[i, j, k] = x[i, indices[i, j, k], k]` for axis 1, and likewise for others: each row has indices of its own.

    `x` and `indices` have as many axes as each other and broadcast but for `axis`. Negative indices count from the end;
    raises OutOfBoundsError for one that is out of bounds, which it names. Indices may repeat: their gradients add up.

    >>> import limelight as ll
    >>> ll.take_along_axis(ll.constant([[10, 20], [30, 40]]), ll.constant([[1], [0]])).tolist()
    [[20], [30]]
    """
    x = as_tensor(x)
    return _take_along_axis((x, as_tensor(indices)), shapes.one_axis("take_along_axis", x.ndim, axis))


def _scatter_kernel(xp: Any, x: Any, indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Adds each element of `x`, shaped as the picked ones are, where it came from in zeros of `shape`."""
    out = xp.zeros(shape, x.dtype)
    if hasattr(out, "at"):
        return out.at[_places(xp, shape, indices, axis)].add(x)
    return add_along(shape, checked_places(indices, shape[axis], axis), x, axis)


def _scatter_infer(x: TensorSpec, indices: TensorSpec, axis: int, shape: Shape) -> TensorSpec:
    return known(shape, x.dtype)


_scatter: Entry = shaped(
    "scatter_along_axis",
    inputs="x indices:integer",
    attrs="axis",
    infer=_scatter_infer,
    kernel=_scatter_kernel,
    vjp={"x": lambda g, indices, axis: _take_along_axis((g, indices), axis)},
    linear="x",
    maths={"x": "x̄ = ȳ[indices along the axis]"},
    batching="along_axis_to_shape",
    dynamic_batching="along_axis_to_shape_dynamic",
)


@method("_scatter_along_axis")
def _scatter_to(x: Tensor, indices: Tensor, shape: Any, axis: int) -> Tensor:
    """The transpose of `take_along_axis` for other families: adds `x` at `indices` in zeros of `shape`."""
    return _scatter((x, indices), shape, axis)

"""Axes in another order: `transpose` and its special cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from limelight.core import shapes
from limelight.core.dispatch import active
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method, wrap
from limelight.errors import ArgumentError, ShapeError

__all__ = ["matrix_transpose", "moveaxis", "permute_dims", "swapaxes", "transpose"]

# transpose


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([axes.index(i) for i in range(len(axes))])


_transpose: EntryPoint = entry_point(defop(
    "transpose",
    view=True,
    inputs="x",
    attrs="axes",
    infer=lambda x, axes: known(tuple([x.shape[i] for i in axes]), x.dtype),
    kernel=lambda xp, x, axes: x.transpose(axes),
    vjp={"x": lambda g, axes: _transpose(g, _inverse(axes))},
    linear="x",
    maths={"x": "x̄ = ȳ with its axes put back"},
    batching="transpose",
))  # fmt: skip


_REVERSED: Final = [tuple(range(rank))[::-1] for rank in range(65)]  # NumPy's arrays have at most 64 axes


@method("transpose")
def transpose(x: TensorLike, /, axes: Sequence[int] | None = None, *more: int) -> Tensor:
    """`x` with its axes in the order `axes`; reversed when that is None.

    Three axes and more may be given one by one, as in `x.transpose(0, 2, 1)`; two exchange axes in PyTorch and order
    them in NumPy, and are refused.

    Raises ArgumentError unless `axes` names each axis once.

    >>> import limelight as ll
    >>> ll.transpose(ll.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    if len(more) == 1:
        raise ArgumentError(
            f"transpose: the axes are one argument, a tuple: write x.transpose({(axes, *more)}); to exchange two axes "
            f"ll.swapaxes(x, {axes}, {more[0]})"
        )
    x = as_tensor(x)
    rank = x.ndim
    if more:
        axes = (axes, *more)  # type: ignore[arg-type]  # the first of several
    elif isinstance(axes, int):
        raise ArgumentError(f"transpose: axes must name each of the {rank} axes of {x.spec} in a tuple, got {axes}")
    order = _REVERSED[rank] if axes is None else tuple([shapes.one_axis("transpose", rank, i) for i in axes])
    if len(order) != rank or len(set(order)) != rank:
        raise ArgumentError(f"transpose: axes {axes} must name each of the {rank} axes of {x.spec} once")
    return _transpose(x, order)


def permute_dims(x: TensorLike, /, axes: Sequence[int]) -> Tensor:
    """`x` with its axes in the order `axes`: the Array API's name for `transpose`.

    >>> import limelight as ll
    >>> ll.permute_dims(ll.zeros((2, 3, 4)), (0, 2, 1)).shape
    (2, 4, 3)
    """
    return transpose(x, axes)


def swapaxes(x: TensorLike, /, axis1: int, axis2: int) -> Tensor:
    """`x` with two axes exchanged.

    >>> import limelight as ll
    >>> ll.swapaxes(ll.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    x = as_tensor(x)
    rank = x.ndim
    order = list(range(rank))
    i, j = shapes.one_axis("swapaxes", rank, axis1), shapes.one_axis("swapaxes", rank, axis2)
    order[i], order[j] = j, i
    return _transpose(x, tuple(order))


def moveaxis(x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """`x` with the axes `source` at the places `destination`, the others staying in order.

    Raises ArgumentError when the two do not match up.

    >>> import limelight as ll
    >>> ll.moveaxis(ll.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor(x)
    axis_lists = [shapes.wholes("moveaxis", "an axis", a) for a in (source, destination)]
    start, end = ([shapes.one_axis("moveaxis", x.ndim, i) for i in axes] for axes in axis_lists)
    if len(start) != len(end) or len(set(start)) != len(start) or len(set(end)) != len(end):
        raise ArgumentError(f"moveaxis: {source} and {destination} must be as many different axes")
    order = [i for i in range(x.ndim) if i not in start]
    for place, axis in sorted(zip(end, start, strict=True)):
        order.insert(place, axis)
    return _transpose(x, tuple(order))


# matrix_transpose


def _matrix_transpose_infer(x: TensorSpec) -> TensorSpec:
    if x.rank < 2:
        raise ShapeError(
            f"matrix_transpose: {x} is no matrix: it needs two axes at least; use expand_dims or transpose"
        )
    return known((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


_matrix_transpose = entry_point(defop(
    "matrix_transpose",
    view=True,
    inputs="x",
    infer=_matrix_transpose_infer,
    kernel=lambda xp, x: x.swapaxes(-1, -2),
    vjp={"x": lambda g: g.mT},
    linear="x",
    maths={"x": "x̄ = ȳᵀ"},
    batching="last_axes",
))  # fmt: skip


def matrix_transpose(x: TensorLike, /) -> Tensor:
    """`x` with its last two axes exchanged; also `x.mT`, and `x.T` for a matrix. Raises ShapeError for vectors.

    >>> import limelight as ll
    >>> ll.matrix_transpose(ll.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    return _matrix_transpose(x)


def _T(x: Tensor) -> Tensor:
    """The transpose of a matrix. Raises ShapeError for other ranks: take `.mT`, or `ll.transpose(x, axes)`."""
    if type(x) is Tensor and not active and x._data.ndim == 2:
        return wrap(x._data.T, x._device)
    if x.ndim != 2:
        instead = "write x.mT for the last two axes, or ll.transpose(x, axes)"
        if x.ndim == 1:
            instead = "write x itself for what NumPy gives, x[:, None] for a column"
        raise ShapeError(f".T is for matrices, this is {x.spec}; {instead}")
    return _matrix_transpose(x)


setattr(Tensor, "T", property(_T))  # noqa: B010 # for a type checker these are declared already
setattr(Tensor, "mT", property(matrix_transpose))  # noqa: B010

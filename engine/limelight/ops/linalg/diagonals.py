"""Diagonals: `diagonal` of a matrix, `diag` (either way), and `trace`.

`trace` is a name of `ll.linalg` alone: `ll.trace` would be understood as tracing a function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core import shapes
from limelight.core.dtypes import DTypeLike
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ShapeError
from limelight.ops._given_shape import defop_with_shape

__all__ = ["diag", "diagonal"]


def _length(rows: int, columns: int, offset: int) -> int:
    return max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))


def _places(shape: Any, offset: int) -> tuple[Any, ...]:
    """The index of the diagonal of a matrix of `shape`."""
    steps = np.arange(_length(shape[-2], shape[-1], offset))
    return (..., steps - min(offset, 0), steps + max(offset, 0))


# diagonal


def _diagonal_infer(x: TensorSpec, offset: int) -> TensorSpec:
    if x.rank < 2:
        raise ShapeError(f"diagonal: {x} is no matrix: it needs two axes at least (ll.diag makes a matrix of a vector)")
    rows, columns = x.shape[-2:]
    return known((*x.shape[:-2], None if rows is None or columns is None else _length(rows, columns, offset)), x.dtype)


_diagonal = entry_point(defop(
    "diagonal",
    inputs="x",
    attrs="offset",
    infer=_diagonal_infer,
    kernel=lambda xp, x, offset: x.diagonal(offset, -2, -1),
    vjp={"x": lambda g, x_shape, offset: _from_diagonal((g,), x_shape, offset)},
    linear="x",
    maths={"x": "x̄ has ȳ on the diagonal, 0 elsewhere"},
    batching="last_axes",
))  # fmt: skip


def diagonal(x: TensorLike, /, offset: int = 0) -> Tensor:
    """The diagonal of the last two axes: shape (..., n, m) gives (..., k); `offset` > 0 is above the main one.

    Raises ShapeError for vectors.

    >>> import limelight as ll
    >>> ll.diagonal(ll.constant([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    return _diagonal(x, offset if type(offset) is int else shapes.whole("diagonal", "offset", offset))


# from_diagonal


def _from_diagonal_infer(x: TensorSpec, offset: int, shape: Shape) -> TensorSpec:
    return known(shape, x.dtype)


def _from_diagonal_kernel(xp: Any, x: Any, offset: int, shape: tuple[int, ...]) -> Any:
    out = xp.zeros(shape, x.dtype)
    if hasattr(out, "at"):
        return out.at[_places(shape, offset)].set(x)
    *before, rows, columns = shape
    start = offset if offset >= 0 else -offset * columns
    end = start + _length(rows, columns, offset) * (columns + 1)  # one row further and one column to the right, each
    out.reshape((*before, rows * columns))[..., start : end : columns + 1] = x
    return out


_from_diagonal: EntryPoint = defop_with_shape(
    "from_diagonal",
    inputs="x",
    attrs="offset",
    infer=_from_diagonal_infer,
    kernel=_from_diagonal_kernel,
    vjp={"x": lambda g, offset: _diagonal(g, offset)},
    linear="x",
    maths={"x": "x̄ = diagonal of ȳ"},
    batching="last_axes_to_shape",
    dynamic_batching="last_axes_to_shape_dynamic",
)


def diag(x: TensorLike, /, offset: int = 0) -> Tensor:
    """A matrix with the vector `x` on its diagonal, or the diagonal of the matrix `x`.

    `offset` > 0 is above the main diagonal. Raises ShapeError for other ranks.

    >>> import limelight as ll
    >>> ll.diag(ll.constant([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    x, offset = as_tensor(x), shapes.whole("diag", "offset", offset)
    if x.ndim == 2:
        return _diagonal(x, offset if type(offset) is int else shapes.whole("diagonal", "offset", offset))
    if x.ndim != 1:
        raise ShapeError(f"diag: needs a vector or a matrix, got {x.spec}; ll.diagonal(x) takes stacks of matrices")
    if x.shape[0] is None:
        return _from_diagonal((x,), x.sizes() + np.array([abs(offset)]) + np.zeros(2, np.int64), offset)
    n = x.shape[0] + abs(offset)
    return _from_diagonal((x,), (n, n), offset)


def trace(x: TensorLike, /, offset: int = 0, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of the diagonal of the last two axes: shape (..., n, m) gives (...,); numeric.

    `dtype` is that of the sum, see `ll.sum`.

    >>> from limelight import linalg
    >>> import limelight as ll
    >>> linalg.trace(ll.constant([[1, 2], [3, 4]])).item()
    5
    """
    return _diagonal(x, offset).sum(-1, dtype=dtype)

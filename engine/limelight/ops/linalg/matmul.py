"""Products of matrices and tensors: `matmul`, `tensordot`, `dot`, `outer`, `kron`, `multi_dot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import entry_point, operators
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._gradient_terms import rank
from limelight.ops._shape_rules import SHORT

__all__ = ["dot", "kron", "matmul", "outer", "tensordot"]  # `multi_dot` is a name of ll.linalg alone

# matmul


def _matmul_infer(x: TensorSpec, y: TensorSpec) -> TensorSpec:
    if not x.rank or not y.rank:
        raise ShapeError(f"matmul: {x} @ {y}: scalars are no matrices; write x * y")
    rows = x.shape if x.rank > 1 else (1, *x.shape)
    columns = y.shape if y.rank > 1 else (*y.shape, 1)
    if None not in (rows[-1], columns[-2]) and rows[-1] != columns[-2]:
        raise ShapeError(
            f"matmul: {x} @ {y}: the last axis of the first has size {rows[-1]}, but the "
            f"{'only' if y.rank == 1 else 'last but one'} axis of the second has {columns[-2]}; they must be equal "
            "(transpose one of them, or reshape)"
        )
    shape = shapes.broadcast("matmul", rows[:-2], columns[:-2])
    shape += (rows[-2],) if x.rank > 1 else ()
    return known(shape + ((columns[-1],) if y.rank > 1 else ()), x.dtype)


def _matmul_numpy(xp: Any, x: Any, y: Any) -> Any:
    """`dot` where it means the same: on small matrices it takes half the time of `matmul`."""
    if x.dtype in SHORT:  # NumPy has no fast products of 16-bit floats, and would round every partial sum
        return _matmul_numpy(xp, x.astype(dtypes.float32), y.astype(dtypes.float32)).astype(x.dtype)
    return x.dot(y) if 0 < x.ndim < 3 and 0 < y.ndim < 3 else np.matmul(x, y)


def _left_gradient(g: Tensor, y: Tensor, x_shape: Any) -> Tensor:
    y = y.conj()
    if y.ndim == 1:
        return g.expand_dims(-1) * y
    if rank(x_shape) == 1:
        return (g.expand_dims(-2) @ y.mT).squeeze(-2).sum_to(x_shape)
    return (g @ y.mT).sum_to(x_shape)


def _right_gradient(g: Tensor, x: Tensor, y_shape: Any) -> Tensor:
    x = x.conj()
    if x.ndim == 1:
        return (x * g if rank(y_shape) == 1 else x.expand_dims(-1) * g.expand_dims(-2)).sum_to(y_shape)
    if rank(y_shape) == 1:
        return (x.mT @ g.expand_dims(-1)).squeeze(-1).sum_to(y_shape)
    if rank(y_shape) == 2 and x.ndim > 2 and x.shape[-1] and g.shape[-1]:  # one product instead of a batch and a sum
        return x.reshape((-1, x.shape[-1])).mT @ g.reshape((-1, g.shape[-1]))
    return (x.mT @ g).sum_to(y_shape)


_matmul = entry_point(defop(
    "matmul",
    fresh=True,
    inputs="x y",
    infer=_matmul_infer,
    kernel=lambda xp, x, y: xp.matmul(x, y).astype(x.dtype),  # NumPy's own bfloat16 would give float32
    special={"numpy": _matmul_numpy},
    accepts="numeric",
    vjp={"x": _left_gradient, "y": _right_gradient},
    linear="x y",
    maths={"x": "x̄ = z̄ yᴴ", "y": "ȳ = xᴴ z̄"},
    batching="matmul",
))  # fmt: skip


def matmul(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The matrix product of the last two axes, the others broadcasting; also the operator `@`. Numeric.

    A vector stands for a row on the left and a column on the right, and its axis is dropped from the result: shapes
    (..., n, k) and (..., k, m) give (..., n, m). Raises ShapeError when the inner sizes differ.

    >>> import limelight as ll
    >>> ll.matmul(ll.constant([[1, 2], [3, 4]]), ll.constant([1, 1])).tolist()
    [3, 7]
    """
    return _matmul(x, y)


operators(_matmul, "matmul")

# tensordot

Axes = tuple[tuple[int, ...], tuple[int, ...]]


def _axes_kept(rank: int, over: tuple[int, ...]) -> list[int]:
    return [i for i in range(rank) if i not in over]


def _tensordot_infer(x: TensorSpec, y: TensorSpec, axes: Axes) -> TensorSpec:
    for i, j in zip(*axes, strict=True):
        if None not in (x.shape[i], y.shape[j]) and x.shape[i] != y.shape[j]:
            raise ShapeError(
                f"tensordot: axis {i} of {x} has size {x.shape[i]}, axis {j} of {y} has {y.shape[j]}; "
                "they must be equal"
            )
    left, right = (tuple(z.shape[i] for i in _axes_kept(z.rank, over)) for z, over in ((x, axes[0]), (y, axes[1])))
    return known(left + right, x.dtype)


def _tensordot_gradient(
    g: Tensor, other: Tensor, rank: int, mine: tuple[int, ...], its: tuple[int, ...], first: bool
) -> Tensor:
    """Contracts `g` with the other operand over that one's free axes, and puts the axes in this operand's order."""
    free, its_free = _axes_kept(rank, mine), _axes_kept(other.ndim, its)
    at = len(free) if first else 0
    over = tuple(range(at, at + len(its_free)))
    contracted: Tensor = _tensordot((g, other.conj()), (over, tuple(its_free)))
    order = [*free, *(mine[its.index(j)] for j in sorted(its))]
    return contracted.transpose([order.index(i) for i in range(rank)])


_tensordot = entry_point(defop(
    "tensordot",
    inputs="x y",
    attrs="axes",
    infer=_tensordot_infer,
    kernel=lambda xp, x, y, axes: xp.tensordot(x, y, axes),
    accepts="numeric",
    vjp={
        "x": lambda g, y, x_shape, axes: _tensordot_gradient(g, y, rank(x_shape), axes[0], axes[1], True),
        "y": lambda g, x, y_shape, axes: _tensordot_gradient(g, x, rank(y_shape), axes[1], axes[0], False),
    },
    linear="x y",
    maths={"x": "x̄ = z̄ · y* over the free axes of y", "y": "ȳ = x* · z̄ over the free axes of x"},
    batching="tensordot",
))  # fmt: skip


def tensordot(x: TensorLike, y: TensorLike, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The sum of products over pairs of axes; the axes left over are those of `x`, then those of `y`. Numeric.

    `axes`: how many of the last axes of `x` pair with the first of `y`, or (axes of `x`, axes of `y`). Raises
    ShapeError when paired sizes differ, ArgumentError when the pairs do not match up.

    >>> import limelight as ll
    >>> ll.tensordot(ll.ones((2, 3)), ll.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    x, y = as_tensor(x), as_tensor(y)
    return _tensordot((x, y), _axes_pairs(x.ndim, y.ndim, axes))


def _axes_pairs(x_rank: int, y_rank: int, axes: int | tuple[Sequence[int], Sequence[int]]) -> Axes:
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        axes = shapes.whole("tensordot", "axes (how many, or a pair of sequences)", axes)
        if not 0 <= axes <= min(x_rank, y_rank):
            raise ArgumentError(f"tensordot: axes={axes} with operands of {x_rank} and {y_rank} axes")
        return tuple(range(x_rank - axes, x_rank)), tuple(range(axes))
    mine = tuple(shapes.one_axis("tensordot", x_rank, i) for i in shapes.wholes("tensordot", "axis", axes[0]))
    its = tuple(shapes.one_axis("tensordot", y_rank, i) for i in shapes.wholes("tensordot", "axis", axes[1]))
    if len(mine) != len(its) or len(set(mine)) != len(mine) or len(set(its)) != len(its):
        raise ArgumentError(
            f"tensordot: axes {axes} must pair different axes of each operand, as many of one as of the other"
        )
    return mine, its


def dot(x: TensorLike, y: TensorLike, /) -> Tensor:
    """NumPy's dot product: `matmul` of vectors and matrices, a product of elements with scalars; numeric.

    With more axes the last of `x` meets the last but one of `y`, and all others are kept (see `tensordot`).

    >>> import limelight as ll
    >>> ll.dot(ll.constant([1.0, 2.0]), ll.constant([3.0, 4.0])).item()
    11.0
    """
    x, y = as_tensor(x), as_tensor(y)
    if not x.ndim or not y.ndim:
        return x * y
    if x.ndim <= 2 and y.ndim <= 2:
        return x @ y
    return tensordot(x, y, axes=((-1,), (max(-2, -y.ndim),)))


def outer(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Every product of an element of `x` with one of `y`: shapes (n,) and (m,) give (n, m); numeric.

    Raises ShapeError for anything but vectors.

    >>> import limelight as ll
    >>> ll.outer(ll.constant([1, 2]), ll.constant([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    x, y = as_tensor(x), as_tensor(y)
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(f"outer: needs two vectors, got {x.spec} and {y.spec}; reshape them to (-1,) first")
    return x.expand_dims(1) * y


def kron(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The Kronecker product: `x` with each element replaced by that element times `y`; numeric.

    Sizes are multiplied, axis by axis; the shorter shape gets ones in front.

    >>> import limelight as ll
    >>> ll.kron(ll.constant([1, 10]), ll.constant([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    x, y = as_tensor(x), as_tensor(y)
    rank = max(x.ndim, y.ndim)
    x, y = (z.expand_dims(tuple(range(rank - z.ndim))) if z.ndim < rank else z for z in (x, y))
    if None not in x.shape + y.shape:
        sizes: Any = tuple([m * n for m, n in zip(x.shape, y.shape, strict=True)])  # type: ignore[operator]  # known
    else:
        sizes = as_tensor(x.sizes()).astype(dtypes.int64) * as_tensor(y.sizes()).astype(dtypes.int64)
    apart = x.expand_dims(tuple(range(1, 2 * rank, 2))) * y.expand_dims(tuple(range(0, 2 * rank, 2)))
    product: Tensor = apart.reshape(sizes)
    return product


# multi_dot


def multi_dot(matrices: Sequence[TensorLike], /) -> Tensor:
    """The product of two or more matrices, in the order that takes the fewest multiplications; numeric.

    The first one may be a row and the last one a column, given as vectors. Sizes unknown while tracing: from left to
    right. Raises ArgumentError for fewer than two, ShapeError for other ranks and for sizes that do not meet.

    >>> import limelight as ll
    >>> ll.linalg.multi_dot([ll.ones((9, 2)), ll.ones((2, 9)), ll.ones(9)]).shape
    (9,)
    """
    factors = [as_tensor(x) for x in matrices]
    if len(factors) < 2:
        raise ArgumentError(f"multi_dot: needs at least two matrices, got {len(factors)}")
    for i, x in enumerate(factors):
        if x.ndim != 2 and not (x.ndim == 1 and i in (0, len(factors) - 1)):
            raise ShapeError(f"multi_dot: matrix {i} is {x.spec}; only the first and the last may be vectors")
    return _product(factors, _best_cuts([_matrix_shape(x, i == 0) for i, x in enumerate(factors)]), 0, len(factors) - 1)


def _matrix_shape(x: Tensor, first: bool) -> tuple[int | None, int | None]:
    if x.ndim == 2:
        return x.shape[0], x.shape[1]
    return (1, x.shape[0]) if first else (x.shape[0], 1)


def _best_cuts(sizes: list[tuple[int | None, int | None]]) -> dict[tuple[int, int], int]:
    """Where to cut each run of matrices in two, for the fewest multiplications (dynamic programming)."""
    n = len(sizes)
    p = [sizes[0][0], *(size[1] for size in sizes)]
    if any(size is None for size in p):
        return {(0, j): j - 1 for j in range(1, n)}
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(n)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            ways = [(cost[i, k] + cost[k + 1, j] + p[i] * p[k + 1] * p[j + 1], k) for k in range(i, j)]  # type: ignore[operator]
            cost[i, j], cuts[i, j] = min(ways)
    return cuts


def _product(factors: list[Tensor], cuts: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return factors[i]
    k = cuts[i, j]
    return _product(factors, cuts, i, k) @ _product(factors, cuts, k + 1, j)

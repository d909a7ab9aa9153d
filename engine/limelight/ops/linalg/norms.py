"""Norms of vectors and matrices: `vector_norm`, `matrix_norm`, `norm`. The gradient at 0 is 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.ops._gradient_terms import restore
from limelight.ops._kernel_parts import largest_over, maximum_reduce, minimum_reduce, sum_over
from limelight.ops._shape_rules import COMPLEX, SHORT, Axis, axis_attr, reduction
from limelight.ops.linalg._matrices import check_matrix, real_dtype

__all__ = ["cdist", "matrix_norm", "norm", "vector_norm"]

Order: TypeAlias = int | float | Literal["fro", "nuc"] | None
_MATRIX_ORDERS: Final = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)

# vector_norm


def _vector_norm_kernel(xp: Any, x: Any, axis: Axis, keepdims: bool, order: float) -> Any:
    dtype = real_dtype(x.dtype)
    if x.dtype in SHORT:
        x = x.astype(dtypes.float32)
    if order == 2:
        squares = x.real * x.real + x.imag * x.imag if x.dtype in COMPLEX else x * x
        return xp.sqrt(sum_over(xp, squares, axis, keepdims)).astype(dtype)
    sizes = abs(x)
    if order == 1:
        return sum_over(xp, sizes, axis, keepdims).astype(dtype)
    unit = _unit(xp, sizes, axis, order)
    norms = sum_over(xp, (sizes / unit) ** order, axis, keepdims) ** (1 / order)
    return (norms * unit.reshape(norms.shape)).astype(dtype)


def _unit(xp: Any, sizes: Any, axis: Axis, order: float) -> Any:
    """The size that counts most, and 1 where that is 0 or not finite: measured by it, no power leaves the range."""
    if xp is np:  # which tables know
        reduce, start = (maximum_reduce, -np.inf) if order > 0 else (minimum_reduce, np.inf)
        most = reduce(sizes, axis, None, None, True, start)
    else:
        most = largest_over(xp, sizes, axis) if order > 0 else -largest_over(xp, -sizes, axis)
    return xp.where((most > 0) & (most < np.inf), most, 1)


def _vector_norm_gradient(g: Tensor, x: Tensor, out: Tensor, axis: Axis, keepdims: bool, order: float) -> Tensor:
    """ȳ sign(x) (|x| / y)^(order - 1), and 0 where x or the norm is 0."""
    g, out = restore(g, axis, keepdims), restore(out, axis, keepdims)
    if order == 1:
        return g.astype(x.dtype) * x.sign()
    if order == 2:
        return x * (out == 0).where(0, g / (out == 0).where(1, out)).astype(x.dtype)
    sizes = abs(x)
    flat = (sizes == 0) | (out == 0)
    ratio = flat.where(1, sizes) / flat.where(1, out)
    return x.sign() * flat.where(0, g * ratio ** (order - 1)).astype(x.dtype)


_vector_norm: EntryPoint = entry_point(defop(
    "vector_norm",
    inputs="x",
    attrs="axis keepdims order",
    infer=reduction("vector_norm", real_dtype),
    kernel=_vector_norm_kernel,
    accepts="inexact",
    vjp={"x": _vector_norm_gradient},
    maths={"x": "x̄ = ȳ sign(x) (|x| / y)^(p - 1), and 0 where x or y is 0"},
))  # fmt: skip


def vector_norm(
    x: TensorLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: int | float = 2,
) -> Tensor:
    """A norm of the vectors along `axis`.

    Args:
        x: floating or complex.
        axis: an axis, several, or None (the default) for all.
        keepdims: whether these axes stay in place with size 1. False.
        ord: a number p, 2 by default, for (sum |x|^p)^(1/p); inf and -inf for the largest and smallest magnitude; 0 for
            how many elements are not 0, which has no gradient.

    Returns:
        The norms, real, in the shape of `x` without the axes. Where an element or the norm is 0 and the slope is not
        unique, the gradient is 0; equal extremes share it. float16 and bfloat16 are summed in float32.

    Raises:
        ArgumentError: `ord` is no number.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.linalg.vector_norm(ll.constant([3.0, -4.0])).item()
    5.0
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("vector_norm", "keepdims", keepdims)
    x, over = _inexact("vector_norm", x), axis_attr(axis)
    if not isinstance(ord, (int, float)):
        raise ArgumentError(f"vector_norm: ord must be a number, got {ord!r}; matrix_norm takes 'fro' and 'nuc'")
    if ord == 0:
        return (x != 0).astype(real_dtype(x.dtype)).sum(over, keepdims)
    if abs(ord) == math.inf:
        return _extreme(abs(x), ord > 0, over, keepdims)
    return _vector_norm(x, over, bool(keepdims), float(ord))


def cdist(x: TensorLike, y: TensorLike, /, metric: str = "minkowski", *, p: int | float = 2) -> Tensor:
    """The distances of each row of `x` from each row of `y`.

    Args:
        x: floating, (..., n, d).
        y: floating, (..., m, d), of the same dtype.
        metric: "minkowski" (the default), the norm of the difference of order `p`; "euclidean", "cityblock" and
            "chebyshev", those of order 2, 1 and infinity; "sqeuclidean", the square of the second; "cosine", 1 less the
            cosine of the angle.
        p: the order of the norm, a number above 0 or inf; 2.

    Returns:
        (..., n, m). The gradient of a distance of 0 is 0.

    Raises:
        ShapeError: they are no matrices of rows of one size.
        ArgumentError: there is no such metric or norm, or `p` was given beside a metric that has none.

    >>> import limelight as ll
    >>> ll.cdist(ll.constant([[0.0, 0.0]]), ll.constant([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    x, y = _inexact("cdist", x), _inexact("cdist", y)
    if x.ndim < 2 or y.ndim < 2 or (x.shape[-1] != y.shape[-1] and None not in (x.shape[-1], y.shape[-1])):
        raise ShapeError(
            f"cdist: needs matrices (..., n, d) and (..., m, d) with rows of one size, got {x.spec} and {y.spec}"
        )
    order = _order(metric, p)
    if metric == "cosine":
        x, y = (z / vector_norm(z, axis=-1, keepdims=True) for z in (x, y))
        return 1.0 - x @ y.conj().mT
    apart = x.expand_dims(-2) - y.expand_dims(-3)
    if metric == "sqeuclidean":
        squares: Tensor = abs(apart).square().sum(-1)
        return squares
    return vector_norm(apart, axis=-1, ord=order)


_ORDERS: Final = {"euclidean": 2, "cityblock": 1, "chebyshev": math.inf, "sqeuclidean": 2, "cosine": 2}


def _order(metric: Any, p: Any) -> int | float:
    """The order of the norm. Raises ArgumentError for metrics and orders that there are not."""
    if metric not in ("minkowski", *_ORDERS):
        hint = f"; write p={metric!r}" if isinstance(metric, (int, float)) else ""
        known = ", ".join(map(repr, ("minkowski", *_ORDERS)))
        raise ArgumentError(f"cdist: metric must be one of {known}; got {metric!r}{hint}")
    if not isinstance(p, (int, float)) or not p > 0:
        raise ArgumentError(f"cdist: p must be a number above 0, got {p!r}")
    if metric != "minkowski" and p not in (2, _ORDERS[metric]):
        raise ArgumentError(f'cdist: p={p!r} is for the metric "minkowski", got {metric!r}')
    return p if metric == "minkowski" else _ORDERS[metric]


def _inexact(name: str, x: TensorLike) -> Tensor:
    x = as_tensor(x)
    if not dtypes.is_inexact(x.dtype):
        raise DTypeError(
            f"{name} needs floating or complex operands, got {x.dtype.name}; write ll.astype(x, ll.float32) first"
        )
    return x


def _extreme(sizes: Tensor, largest: bool, axis: Axis, keepdims: bool) -> Tensor:
    """The largest or smallest of non-negative numbers; the largest of none is 0."""
    if largest and sizes.size == 0:
        over = shapes.axes("norm", sizes.ndim, axis)
        if any(sizes.shape[i] == 0 for i in over):
            return sizes.sum(axis, keepdims)
    return sizes.max(axis, keepdims) if largest else sizes.min(axis, keepdims)


# matrix_norm


def matrix_norm(x: TensorLike, /, *, keepdims: bool = False, ord: Order = "fro") -> Tensor:
    """The norm of matrices (..., M, N): shape (...,), or (..., 1, 1) with `keepdims`; real.

    `ord`: "fro" is the root of the sum of squares, "nuc" the sum of the singular values, 2 and -2 the largest and the
    smallest one, 1 and -1 the largest and smallest sum of magnitudes in a column, inf and -inf in a row. Floating or
    complex; singular values need 32 bits or more. Gradients are finite at 0. Raises ShapeError for vectors.

    >>> import limelight as ll
    >>> ll.linalg.matrix_norm(ll.constant([[3.0, 0.0], [0.0, 4.0]]), ord="nuc").item()
    7.0
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("matrix_norm", "keepdims", keepdims)
    x = _inexact("matrix_norm", x)
    check_matrix("matrix_norm", x.spec)
    return _matrix_norm(x, ord, (-2, -1), keepdims)


def _matrix_norm(x: Tensor, ord: Order, axes: tuple[int, int], keepdims: bool) -> Tensor:
    rows, columns = (axis % x.ndim for axis in axes)
    if ord not in _MATRIX_ORDERS:
        known = ", ".join(map(repr, _MATRIX_ORDERS))
        raise ArgumentError(f"matrix_norm: ord {ord!r} is not known; write one of {known}")
    if ord == "fro":
        return _vector_norm(x, (rows, columns), bool(keepdims), 2.0)
    if ord in (2, -2, "nuc"):
        others = [i for i in range(x.ndim) if i not in (rows, columns)]
        values = x.transpose((*others, rows, columns))._svdvals()
        norms = values.sum(-1) if ord == "nuc" else _extreme(values, ord == 2, -1, False)
    else:
        inner, outer = (rows, columns) if ord in (1, -1) else (columns, rows)
        outer -= outer > inner
        norms = _extreme(abs(x).sum(inner), ord in (1, math.inf), outer, False)
    return norms.expand_dims(tuple(sorted((rows, columns)))) if keepdims else norms


# norm


def norm(
    x: TensorLike,
    ord: Order = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """A norm of vectors along one `axis`, of matrices over two, or of all elements without `axis` and `ord`.

    As in NumPy.

    Args:
        x: floating or complex.
        ord: as in `vector_norm` and `matrix_norm`; None is the root of the sum of squares. With `ord` alone, `x` must
            be a vector or a matrix.
        axis: one axis or two.
        keepdims: whether these axes stay in place with size 1. False.

    Returns:
        The norms, real, in the shape of `x` without the axes.

    Raises:
        ShapeError: `ord` alone is given, and `x` is neither a vector nor a matrix.
        ArgumentError: there are more than two axes, or there is no such `ord`.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.linalg.norm(ll.constant([[3.0, 0.0], [0.0, 4.0]])).item(), ll.linalg.norm(ll.ones((2, 4)), axis=1).tolist()
    (5.0, [2.0, 2.0])
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("norm", "keepdims", keepdims)
    x = _inexact("norm", x)
    if ord is None and axis is None:
        return _vector_norm(x, None, bool(keepdims), 2.0)
    if axis is None and x.ndim not in (1, 2):
        raise ShapeError(f"norm: {x.spec} with ord={ord!r} is neither a vector nor a matrix; say which axis or axes")
    over = axis_attr(axis)
    over = tuple(range(x.ndim)) if over is None else over if isinstance(over, tuple) else (over,)
    if len(over) == 2:
        rows, columns = (shapes.one_axis("norm", x.ndim, i) for i in over)
        shapes.axes("norm", x.ndim, over)  # raises where both are the same
        return _matrix_norm(x, "fro" if ord is None else ord, (rows, columns), bool(keepdims))
    if len(over) != 1:
        raise ArgumentError(f"norm: axis {axis} must be one axis (of vectors) or two (of matrices)")
    return vector_norm(x, axis=over[0], keepdims=keepdims, ord=2 if ord is None else ord)  # type: ignore[arg-type]

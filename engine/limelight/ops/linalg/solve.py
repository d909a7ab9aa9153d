"""Linear equations: `triangular_solve`, `cholesky_solve`, `solve`; and `inv`.

A singular matrix is an error, but in triangular systems gives infinities, as BLAS does.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

from limelight.core import shapes
from limelight.core.backends import is_cupy
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.ops.linalg._matrices import H, lapack, right_side, square_to_square

__all__ = ["cholesky_solve", "inv", "solve", "triangular_solve"]

_SINGULAR: Final = "is singular: it has no inverse; use linalg.pinv or linalg.lstsq, or add a multiple of the identity"

# triangular_solve


def _triangular_infer(a: TensorSpec, b: TensorSpec, upper: bool, adjoint: bool, unit_diagonal: bool) -> TensorSpec:
    return right_side("triangular_solve", a, b)


def _triangular_kernel(xp: Any, a: Any, b: Any, upper: bool, adjoint: bool, unit_diagonal: bool) -> Any:
    """By substitution, row by row: n products of a stack. Infinite where 0 stands on the diagonal."""
    if adjoint:
        a, upper = a.swapaxes(-1, -2).conj(), not upper
    n = a.shape[-1]
    if a.shape[-2] != n or b.shape[-2] != n:
        raise ValueError("sizes differ")  # the shape rule says how
    b = xp.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]))
    rows: list[Any] = []  # of the solution, in the order in which they are found
    order = range(n - 1, -1, -1) if upper else range(n)
    with np.errstate(all="ignore"):
        for i in order:
            row = b[..., i, :]
            if rows:
                known_part = a[..., i, i + 1 :] if upper else a[..., i, :i]
                solved = xp.stack(rows[::-1] if upper else rows, -2)
                row = row - (known_part[..., None, :] @ solved)[..., 0, :]
            rows.append(row if unit_diagonal else row / a[..., i, i, None])
    return xp.stack(rows[::-1] if upper else rows, -2) if n else b


@functools.cache
def _blas_routine(kind: str) -> Any:
    """The triangular solver of BLAS for a kind of dtype."""
    from scipy.linalg import blas  # noqa: PLC0415  # loading SciPy takes longer than loading limelight

    return getattr(blas, {"f": "strsm", "d": "dtrsm", "F": "ctrsm", "D": "ztrsm"}[kind])


def _triangular_numpy(xp: Any, a: Any, b: Any, upper: bool, adjoint: bool, unit_diagonal: bool) -> Any:
    """One by one through BLAS, or more matrices than they have rows by substitution, all at once."""
    n, lead = a.shape[-1], np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) if a.ndim + b.ndim > 4 else ()
    if math.prod(lead) > n or 0 in b.shape or a.shape[-2] != n or b.shape[-2] != n:
        return _triangular_kernel(xp, a, b, upper, adjoint, unit_diagonal)
    if not lead:
        return _blas_solve(a, b, upper, adjoint, unit_diagonal)
    a, b = np.broadcast_to(a, (*lead, n, n)), np.broadcast_to(b, (*lead, n, b.shape[-1]))
    out = np.empty(b.shape, b.dtype)
    for place in np.ndindex(lead):
        out[place] = _blas_solve(a[place], b[place], upper, adjoint, unit_diagonal)
    return out


def _blas_solve(a: Any, b: Any, upper: bool, adjoint: bool, unit_diagonal: bool) -> Any:
    """One system. BLAS counts in columns, so it is given Aᵀ and Bᵀ, and solves Xᵀ op(Aᵀ) = Bᵀ without a copy."""
    if adjoint and a.dtype.kind == "c":
        a = a.conj()
    trsm = _blas_routine(a.dtype.char)
    return trsm(1, a.T, b.T, side=1, lower=upper, trans_a=adjoint, diag=unit_diagonal).T


def _triangular_jax(xp: Any, a: Any, b: Any, upper: bool, adjoint: bool, unit_diagonal: bool) -> Any:
    from jax.lax.linalg import triangular_solve as run  # noqa: PLC0415  # JAX is loaded when a device asks for it

    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (xp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    options = {"lower": not upper, "transpose_a": adjoint, "conjugate_a": adjoint, "unit_diagonal": unit_diagonal}
    return run(a, b, left_side=True, **options)


def _triangular_matrix_gradient(
    g: Tensor, a: Tensor, out: Tensor, upper: bool, adjoint: bool, unit_diagonal: bool
) -> Tensor:
    b = _triangular((a, g), upper, not adjoint, unit_diagonal)
    full = -(out @ H(b) if adjoint else b @ H(out))
    slope: Tensor = full._triu(k=int(unit_diagonal)) if upper else full._tril(k=-int(unit_diagonal))
    return slope.sum_to(a.sizes())


_triangular: EntryPoint = entry_point(defop(
    "triangular_solve",
    inputs="a b",
    attrs="upper adjoint unit_diagonal",
    infer=_triangular_infer,
    kernel=_triangular_kernel,
    special={"numpy": _triangular_numpy, "jax": _triangular_jax},
    accepts="wide",
    linear="b",
    vjp={
        "a": _triangular_matrix_gradient,
        "b": lambda g, a, b_shape, upper, adjoint, unit_diagonal: _triangular(
            (a, g), upper, not adjoint, unit_diagonal
        ).sum_to(b_shape),
    },
    maths={"a": "ā = -triangle of b̄ xᴴ", "b": "b̄ = a⁻ᴴ x̄"},
    batching="matrix_stacks",
))  # fmt: skip


@method("_triangular_solve")  # for the gradients of decompositions
def triangular_solve(
    a: TensorLike,
    b: TensorLike,
    /,
    *,
    upper: bool = False,
    adjoint: bool = False,
    unit_diagonal: bool = False,
) -> Tensor:
    """The solution x of a x = b for a triangular matrix, by substitution.

    Args:
        a: (..., M, M), of which only one triangle is read; floating or complex, 32 bits or more.
        b: (..., M, K), or (M,) for one column; leading axes broadcast.
        upper: whether the upper triangle is read, or the lower one. False.
        adjoint: whether aᴴ x = b is solved. False.
        unit_diagonal: whether the diagonal is not read, and counts as ones. False.

    Returns:
        x, in the shape of `b` after broadcasting. A zero on the diagonal gives infinities and NaN, never an error.

    Raises:
        ShapeError: the shapes do not meet, or `a` is not square.
        DTypeError: the dtype is another one.

    >>> import limelight as ll
    >>> ll.linalg.triangular_solve(ll.constant([[2.0, 0.0], [1.0, 4.0]]), ll.constant([2.0, 9.0])).tolist()
    [1.0, 2.0]
    """
    if type(upper) is not bool:
        upper = shapes.flag("triangular_solve", "upper", upper)
    if type(adjoint) is not bool:
        adjoint = shapes.flag("triangular_solve", "adjoint", adjoint)
    if type(unit_diagonal) is not bool:
        unit_diagonal = shapes.flag("triangular_solve", "unit_diagonal", unit_diagonal)
    a, b = as_tensor(a), as_tensor(b)
    if b.ndim != 1:
        return _triangular((a, b), upper, adjoint, unit_diagonal)
    right_side("triangular_solve", a.spec, b.spec)
    return _triangular((a, b.expand_dims(-1)), upper, adjoint, unit_diagonal).squeeze(-1)


def cholesky_solve(factor: TensorLike, b: TensorLike, /, *, upper: bool = False) -> Tensor:
    """The solution of `a x = b`, where `factor` is the Cholesky factor of `a` (see `cholesky`, also for `upper`).

    Shapes are as in `solve`; two triangular systems, half the work of a general one.

    >>> import limelight as ll
    >>> a, b = ll.constant([[4.0, 2.0], [2.0, 5.0]]), ll.constant([2.0, 5.0])
    >>> ll.linalg.cholesky_solve(ll.linalg.cholesky(a), b).tolist()
    [0.0, 1.0]
    """
    if type(upper) is not bool:
        upper = shapes.flag("cholesky_solve", "upper", upper)
    half = triangular_solve(factor, b, upper=upper, adjoint=upper)
    if as_tensor(b).ndim == 1 and half.ndim > 1:  # a stack of factors has made a stack of vectors
        return triangular_solve(factor, half.expand_dims(-1), upper=upper, adjoint=not upper).squeeze(-1)
    return triangular_solve(factor, half, upper=upper, adjoint=not upper)


# solve


def _solve_infer(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    return right_side("solve", a, b)


@lapack(_solve_infer, "solve", _SINGULAR)
def _solve_kernel(xp: Any, a: Any, b: Any) -> Any:
    if is_cupy(xp) and a.ndim + b.ndim > 4:  # it takes stacks of equal shapes alone
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = xp.broadcast_to(a, (*lead, *a.shape[-2:])), xp.broadcast_to(b, (*lead, *b.shape[-2:]))
    return xp.linalg.solve(a, b)


def _solve_right_gradient(g: Tensor, a: Tensor, b_shape: Any) -> Tensor:
    return _solve(H(a), g).sum_to(b_shape)


_solve: EntryPoint = entry_point(defop(
    "solve",
    inputs="a b",
    infer=_solve_infer,
    kernel=_solve_kernel,
    accepts="wide",
    linear="b",
    vjp={
        "a": lambda g, a, out: (-_solve(H(a), g) @ H(out)).sum_to(a.sizes()),
        "b": _solve_right_gradient,
    },
    maths={"a": "ā = -b̄ xᴴ", "b": "b̄ = a⁻ᴴ x̄"},
    batching="matrix_stacks",
))  # fmt: skip


@method("_solve")  # for the gradients of decompositions
def solve(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The solution of `a x = b` for square matrices: (..., M, M) and (..., M, K), or (M,) for one column, for all.

    Floating or complex, of 32 bits or more; the leading axes broadcast. Raises ShapeError for shapes that do not meet,
    LinAlgError for a matrix that is exactly singular (on a backend that cannot raise, the result is infinite or NaN).

    >>> import limelight as ll
    >>> ll.linalg.solve(ll.constant([[2.0, 0.0], [1.0, 4.0]]), ll.constant([2.0, 9.0])).tolist()
    [1.0, 2.0]
    """
    a, b = as_tensor(a), as_tensor(b)
    if b.ndim != 1:
        return _solve(a, b)
    right_side("solve", a.spec, b.spec)
    return _solve(a, b.expand_dims(-1)).squeeze(-1)


# inv

_inv_infer = square_to_square("inv")


@lapack(_inv_infer, "inv", _SINGULAR)
def _inv_kernel(xp: Any, x: Any) -> Any:
    return xp.linalg.inv(x)


_inv = entry_point(defop(
    "inv",
    inputs="x",
    infer=_inv_infer,
    kernel=_inv_kernel,
    accepts="wide",
    vjp={"x": lambda g, out: -(H(out) @ g @ H(out))},
    maths={"x": "x̄ = -yᴴ ȳ yᴴ"},
    batching="last_axes",
))  # fmt: skip


@method("_inv")  # for the gradients of decompositions
def inv(x: TensorLike, /) -> Tensor:
    """The inverse of square matrices (..., M, M); floating or complex, of 32 bits or more.

    Raises ShapeError for other shapes, LinAlgError for a matrix that is exactly singular (on a backend that cannot
    raise, the result is infinite or NaN). To solve equations, `solve` is quicker and more accurate.

    >>> import limelight as ll
    >>> ll.linalg.inv(ll.constant([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return _inv(x)

"""Inverses of matrices that have none: `pinv`, `matrix_rank`, and least squares, `lstsq`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.dtypes import accepted
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import DTypeError, ShapeError
from limelight.ops.linalg._matrices import H, check_finite, check_matrix, check_square, lapack, real_dtype

__all__ = ["lstsq", "matrix_rank", "pinv"]


def _cutoff(x: Tensor, rtol: TensorLike | None) -> Any:
    """Below which part of the largest singular value the others count as 0; the default is the Array API's."""
    if rtol is not None:
        return rtol
    rows, columns = x.shape[-2:]
    epsilon = float(np.finfo(x.dtype).eps)
    if rows is None or columns is None:
        return x.sizes()[-2:].max().astype(real_dtype(x.dtype)) * epsilon
    return max(rows, columns) * epsilon


# pinv


def _pinv_infer(x: TensorSpec, rtol: TensorSpec, hermitian: bool) -> TensorSpec:
    (check_square if hermitian else check_matrix)("pinv", x)
    lead = shapes.broadcast("pinv", x.shape[:-2], rtol.shape)
    return known((*lead, x.shape[-1], x.shape[-2]), x.dtype)


def _inverted(xp: Any, values: Any, rtol: Any) -> Any:
    """1 / values, but 0 for those that count as 0."""
    sizes = abs(values)
    largest = sizes.max(-1, keepdims=True) if values.shape[-1] else sizes
    kept = sizes > xp.asarray(rtol)[..., None] * largest
    return xp.where(kept, 1 / xp.where(kept, values, 1), 0).astype(values.dtype)


def _pinv_kernel(xp: Any, x: Any, rtol: Any, hermitian: bool) -> Any:
    if hermitian:
        values, v = xp.linalg.eigh(check_finite(x))
        u = v
    else:
        u, values, vh = xp.linalg.svd(check_finite(x), full_matrices=False)
        v = vh.conj().swapaxes(-1, -2)
    return (v * _inverted(xp, values, rtol)[..., None, :]) @ u.conj().swapaxes(-1, -2)


def _pinv_gradient(g: Tensor, x: Tensor, out: Tensor, hermitian: bool) -> Tensor:
    left, right = H(g) @ out @ H(out), H(out) @ out @ H(g)
    slope = (left - x @ (out @ left)) + (right - (right @ out) @ x) - H(out) @ g @ H(out)
    return ((slope + H(slope)) / 2 if hermitian else slope).sum_to(x.sizes())


_pinv: EntryPoint = entry_point(defop(
    "pinv",
    inputs="x rtol:floating",
    attrs="hermitian",
    infer=_pinv_infer,
    kernel=lapack(_pinv_infer, "pinv", "has singular values that LAPACK could not find")(_pinv_kernel),
    accepts="wide",
    vjp={"x": _pinv_gradient},
    maths={"x": "x̄ = -yᴴ ȳ yᴴ + (1 - x y) ȳᴴ y yᴴ + yᴴ y ȳᴴ (1 - y x)"},
    batching="pinv",
))  # fmt: skip


def pinv(x: TensorLike, /, *, rtol: TensorLike | None = None, hermitian: bool = False) -> Tensor:
    """The Moore-Penrose pseudo-inverse of matrices (..., M, N): shape (..., N, M).

    Singular values of at most `rtol` (a number, or one for each matrix) times the largest one count as 0; the default
    is max(M, N) times the dtype's epsilon. `hermitian` reads the lower triangle alone and is quicker. Floating or
    complex, of 32 bits or more. The gradient holds where the rank does not change: G. H. Golub and V. Pereyra, 1973.
    Raises ShapeError for vectors, LinAlgError for NaN or infinity.

    >>> import limelight as ll
    >>> ll.linalg.pinv(ll.constant([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    if type(hermitian) is not bool:
        hermitian = shapes.flag("pinv", "hermitian", hermitian)
    x = as_tensor(x)
    _check("pinv", x, hermitian)
    return _pinv((x, _cutoff(x, rtol)), bool(hermitian))


def _check(name: str, x: Tensor, hermitian: bool = False) -> None:
    """Raises what the ops below would raise, before the dtype's epsilon is asked for."""
    if x.dtype not in accepted("wide"):
        raise DTypeError(
            f"{name} needs floating or complex (32-bit or wider) operands, got {x.dtype.name}; "
            "write ll.astype(x, ll.float32) first"
        )
    (check_square if hermitian else check_matrix)(name, x.spec)


# matrix_rank


def matrix_rank(x: TensorLike, /, *, rtol: TensorLike | None = None, hermitian: bool = False) -> Tensor:
    """How many singular values of matrices (..., M, N) are larger than `rtol` times the largest one: int64 (...,).

    `rtol` and `hermitian` are as in `pinv`. Floating or complex, of 32 bits or more; no gradient.

    >>> import limelight as ll
    >>> ll.linalg.matrix_rank(ll.ones((3, 2))).item()
    1
    """
    if type(hermitian) is not bool:
        hermitian = shapes.flag("matrix_rank", "hermitian", hermitian)
    x = as_tensor(x)
    _check("matrix_rank", x, hermitian)
    values = abs(x._eigvalsh()) if hermitian else x._svdvals()
    return _rank(values, _cutoff(x, rtol), hermitian)


def _rank(values: Tensor, rtol: Any, hermitian: bool) -> Tensor:
    if values.shape[-1] == 0:
        return values.sum(-1).astype(dtypes.int64)
    largest = values.max(-1, True) if hermitian else values[..., :1]
    limit = as_tensor(rtol).expand_dims(-1).astype(values.dtype) * largest
    return (values > limit).astype(dtypes.int64).sum(-1)


# lstsq


class LstsqResult(NamedTuple):
    """What `lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(a: TensorLike, b: TensorLike, /, *, rtol: TensorLike | None = None) -> LstsqResult:
    """The x for which |a x - b| is least, and of several the shortest one: `a` (..., M, N), `b` (..., M, K) or (M,).

    The solution is (..., N, K), or (..., N) for a vector `b`; the residuals are |a x - b|² for each column, also where
    they are 0; then the rank of `a` and its singular values. `rtol` is as in `pinv`, through which it is computed (by
    singular values, so that no rank is too low), and so is the gradient of the solution. Floating or complex, of 32
    bits or more. Raises ShapeError for shapes that do not meet.

    >>> import limelight as ll
    >>> a = ll.constant([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> abs(ll.linalg.lstsq(a, ll.constant([1.0, 3.0, 5.0])).solution - ll.constant([1.0, 2.0])).max().item() < 1e-5
    True
    """
    a, b = as_tensor(a), as_tensor(b)
    _check("lstsq", a)
    rows = b.shape[-min(b.ndim, 2)] if b.ndim else 1
    if not b.ndim or (None not in (rows, a.shape[-2]) and rows != a.shape[-2]):
        raise ShapeError(f"lstsq: {a.spec} and {b.spec}: the matrix has {a.shape[-2]} rows, the right side {rows}")
    rtol = _cutoff(a, rtol)
    solution = pinv(a, rtol=rtol) @ b
    rest = a @ solution - b
    residuals = (rest.conj() * rest)._real().sum(-1 if b.ndim == 1 else -2)
    values = a._svdvals()
    return LstsqResult(solution, residuals, _rank(values, rtol, False), values)

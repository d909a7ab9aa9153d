"""Decompositions: `cholesky`, `qr`, `svd`, `svdvals`.

They have gradients for results that do not depend on what is arbitrary: the phases of singular vectors, and the basis
of a space. Of the columns that complete a basis (full `svd`, complete `qr`) only the space that they span counts, and
that has a gradient too. Terms between equal singular values are left out, so that gradients are finite. `cholesky`
reads one triangle and has a Hermitian gradient. `svdvals` decomposes again in its gradient: mostly nobody asks for one.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from limelight.core import shapes
from limelight.core.eager import entry_point, entry_point_of_many
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.errors import ArgumentError
from limelight.ops._gradient_terms import zeros
from limelight.ops._shape_rules import COMPLEX, real_of
from limelight.ops.linalg._matrices import (
    H,
    check_finite,
    check_matrix,
    lapack,
    reciprocal,
    smaller,
    square_to_square,
    sum_of_terms,
)

__all__ = ["cholesky", "qr", "svd", "svdvals"]

# cholesky

_cholesky_infer = square_to_square("cholesky")


@lapack(
    _cholesky_infer,
    "cholesky",
    "is not positive definite: it has an eigenvalue of 0 or less; add a small multiple of the identity, or use eigh",
)
def _cholesky_kernel(xp: Any, x: Any, upper: bool) -> Any:
    if not upper:
        return xp.linalg.cholesky(x)
    return xp.linalg.cholesky(x.swapaxes(-1, -2).conj()).swapaxes(-1, -2).conj()


def _cholesky_gradient(g: Tensor, out: Tensor, upper: bool) -> Tensor:
    factor, g = (H(out), H(g)) if upper else (out, g)
    inner = H(factor) @ g
    halved = (inner._tril() + inner._tril(k=-1)) / 4  # the diagonal counts half, each triangle half
    left = factor._triangular_solve(halved + H(halved), adjoint=True)
    slope: Tensor = factor._triangular_solve(H(left), adjoint=True)
    return slope


_cholesky = entry_point(defop(
    "cholesky",
    inputs="x",
    attrs="upper",
    infer=_cholesky_infer,
    kernel=_cholesky_kernel,
    accepts="wide",
    vjp={"x": _cholesky_gradient},
    maths={"x": "x̄ = L⁻ᴴ herm(Φ(Lᴴ L̄)) L⁻¹, Φ: lower triangle, diagonal halved"},
    batching="last_axes",
))  # fmt: skip


def cholesky(x: TensorLike, /, *, upper: bool = False) -> Tensor:
    """The lower triangular L with x = L Lᴴ (`upper`: the U with x = Uᴴ U) of positive definite matrices (..., M, M).

    Only the triangle that is asked for is read: `x` is taken to be Hermitian, and its gradient is. Floating or complex,
    of 32 bits or more. Raises ShapeError for other shapes, LinAlgError for a matrix that is not positive definite (on a
    backend that cannot raise, the result is NaN). Gradient: I. Murray, Differentiation of the Cholesky decomposition,
    2016 (arXiv:1602.07527).

    The gradient is that for changes which keep `x` Hermitian, spread over both triangles; differences of one element
    at a time, as in `ll.gradcheck`, see another. To check a function of `x`, let it make its matrix Hermitian first.

    >>> import limelight as ll
    >>> ll.gradcheck(lambda a: ll.linalg.cholesky((a + a.mT) * 0.5), ll.constant([[4.0, 2.0], [2.0, 5.0]])).ok
    True
    >>> ll.linalg.cholesky(ll.constant([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    if type(upper) is not bool:
        upper = shapes.flag("cholesky", "upper", upper)
    return _cholesky(x, bool(upper))


# What the gradients of qr and svd share


def _least(x: Tensor) -> Any:
    """The smaller one of the last two sizes: an int, or in a trace a scalar tensor."""
    static = smaller(x.shape)
    return x.sizes()[-2:].min() if static is None else static


def _parts(x: Tensor, g: Tensor | None, k: Any) -> tuple[Tensor, Tensor | None]:
    """The first `k` columns of an orthonormal basis, and the gradient of them alone.

    The other columns are a basis of what is left: of them only the space counts, and that is given by the first ones.
    """
    if isinstance(k, int) and x.shape[-1] == k:
        return x, g
    first, rest = x[..., :k], x[..., k:]
    return first, g if g is None else g[..., :k] - rest @ (H(g[..., k:]) @ first)


# qr


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor


def _qr_infer(x: TensorSpec, mode: str) -> tuple[TensorSpec, TensorSpec]:
    check_matrix("qr", x)
    *lead, rows, columns = x.shape
    inner = rows if mode == "complete" else smaller(x.shape)
    return known((*lead, rows, inner), x.dtype), known((*lead, inner, columns), x.dtype)


@lapack(_qr_infer, "qr", "has no QR decomposition that LAPACK could find")
def _qr_kernel(xp: Any, x: Any, mode: str) -> Any:
    return tuple(xp.linalg.qr(x, mode=mode))


def _qr_gradient(g: tuple[Tensor | None, Tensor | None], out: tuple[Tensor, Tensor]) -> Tensor:
    """Through the square part of R; further columns of x are Q times further columns of R."""
    k = _least(out[1])
    q, gq = _parts(out[0], g[0], k)
    r, gr = out[1][..., :k, :], None if g[1] is None else g[1][..., :k, :]
    if isinstance(k, int) and r.shape[-1] == k:
        return _square_qr_gradient(q, r, gq, gr)
    further = None if gr is None else gr[..., k:]
    if further is not None:
        through = q @ (r[..., k:] @ H(further))
        gq = through if gq is None else gq + through
    first = _square_qr_gradient(q, r[..., :k], gq, None if gr is None else gr[..., :k])
    beyond = zeros(q.dtype, (q @ r[..., k:]).sizes()) if further is None else q @ further
    joined: Tensor = first._beside(beyond)
    return joined


def _square_qr_gradient(q: Tensor, r: Tensor, gq: Tensor | None, gr: Tensor | None) -> Tensor:
    inner = None if gr is None else r @ H(gr)
    if gq is not None:
        across = H(gq) @ q
        inner = -across if inner is None else inner - across
    assert inner is not None, "one of the two has a gradient"
    strict = inner._tril(k=-1)
    diagonal = inner._tril() - strict
    hermitian = q @ (strict + H(strict) + (diagonal + diagonal.conj()) / 2)
    outer = hermitian if gq is None else hermitian + gq
    return H(r._triangular_solve(H(outer), upper=True))


_qr = entry_point_of_many(defop(
    "qr",
    inputs="x",
    attrs="mode",
    infer=_qr_infer,
    kernel=_qr_kernel,
    accepts="wide",
    multiple=True,
    vjp={"x": _qr_gradient},
    maths={"x": "x̄ = (Q̄ + Q herm(tril(R R̄ᴴ - Q̄ᴴ Q))) R⁻ᴴ"},
    batching="last_axes",
))  # fmt: skip


def qr(x: TensorLike, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Q with orthonormal columns and upper triangular R with x = Q R, for matrices (..., M, N); K = min(M, N).

    "reduced" gives Q (..., M, K) and R (..., K, N), "complete" (..., M, M) and (..., M, N). Floating or complex, of 32
    bits or more. The signs on the diagonal of R are LAPACK's.

    Differentiable where the first K columns of `x` are independent; elsewhere gradients are infinite or NaN. Of the
    last M - K columns of a complete Q only the space that they span has a gradient. Gradient: M. Seeger et al.,
    Auto-differentiating linear algebra, 2017 (arXiv:1710.08717), with R's diagonal real. Raises ShapeError for vectors,
    ArgumentError for another mode.

    >>> import limelight as ll
    >>> Q, R = ll.linalg.qr(ll.constant([[3.0, 1.0], [4.0, 2.0]]))
    >>> (Q @ R).shape, abs(R[1, 0]).item()
    ((2, 2), 0.0)
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f'qr: mode {mode!r} is not known; write "reduced" or "complete"')
    return QRResult(*_qr((x,), mode))


# svd and svdvals


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


_UNSETTLED: Final = "has singular values that LAPACK could not find"


def _svd_infer(x: TensorSpec, full_matrices: bool) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    check_matrix("svd", x)
    *lead, rows, columns = x.shape
    k = smaller(x.shape)
    left, right = (rows, columns) if full_matrices else (k, k)
    return (
        known((*lead, rows, left), x.dtype),
        real_of(known((*lead, k), x.dtype)),
        known((*lead, right, columns), x.dtype),
    )


@lapack(_svd_infer, "svd", _UNSETTLED)
def _svd_kernel(xp: Any, x: Any, full_matrices: bool) -> Any:
    return tuple(xp.linalg.svd(check_finite(x), full_matrices=full_matrices))


def _svd_gradient(g: tuple[Tensor | None, ...], out: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Term by term: what S gives, how U turns, how V turns; what a turn within equal singular values gives is 0."""
    s, dtype = out[1], out[0].dtype
    k = s.sizes()[-1] if s.shape[-1] is None else s.shape[-1]
    u, gu = _parts(out[0], g[0], k)
    v, gv = _parts(H(out[2]), None if g[2] is None else H(g[2]), k)
    squares = s * s
    apart = reciprocal(squares.expand_dims(-2) - squares.expand_dims(-1)).astype(dtype)
    rows, inverse = s.expand_dims(-2).astype(dtype), reciprocal(s).expand_dims(-2).astype(dtype)
    terms = [] if g[1] is None else [u * g[1].expand_dims(-2).astype(dtype) @ H(v)]
    if gu is not None:
        turned = H(u) @ gu
        terms.append(u @ ((turned - H(turned)) * apart * rows) @ H(v))
        terms.append((gu - u @ turned) * inverse @ H(v))
        if dtype in COMPLEX:  # how the phases of U turn against those of V
            along = (u.conj() * gu).sum(-2, True)
            terms.append(u * ((along - along.conj()) * inverse / 2) @ H(v))
    if gv is not None:
        turned = H(v) @ gv
        terms.append(u * rows @ ((turned - H(turned)) * apart) @ H(v))
        terms.append(u * inverse @ H(gv - v @ turned))
    return sum_of_terms(terms)


_svd = entry_point_of_many(defop(
    "svd",
    inputs="x",
    attrs="full_matrices",
    infer=_svd_infer,
    kernel=_svd_kernel,
    accepts="wide",
    multiple=True,
    vjp={"x": _svd_gradient},
    maths={"x": "x̄ = U (S̄ + (UᴴŪ - ŪᴴU)/E S + S (VᴴV̄ - V̄ᴴV)/E) Vᴴ + what leaves U and V, Eᵢⱼ = sⱼ² - sᵢ²"},
    batching="last_axes",
))  # fmt: skip


def svd(x: TensorLike, /, full_matrices: bool = True) -> SVDResult:
    """U, S and Vh with x = U diag(S) Vh, for matrices (..., M, N); K = min(M, N). S is real, largest first.

    U is (..., M, M) and Vh (..., N, N), or without `full_matrices` (..., M, K) and (..., K, N). Floating or complex, of
    32 bits or more.

    U and Vh have gradients where singular values are distinct and not 0, for results that do not depend on the phase of
    a pair of singular vectors, nor on the basis of the last M - K or N - K ones. Terms between equal singular values
    are left out rather than infinite. Gradient: M. B. Giles, 2008; M. Seeger et al., 2017 (arXiv:1710.08717); complex:
    Z.-Q. Wan and S.-X. Zhang, 2019 (arXiv:1909.02659). Raises ShapeError for vectors, LinAlgError for NaN or infinity.

    >>> import limelight as ll
    >>> ll.linalg.svd(ll.constant([[0.0, 2.0], [1.0, 0.0]])).S.tolist()
    [2.0, 1.0]
    """
    if type(full_matrices) is not bool:
        full_matrices = shapes.flag("svd", "full_matrices", full_matrices)
    return SVDResult(*_svd((x,), bool(full_matrices)))


def _svdvals_infer(x: TensorSpec) -> TensorSpec:
    check_matrix("svdvals", x)
    return real_of(known((*x.shape[:-2], smaller(x.shape)), x.dtype))


@lapack(_svdvals_infer, "svdvals", _UNSETTLED)
def _svdvals_kernel(xp: Any, x: Any) -> Any:
    return xp.linalg.svd(check_finite(x), compute_uv=False)


def _svdvals_gradient(g: Tensor, x: Tensor) -> Tensor:
    """By a decomposition of its own: without a gradient none is needed, and it costs many times the values."""
    u, _, vh = _svd((x,), False)
    return u * g.expand_dims(-2).astype(x.dtype) @ vh


_svdvals = entry_point(defop(
    "svdvals",
    inputs="x",
    infer=_svdvals_infer,
    kernel=_svdvals_kernel,
    accepts="wide",
    vjp={"x": _svdvals_gradient},
    maths={"x": "x̄ = U diag(s̄) Vᴴ"},
    batching="last_axes",
))  # fmt: skip


@method("_svdvals")  # for norms
def svdvals(x: TensorLike, /) -> Tensor:
    """The singular values of matrices (..., M, N): shape (..., min(M, N)), real, largest first.

    Floating or complex, of 32 bits or more. The gradient is exact where singular values are distinct, and one of the
    possible ones elsewhere. Raises ShapeError for vectors, LinAlgError for NaN or infinity.

    >>> import limelight as ll
    >>> ll.linalg.svdvals(ll.constant([[0.0, 2.0], [1.0, 0.0]])).tolist()
    [2.0, 1.0]
    """
    return _svdvals(x)

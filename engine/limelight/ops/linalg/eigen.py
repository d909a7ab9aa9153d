"""Eigenvalues and eigenvectors: of Hermitian matrices (`eigh`, `eigvalsh`), and of any square ones (`eig`, `eigvals`).

What holds for the gradients of `decompositions` holds here: results must not depend on phases, terms between equal
eigenvalues are left out, `eigh` reads one triangle and has a Hermitian gradient, and ops that return values alone
decompose again in their gradient.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from limelight.core import dtypes
from limelight.core.eager import entry_point, entry_point_of_many
from limelight.core.host_kernels import by_host
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.ops._shape_rules import COMPLEX, real_of
from limelight.ops.linalg._matrices import (
    H,
    Kernel,
    check_finite,
    check_square,
    lapack,
    reciprocal,
    side_length,
    sum_of_terms,
)

__all__ = ["eig", "eigh", "eigvals", "eigvalsh"]

_UNSETTLED: Final = "has eigenvalues that LAPACK could not find"

# eigh and eigvalsh


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _values_spec(name: str, x: TensorSpec) -> TensorSpec:
    check_square(name, x)
    return known((*x.shape[:-2], side_length(x)), x.dtype)


def _eigh_infer(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    return real_of(_values_spec("eigh", x)), known(x.shape, x.dtype)


@lapack(_eigh_infer, "eigh", _UNSETTLED)
def _eigh_kernel(xp: Any, x: Any) -> Any:
    return tuple(xp.linalg.eigh(check_finite(x)))


def _eigh_gradient(g: tuple[Tensor | None, Tensor | None], out: tuple[Tensor, Tensor]) -> Tensor:
    w, v = out
    terms = [] if g[0] is None else [v * g[0].expand_dims(-2).astype(v.dtype) @ H(v)]
    if g[1] is not None:
        apart = reciprocal(w.expand_dims(-2) - w.expand_dims(-1)).astype(v.dtype)
        terms.append(v @ (apart * (H(v) @ g[1])) @ H(v))
    slope = sum_of_terms(terms)
    return (slope + H(slope)) / 2


_eigh = entry_point_of_many(defop(
    "eigh",
    inputs="x",
    infer=_eigh_infer,
    kernel=_eigh_kernel,
    accepts="wide",
    multiple=True,
    vjp={"x": _eigh_gradient},
    maths={"x": "x̄ = herm(V (diag(w̄) + Vᴴ V̄ / E) Vᴴ), Eᵢⱼ = wⱼ - wᵢ"},
    batching="last_axes",
))  # fmt: skip


def eigh(x: TensorLike, /) -> EighResult:
    """The real eigenvalues, in ascending order, and orthonormal eigenvectors, in columns, of Hermitian (..., M, M).

    Only the lower triangle is read: `x` is taken to be Hermitian, and its gradient is (see `cholesky` on checking it by
    differences). Floating or complex, of 32 bits or more.

    Eigenvectors have a gradient where eigenvalues are distinct, for results that do not depend on the phase of a
    vector; terms between equal eigenvalues are left out rather than infinite. Gradient: M. B. Giles, An extended
    collection of matrix derivative results, 2008. Raises ShapeError for other shapes, LinAlgError for NaN or infinity.

    >>> import limelight as ll
    >>> ll.linalg.eigh(ll.constant([[3.0, 0.0], [0.0, 2.0]])).eigenvalues.tolist()
    [2.0, 3.0]
    """
    return EighResult(*_eigh((x,)))


def _eigvalsh_infer(x: TensorSpec) -> TensorSpec:
    return real_of(_values_spec("eigvalsh", x))


@lapack(_eigvalsh_infer, "eigvalsh", _UNSETTLED)
def _eigvalsh_kernel(xp: Any, x: Any) -> Any:
    return xp.linalg.eigvalsh(check_finite(x))


def _eigvalsh_gradient(g: Tensor, x: Tensor) -> Tensor:
    """By a decomposition of its own: without a gradient no vectors are needed."""
    _, v = _eigh((x,))
    return v * g.expand_dims(-2).astype(v.dtype) @ H(v)


_eigvalsh = entry_point(defop(
    "eigvalsh",
    inputs="x",
    infer=_eigvalsh_infer,
    kernel=_eigvalsh_kernel,
    accepts="wide",
    vjp={"x": _eigvalsh_gradient},
    maths={"x": "x̄ = V diag(w̄) Vᴴ"},
    batching="last_axes",
))  # fmt: skip


@method("_eigvalsh")  # for ranks
def eigvalsh(x: TensorLike, /) -> Tensor:
    """The real eigenvalues of Hermitian matrices (..., M, M), in ascending order: shape (..., M). See `eigh`.

    The gradient is exact where eigenvalues are distinct, and one of the possible ones elsewhere.

    >>> import limelight as ll
    >>> ll.linalg.eigvalsh(ll.constant([[3.0, 0.0], [0.0, 2.0]])).tolist()
    [2.0, 3.0]
    """
    return _eigvalsh(x)


# eig and eigvals


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


_COMPLEX_OF: Final = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _complex_of(x: TensorSpec) -> TensorSpec:
    return known(x.shape, _COMPLEX_OF.get(x.dtype, x.dtype))


def _eig_infer(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    return _complex_of(_values_spec("eig", x)), _complex_of(x)


@lapack(_eig_infer, "eig", _UNSETTLED)
def _eig_kernel(xp: Any, x: Any) -> Any:
    values, vectors = xp.linalg.eig(x)
    dtype = _COMPLEX_OF.get(x.dtype, x.dtype)  # NumPy gives real ones where it can
    return values.astype(dtype), vectors.astype(dtype)


def _on_gpu(name: str, kernel: Kernel) -> Kernel:
    """The kernel where CuPy has a function for it, which is since version 14; else by the host."""
    detour = by_host(kernel, f"{name} on the host, as this CuPy has none")
    return lambda xp, x: kernel(xp, x) if hasattr(xp.linalg, name) else detour(xp, x)


def _eig_gradient(g: tuple[Tensor | None, Tensor | None], x_dtype: Any, out: tuple[Tensor, Tensor]) -> Tensor:
    w, v = out
    terms = [] if g[0] is None else [g[0].expand_dims(-1) * H(v)]
    if g[1] is not None:
        turned = H(v) @ g[1]
        lengths = (v.conj() * g[1]).sum(-2, True)
        lengths = (lengths + lengths.conj()) / 2  # vectors keep the length 1
        apart = reciprocal((w.expand_dims(-2) - w.expand_dims(-1)).conj())
        terms.append(((turned - H(v) @ (v * lengths)) * apart) @ H(v))
    slope: Tensor = H(v)._solve(sum_of_terms(terms))
    return slope if x_dtype in COMPLEX else slope._real()


_eig = entry_point_of_many(defop(
    "eig",
    inputs="x",
    infer=_eig_infer,
    kernel=_eig_kernel,
    special={"cupy": _on_gpu("eig", _eig_kernel)},
    accepts="wide",
    multiple=True,
    vjp={"x": _eig_gradient},
    maths={"x": "x̄ = V⁻ᴴ (diag(w̄) + (Vᴴ V̄ - Vᴴ V Re diag(Vᴴ V̄)) / E*) Vᴴ, Eᵢⱼ = wⱼ - wᵢ"},
    batching="last_axes",
))  # fmt: skip


def eig(x: TensorLike, /) -> EigResult:
    """The eigenvalues, in no order, and eigenvectors of length 1, in columns, of square matrices (..., M, M).

    Both are complex, also where all of them happen to be real. Floating or complex, of 32 bits or more.

    Differentiable where eigenvalues are distinct, eigenvectors for results that do not depend on their phases; the
    gradient of a matrix that lacks eigenvectors is an error, or infinite. Gradient: C. Boeddeker et al., 2017
    (arXiv:1701.00392). Raises ShapeError for other shapes, LinAlgError for NaN or infinity.

    >>> import limelight as ll
    >>> ll.linalg.eig(ll.constant([[2.0, 0.0], [0.0, 3.0]])).eigenvalues.tolist()
    [(2+0j), (3+0j)]
    """
    return EigResult(*_eig((x,)))


def _eigvals_infer(x: TensorSpec) -> TensorSpec:
    return _complex_of(_values_spec("eigvals", x))


@lapack(_eigvals_infer, "eigvals", _UNSETTLED)
def _eigvals_kernel(xp: Any, x: Any) -> Any:
    return xp.linalg.eigvals(x).astype(_COMPLEX_OF.get(x.dtype, x.dtype))


def _eigvals_gradient(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """By a decomposition of its own, whose eigenvalues may come in another order: each goes to the nearest one."""
    w, v = _eig((x,))
    eigenvalues = out.expand_dims(-1)
    apart = abs(eigenvalues - w.expand_dims(-2))
    # An infinity stands beside them, so that the least exists where there are no eigenvalues.
    nearest = apart._beside((abs(eigenvalues) + 1) * float("inf")).min(-1, True)
    same = (apart == nearest).astype(w.dtype)
    moved = (same / same.sum(-1, True) * g.expand_dims(-1)).sum(-2)
    return _eig_gradient((moved, None), x.dtype, (w, v))


_eigvals = entry_point(defop(
    "eigvals",
    inputs="x",
    infer=_eigvals_infer,
    kernel=_eigvals_kernel,
    special={"cupy": _on_gpu("eigvals", _eigvals_kernel)},
    accepts="wide",
    vjp={"x": _eigvals_gradient},
    maths={"x": "x̄ = V⁻ᴴ diag(w̄) Vᴴ"},
    batching="last_axes",
))  # fmt: skip


def eigvals(x: TensorLike, /) -> Tensor:
    """The complex eigenvalues of square matrices (..., M, M), in no order: shape (..., M). See `eig`.

    >>> import limelight as ll
    >>> ll.linalg.eigvals(ll.constant([[0.0, 1.0], [-1.0, 0.0]])).shape
    (2,)
    """
    return _eigvals(x)

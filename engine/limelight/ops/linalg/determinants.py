"""Determinants, `det`, and their logarithms, `slogdet` and `logdet`.

The gradient of `det` is the matrix of cofactors, computed from singular values: exact at any rank, and so are second
derivatives. Third ones go through an inverse, and are NaN where there is none. Of a singular matrix `det` is 0 and
`slogdet` -inf, rather than an error.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from limelight.core import shapes
from limelight.core.eager import EntryPoint, entry_point, entry_point_of_many
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import DTypeError
from limelight.ops._shape_rules import COMPLEX, real_of
from limelight.ops.linalg._matrices import H, check_square, identity_like, lapack, square_to_square

__all__ = ["det", "logdet", "slogdet"]

# The cofactors of a matrix are the derivatives of its determinant. By singular values they and their own derivatives
# are exact for singular matrices too: det(U (S + X) Vᴴ) is a polynomial in X whose coefficients are products of the
# singular values that are left when one or two are taken out.


def _regular(dtype: Any) -> float:
    """The condition up to which a product with an inverse is accurate enough: 8,192 in double precision."""
    return math.pow(float(np.finfo(dtype).eps), -0.25)


def _parts_of(xp: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """U, S and Vᴴ of finite matrices (NaN for others), and det(U Vᴴ)."""
    finite = xp.isfinite(x).all((-2, -1), keepdims=True)
    u, s, vh = xp.linalg.svd(xp.where(finite, x, 0))
    return u, xp.where(finite[..., 0], s, xp.nan), vh, xp.linalg.det(u) * xp.linalg.det(vh)


def _products_of_others(xp: Any, s: Any, n: int) -> Any:
    """The product of all elements but one, for each."""
    one = xp.ones_like(s[..., :1])
    before = xp.cumprod(xp.concatenate([one, s[..., : n - 1]], -1), -1)
    after = xp.cumprod(xp.concatenate([one, s[..., :0:-1]], -1), -1)[..., ::-1]
    return before * after


def _all_but_two(xp: Any, s: Any, n: int) -> Any:
    """The product of all elements but two, for each pair; 0 on the diagonal."""
    rows = [_products_of_others(xp, xp.where(xp.arange(n) == i, 1, s), n) for i in range(n)]
    return xp.stack(rows, -2) * (1 - xp.eye(n, dtype=s.dtype))


def _cofactor_kernel(xp: Any, x: Any) -> Any:
    n = x.shape[-1]
    if not n:
        return x
    with np.errstate(all="ignore"):
        u, s, vh, sign = _parts_of(xp, x)
        return sign[..., None, None] * ((u.conj() * _products_of_others(xp, s, n)[..., None, :]) @ vh.conj())


def _cofactor_numpy(xp: Any, x: Any) -> Any:
    """By inverses, which take a fortieth of the time, if that is accurate for all matrices of the stack."""
    with np.errstate(all="ignore"):
        try:
            inverse, size = np.linalg.inv(x), np.linalg.det(x)[..., None, None]
        except np.linalg.LinAlgError:
            return _cofactor_kernel(xp, x)
        condition = abs(x).sum(-1).max(-1, initial=0) * abs(inverse).sum(-1).max(-1, initial=0)
        if (condition < _regular(x.dtype)).all() and np.isfinite(size).all() and size.all():
            return size * inverse.swapaxes(-1, -2)
    return _cofactor_kernel(xp, x)


def _cofactor_slope_kernel(xp: Any, w: Any, x: Any) -> Any:
    n = x.shape[-1]
    if not n:
        return w + x
    with np.errstate(all="ignore"):
        u, s, vh, sign = _parts_of(xp, x)
        left = _all_but_two(xp, s, n)
        moved = u.swapaxes(-1, -2) @ w @ vh.swapaxes(-1, -2)
        along = (left @ xp.diagonal(moved, 0, -2, -1)[..., None]) * xp.eye(n, dtype=s.dtype)
        slope = u @ (along - left * moved.swapaxes(-1, -2)) @ vh
        return (sign.conj()[..., None, None] * slope).astype(x.dtype)


def _slope_infer(w: TensorSpec, x: TensorSpec) -> TensorSpec:
    return known(shapes.broadcast("cofactor_slope", w.shape, x.shape), x.dtype)


def _nan_gradient(g: Tensor, x_shape: Any) -> Tensor:
    return (g == 0).where(g, float("nan")).sum_to(x_shape)


_cofactor_slope: EntryPoint = entry_point(defop(
    "cofactor_slope",
    inputs="w x",
    infer=_slope_infer,
    kernel=_cofactor_slope_kernel,
    accepts="wide",
    linear="w",
    vjp={"w": lambda g, x, w_shape: _cofactor_slope(g.conj(), x).conj().sum_to(w_shape), "x": _nan_gradient},
    maths={"w": "w̄ = the same of ȳ", "x": "third derivatives of det, known for regular matrices alone"},
    batching="matrix_stacks",
))  # fmt: skip


def _cofactor_gradient(g: Tensor, x: Tensor) -> Tensor:
    """By an inverse where that is accurate, since it can be differentiated again; else by singular values."""
    values = x._svdvals()
    regular: Tensor = (values > values[..., :1] / _regular(x.dtype)).all(-1).expand_dims((-2, -1))
    safe = regular.where(x, identity_like(x))
    size, conjugate, turned = _det(safe).expand_dims((-2, -1)), H(safe._inv()), g.mT
    along = (turned * conjugate.mT).sum((-2, -1), True) * conjugate
    slope: Tensor = size.conj() * (along - conjugate @ turned @ conjugate)
    return regular.where(slope, _cofactor_slope(g, x))


_cofactor: EntryPoint = entry_point(defop(
    "cofactor",
    inputs="x",
    infer=square_to_square("cofactor"),
    kernel=_cofactor_kernel,
    special={"numpy": _cofactor_numpy},
    accepts="wide",
    vjp={"x": _cofactor_gradient},
    maths={"x": "x̄ = second derivatives of det, times ȳ"},
    batching="last_axes",
))  # fmt: skip

# det


def _scalar_infer(name: str) -> Any:
    """The shape rule of a number for each square matrix."""

    def infer(x: TensorSpec) -> TensorSpec:
        check_square(name, x)
        return known(x.shape[:-2], x.dtype)

    return infer


_det_infer = _scalar_infer("det")


@lapack(_det_infer, "det", "has no determinant that LAPACK could find")
def _det_kernel(xp: Any, x: Any) -> Any:
    return xp.linalg.det(x)


_det: EntryPoint = entry_point(defop(
    "det",
    inputs="x",
    infer=_det_infer,
    kernel=_det_kernel,
    accepts="wide",
    vjp={"x": lambda g, x: g.expand_dims((-2, -1)) * _cofactor(x).conj()},
    maths={"x": "x̄ = ȳ cofactor(x)*"},
    batching="last_axes",
))  # fmt: skip


def det(x: TensorLike, /) -> Tensor:
    """The determinant of square matrices (..., M, M): shape (...,). Floating or complex, of 32 bits or more.

    First and second derivatives are exact for singular matrices, too; third ones are NaN there. For large matrices
    `slogdet` does not overflow. Raises ShapeError for other shapes.

    >>> import limelight as ll
    >>> ll.linalg.det(ll.constant([[2.0, 0.0], [1.0, 4.0]])).item()
    8.0
    """
    return _det(x)


# slogdet


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


def _slogdet_infer(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    check_square("slogdet", x)
    sign = known(x.shape[:-2], x.dtype)
    return sign, real_of(sign)


@lapack(_slogdet_infer, "slogdet", "has no determinant that LAPACK could find")
def _slogdet_kernel(xp: Any, x: Any) -> Any:
    return tuple(xp.linalg.slogdet(x))


def _slogdet_gradient(g: tuple[Tensor | None, Tensor | None], x: Tensor, out: tuple[Tensor, Tensor]) -> Tensor | None:
    sign, size = out
    weight = None if g[1] is None else g[1].astype(x.dtype)
    if g[0] is not None and x.dtype in COMPLEX:  # a real sign is constant
        turned = g[0] * sign.conj()
        phase = (turned - turned.conj()) / 2
        weight = phase if weight is None else weight + phase
    if weight is None:
        return None
    singular = (size == -float("inf")).expand_dims((-2, -1))
    inverse: Tensor = singular.where(identity_like(x), x)._inv()
    return weight.expand_dims((-2, -1)) * singular.where(float("nan"), H(inverse))


_slogdet = entry_point_of_many(defop(
    "slogdet",
    inputs="x",
    infer=_slogdet_infer,
    kernel=_slogdet_kernel,
    accepts="wide",
    multiple=True,
    vjp={"x": _slogdet_gradient},
    maths={"x": "x̄ = (l̄ + i Im(s̄ s*)) x⁻ᴴ"},
    batching="last_axes",
))  # fmt: skip


def slogdet(x: TensorLike, /) -> SlogdetResult:
    """The sign and the logarithm of the magnitude of the determinant of square matrices (..., M, M).

    The sign has the dtype of `x` (a number of magnitude 1 where that is complex), the logarithm is real. A singular
    matrix has sign 0, logarithm -inf and gradient NaN. Floating or complex, of 32 bits or more. Raises ShapeError for
    other shapes.

    >>> import limelight as ll
    >>> ll.linalg.slogdet(ll.constant([[1.0, 0.0], [5.0, -1.0]])).sign.item()
    -1.0
    """
    return SlogdetResult(*_slogdet((x,)))


def logdet(x: TensorLike, /) -> Tensor:
    """The logarithm of the determinant of real square matrices (..., M, M): NaN where that is negative, -inf where 0.

    Floating, of 32 bits or more. Raises DTypeError for complex matrices: `slogdet` tells their phase.

    >>> import limelight as ll
    >>> ll.linalg.logdet(ll.eye(3)).item()
    0.0
    """
    x = as_tensor(x)
    if x.dtype in COMPLEX:
        raise DTypeError(f"logdet needs floating operands, got {x.dtype.name}; write linalg.slogdet(x)")
    sign, size = slogdet(x)
    return (sign < 0).where(float("nan"), size)

"""Functions of square matrices: `matrix_power`, and the exponential, `expm`.

`expm` pulls back through itself, of a block matrix; `beside`, which puts blocks side by side, is there for that.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any, Final

import numpy as np

from limelight.core import shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import ArgumentError
from limelight.ops._gradient_terms import zeros
from limelight.ops.linalg._matrices import H, check_square, identity_like, square_to_square

__all__ = ["expm", "matrix_power"]

# matrix_power


def matrix_power(x: TensorLike, n: int, /) -> Tensor:
    """Square matrices (..., M, M) multiplied with themselves `n` times; numeric. About 2 log n products.

    `n` = 0 gives identities, a negative `n` the powers of the inverse, for which `inv` says what is needed. Raises
    ShapeError for other shapes, ArgumentError for an `n` that is no int.

    >>> import limelight as ll
    >>> ll.linalg.matrix_power(ll.constant([[1, 1], [0, 1]]), 5).tolist()
    [[1, 5], [0, 1]]
    """
    x = as_tensor(x)
    check_square("matrix_power", x.spec)
    try:
        n = n.__index__()
    except AttributeError:
        raise ArgumentError(f"matrix_power: the power must be an int, got {n!r}") from None
    if n == 0:
        return identity_like(x)
    base, left = x._inv() if n < 0 else x, abs(n)
    result: Tensor | None = None
    while left:
        if left & 1:
            result = base if result is None else result @ base
        left >>= 1
        base = base @ base if left else base
    assert result is not None, "n is not 0"
    return result


# beside


def _beside_infer(x: TensorSpec, y: TensorSpec) -> TensorSpec:
    left, right = x.shape[-1], y.shape[-1]
    total = None if left is None or right is None else left + right
    return known((*shapes.broadcast("beside", x.shape[:-1], y.shape[:-1]), total), x.dtype)


_beside = entry_point(defop(
    "beside",
    inputs="x y",
    infer=_beside_infer,
    kernel=lambda xp, x, y: xp.concatenate([x, y], -1),
    accepts="inexact",
    vjp={"x": lambda g, x_shape: g[..., : x_shape[-1]], "y": lambda g, x_shape: g[..., x_shape[-1] :]},
    maths={"x": "x̄ = the first columns of ȳ", "y": "ȳ = the last columns"},
    batching="join_last_axis",
))  # fmt: skip


@method("_beside")  # for the gradients of decompositions
def beside(x: Tensor, y: Tensor) -> Tensor:
    """The columns of `x` and then those of `y`."""
    return _beside(x, y)


# expm


def _pade_coefficients(m: int) -> tuple[float, ...]:
    """Of the numerator of the [m/m] Padé approximant to exp; the denominator's are these with alternating signs."""
    steps = [(m - i) / ((2 * m - i) * (i + 1)) for i in range(m)]
    return tuple(itertools.accumulate([1.0, *steps], operator.mul))


_PADE: Final = _pade_coefficients(13)
_RADIUS: Final = 5.371920351148152
"""Up to which 1-norm this approximant is exact in double precision: Higham 2005, table 2.3."""


def _expm_kernel(xp: Any, x: Any) -> Any:
    """Scaling and squaring: exp(x) = exp(x / 2^s)^(2^s), with an s of its own for each matrix."""
    if not x.size:
        return x
    with np.errstate(all="ignore"):
        sizes = abs(x).sum(-2, keepdims=True).max(-1, keepdims=True)
        finite = xp.isfinite(sizes)
        halvings = xp.ceil(xp.log2(xp.where(finite & (sizes > _RADIUS), sizes, _RADIUS) / _RADIUS))
        if not halvings.any() and finite.all():
            return _pade(xp, x)
        result = _pade(xp, (xp.where(finite, x, 0) * xp.exp2(-halvings)).astype(x.dtype))
        for i in range(int(halvings.max())):
            result = xp.where(halvings > i, result @ result, result)
        return xp.where(finite, result, xp.nan).astype(x.dtype)


def _expm_jax(xp: Any, x: Any) -> Any:
    from jax.scipy.linalg import expm as run  # noqa: PLC0415  # JAX is loaded when a device asks for it

    return run(x, max_squarings=32)


def _pade(xp: Any, x: Any) -> Any:
    b, unit = _PADE, xp.eye(x.shape[-1], dtype=x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * unit)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * unit
    return xp.linalg.solve(even - odd, even + odd)


def _expm_gradient(g: Tensor, x: Tensor) -> Tensor:
    """The derivative of exp at xᴴ in the direction of g: the upper right of exp([[xᴴ, g], [0, xᴴ]])."""
    turned, n = H(x), x.sizes()[-1]
    upper = _beside(turned, g)
    lower = _beside(zeros(x.dtype, x.sizes()), turned)
    block = _beside(upper.mT, lower.mT).mT
    return _expm(block)[..., :n, n:]


_expm: EntryPoint = entry_point(defop(
    "expm",
    inputs="x",
    infer=square_to_square("expm"),
    kernel=_expm_kernel,
    special={"jax": _expm_jax},
    accepts="wide",
    vjp={"x": _expm_gradient},
    maths={"x": "x̄ = the upper right of exp([[xᴴ, ȳ], [0, xᴴ]])"},
    batching="last_axes",
))  # fmt: skip


def expm(x: TensorLike, /) -> Tensor:
    """The exponential of square matrices (..., M, M): the sum of x^k / k!. Floating or complex, of 32 bits or more.

    By scaling and squaring: N. J. Higham, The scaling and squaring method for the matrix exponential revisited, 2005.
    The gradient is exact to any order: R. Mathias, 1996. NaN or infinity in a matrix makes all of its result NaN.
    Raises ShapeError for other shapes.

    >>> import limelight as ll
    >>> ll.linalg.expm(ll.constant([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return _expm(x)

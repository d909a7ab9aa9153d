"""The parts of complex numbers: `conj`, `real`, `imag`."""

from __future__ import annotations

from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.ops._gradient_terms import zeros
from limelight.ops._shape_rules import COMPLEX, real_of, same

__all__ = ["conj", "imag", "real"]

# conj

_conj = entry_point(defop(
    "conj",
    inputs="x",
    infer=same,
    kernel="conj",
    accepts="complex",
    vjp={"x": lambda g: g.conj()},
    linear="x",
    maths={"x": "x̄ = ȳ*"},
))  # fmt: skip


@method("conj")
def conj(x: TensorLike, /) -> Tensor:
    """The complex conjugate of each element; real tensors are returned as they are, at no cost.

    >>> import limelight as ll
    >>> ll.conj(ll.constant([1 + 2j])).tolist()
    [(1-2j)]
    """
    if not isinstance(x, Tensor):
        x = as_tensor(x)
    return _conj(x) if x.dtype in COMPLEX else x


# real

_real = entry_point(defop(
    "real",
    inputs="x",
    infer=real_of,
    kernel=lambda xp, x: x.real,
    accepts="complex",
    vjp={"x": lambda g, x_dtype: g.astype(x_dtype)},
    linear="x",
    maths={"x": "x̄ = ȳ"},
))  # fmt: skip


@method("_real")  # for the gradients of astype and sign, in other families
def real(x: TensorLike, /) -> Tensor:
    """The real part of each element; real tensors are returned as they are.

    >>> import limelight as ll
    >>> ll.real(ll.constant([1 + 2j])).tolist()
    [1.0]
    """
    x = as_tensor(x)
    return _real(x) if x.dtype in COMPLEX else x


# imag

_imag = entry_point(defop(
    "imag",
    inputs="x",
    infer=real_of,
    kernel=lambda xp, x: x.imag,
    accepts="complex",
    vjp={"x": lambda g, x_dtype: g.astype(x_dtype) * 1j},
    linear="x",
    maths={"x": "x̄ = i ȳ"},
))  # fmt: skip


def imag(x: TensorLike, /) -> Tensor:
    """The imaginary part of each element; zeros of the same dtype for real tensors, which have no gradient.

    >>> import limelight as ll
    >>> ll.imag(ll.constant([1 + 2j])).tolist()
    [2.0]
    >>> ll.imag(2.0).item()
    0.0
    """
    x = as_tensor(x)
    return _imag(x) if x.dtype in COMPLEX else zeros(x.dtype, x.sizes())

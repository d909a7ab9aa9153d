"""Signs and magnitudes, and the parts of complex numbers."""

from __future__ import annotations

from limelight.core import dtypes
from limelight.core.eager import entry
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.ops._shape_rules import real_of, same

__all__ = ["abs", "conj", "imag", "negative", "positive", "real", "sign"]

COMPLEX = frozenset([dtypes.complex64, dtypes.complex128])

# negative

_negative = entry(defop(
    "negative",
    inputs="x",
    infer=same,
    kernel="negative",
    accepts="numeric",
    vjp={"x": lambda g: -g},
    linear="x",
    maths={"x": "x̄ = -ȳ"},
))  # fmt: skip


@method("__neg__")
def negative(x: TensorLike, /) -> Tensor:
    """`-x` for each element; numeric.

    >>> import limelight as ll
    >>> ll.negative(ll.constant([1, -3])).tolist()
    [-1, 3]
    """
    return _negative(x)


# positive

_positive = entry(defop(
    "positive",
    inputs="x",
    infer=same,
    kernel="positive",
    accepts="numeric",
    vjp={"x": lambda g: g},
    linear="x",
    maths={"x": "x̄ = ȳ"},
))  # fmt: skip


@method("__pos__")
def positive(x: TensorLike, /) -> Tensor:
    """`+x`: the elements as they are, as a tensor of its own; numeric.

    >>> import limelight as ll
    >>> ll.positive(ll.constant([1, -3])).tolist()
    [1, -3]
    """
    return _positive(x)


# abs

_abs = entry(defop(
    "abs",
    inputs="x",
    infer=real_of,
    kernel="abs",
    accepts="numeric",
    vjp={"x": lambda g, x, x_dtype: g.astype(x_dtype) * x.sign()},
    maths={"x": "x̄ = ȳ sign(x)"},
))  # fmt: skip


@method("__abs__", "abs")
def abs(x: TensorLike, /) -> Tensor:  # the Array API's name
    """The magnitude of each element; numeric, real where `x` is complex. Its gradient at 0 is 0.

    >>> import limelight as ll
    >>> ll.abs(ll.constant([-1.5, 2.0])).tolist()
    [1.5, 2.0]
    """
    return _abs(x)


# sign


def _across(g: Tensor, x: Tensor, out: Tensor) -> Tensor | None:
    """The part of `g` at a right angle to `x`, over |x|: only the direction of x changes its sign."""
    if out.dtype not in COMPLEX:
        return None
    magnitude = _abs(x)
    radial = out * real(g * out.conj()).astype(out.dtype)
    return (g - radial) / (magnitude == 0.0).where(1.0, magnitude).astype(out.dtype)


_sign = entry(defop(
    "sign",
    inputs="x",
    infer=same,
    kernel="sign",
    accepts="numeric",
    vjp={"x": _across},
    maths={"x": "x̄: not connected (complex: the part of ȳ at a right angle to x, over |x|)"},
))  # fmt: skip


@method("sign")
def sign(x: TensorLike, /) -> Tensor:
    """-1, 0 or 1 for each element, NaN for NaN; `x / abs(x)` where complex. Real signs are constant: no gradient.

    >>> import limelight as ll
    >>> ll.sign(ll.constant([-2.5, 0.0])).tolist()
    [-1.0, 0.0]
    """
    return _sign(x)


# conj

_conj = entry(defop(
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

_real = entry(defop(
    "real",
    inputs="x",
    infer=real_of,
    kernel=lambda xp, x: x.real,
    accepts="complex",
    vjp={"x": lambda g, x_dtype: g.astype(x_dtype)},
    linear="x",
    maths={"x": "x̄ = ȳ"},
))  # fmt: skip


@method("_real")  # for the gradient of astype, in another family
def real(x: TensorLike, /) -> Tensor:
    """The real part of each element; real tensors are returned as they are.

    >>> import limelight as ll
    >>> ll.real(ll.constant([1 + 2j])).tolist()
    [1.0]
    """
    x = as_tensor(x)
    return _real(x) if x.dtype in COMPLEX else x


# imag

_imag = entry(defop(
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
    """The imaginary part of each element; complex.

    >>> import limelight as ll
    >>> ll.imag(ll.constant([1 + 2j])).tolist()
    [2.0]
    """
    return _imag(x)

"""Signs and magnitudes: `negative`, `positive`, `abs`, `sign`. The gradient of `abs` at 0 is 0."""

from __future__ import annotations

from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.ops._shape_rules import COMPLEX, real_of, same

__all__ = ["abs", "negative", "positive", "sign"]

# negative

_negative = entry_point(defop(
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

_positive = entry_point(defop(
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

_abs = entry_point(defop(
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


def _phase_gradient(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """The part of `g` at a right angle to `x`, over |x|: only the direction of x changes its sign."""
    magnitude = _abs(x)
    radial: Tensor = out * (g * out.conj())._real().astype(out.dtype)
    return (g - radial) / (magnitude == 0.0).where(1.0, magnitude).astype(out.dtype)


_sign = entry_point(defop(
    "sign",
    inputs="x",
    infer=same,
    kernel="sign",
    accepts="real",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip

_complex_sign = entry_point(defop(  # apart, since of complex numbers a sign has a gradient
    "complex_sign",
    inputs="x",
    infer=same,
    kernel="sign",
    accepts="complex",
    vjp={"x": _phase_gradient},
    maths={"x": "x̄ = the part of ȳ at a right angle to x, over |x|"},
))  # fmt: skip


@method("sign")
def sign(x: TensorLike, /) -> Tensor:
    """-1, 0 or 1 for each element, NaN for NaN; `x / abs(x)` where complex. Real signs are constant: no gradient.

    >>> import limelight as ll
    >>> ll.sign(ll.constant([-2.5, 0.0])).tolist()
    [-1.0, 0.0]
    """
    x = as_tensor(x)
    return _complex_sign(x) if x.dtype in COMPLEX else _sign(x)

"""Arithmetic of two operands."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from limelight.core.eager import entry, operators
from limelight.core.op import Domain, defop
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.ops._gradient_terms import conj
from limelight.ops._numpy_reductions import add_reduce
from limelight.ops._shape_rules import broadcast, same

__all__ = ["add", "divide", "floor_divide", "multiply", "pow", "remainder", "square", "subtract"]

# add

_add = entry(defop(
    "add",
    inputs="x y",
    infer=broadcast("add"),
    kernel="add",
    accepts="numeric",
    vjp={
        "x": lambda g, x_shape: g.sum_to(x_shape),
        "y": lambda g, y_shape: g.sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄", "y": "ȳ = z̄"},
))  # fmt: skip


def add(x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x + y`, element by element, broadcasting; also the operator `+`.

    Numeric operands of one kind. Raises ShapeError when the shapes do not broadcast, DTypeError when kinds mix.

    >>> import limelight as ll
    >>> ll.add(ll.constant([1.0, 2.0]), 10.0).tolist()
    [11.0, 12.0]
    """
    return _add(x, y)


operators(_add, "add")

# subtract

_subtract = entry(defop(
    "subtract",
    inputs="x y",
    infer=broadcast("subtract"),
    kernel="subtract",
    accepts="numeric",
    vjp={
        "x": lambda g, x_shape: g.sum_to(x_shape),
        "y": lambda g, y_shape: (-g).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄", "y": "ȳ = -z̄"},
))  # fmt: skip


def subtract(x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x - y`, element by element, broadcasting; also the operator `-`.

    Numeric operands of one kind. Raises ShapeError when the shapes do not broadcast, DTypeError when kinds mix.

    >>> import limelight as ll
    >>> ll.subtract(ll.constant([1, 2]), 10).tolist()
    [-9, -8]
    """
    return _subtract(x, y)


operators(_subtract, "sub")

# multiply

_multiply = entry(defop(
    "multiply",
    inputs="x y",
    infer=broadcast("multiply"),
    kernel="multiply",
    accepts="numeric",
    vjp={
        "x": lambda g, y, x_shape: (g * conj(y)).sum_to(x_shape),
        "y": lambda g, x, y_shape: (g * conj(x)).sum_to(y_shape),
    },
    linear="x y",
    maths={"x": "x̄ = z̄ y*", "y": "ȳ = z̄ x*"},
))  # fmt: skip


def multiply(x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x * y`, element by element, broadcasting; also the operator `*`.

    Numeric operands of one kind. Raises ShapeError when the shapes do not broadcast, DTypeError when kinds mix.

    >>> import limelight as ll
    >>> ll.multiply(ll.constant([1.0, 2.0]), 10.0).tolist()
    [10.0, 20.0]
    """
    return _multiply(x, y)


operators(_multiply, "mul")

# divide

_divide = entry(defop(
    "divide",
    inputs="x y",
    infer=broadcast("divide"),
    kernel="divide",
    accepts="inexact",
    vjp={
        "x": lambda g, y, x_shape: (g / conj(y)).sum_to(x_shape),
        "y": lambda g, y, out, y_shape: (-g * conj(out / y)).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ / y*", "y": "ȳ = -z̄ (z / y)*"},
    domain=Domain(1, "{x} != 0", "1", "a quotient by 0 is infinite or NaN, and so is its gradient"),
))  # fmt: skip


def divide(x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x / y`, element by element, broadcasting; also the operator `/`.

    Floating or complex operands; division by zero gives infinities and NaN, as IEEE 754 has it. Raises DTypeError for
    integers (cast them first, or use `floor_divide`).

    >>> import limelight as ll
    >>> ll.divide(ll.constant([1.0, 3.0]), 2.0).tolist()
    [0.5, 1.5]
    """
    return _divide(x, y)


operators(_divide, "truediv")

# floor_divide


def _floor_divide_kernel(xp: Any, x: Any, y: Any) -> Any:
    """Where one operand is infinite the quotient itself, as the Array API has it; NumPy's would be NaN or -1."""
    found = xp.floor_divide(x, y)
    if found.dtype.kind in "iu":
        return found
    infinite = xp.isinf(x) | xp.isinf(y)
    return xp.where(infinite, xp.divide(x, y), found) if infinite.any() else found


def _floor_divide_numpy(xp: Any, x: Any, y: Any) -> Any:
    """The same, in a third of the time where nothing is infinite: then some total of the operands is finite."""
    found = np.floor_divide(x, y)
    if found.dtype.kind in "iu":
        return found
    try:
        total = np.vdot(x, y)
    except (TypeError, ValueError):  # sizes differ
        total = add_reduce(np.add(x, y), None)
    return found if math.isfinite(total) else _floor_divide_kernel(np, x, y)


_floor_divide = entry(defop(
    "floor_divide",
    inputs="x y",
    infer=broadcast("floor_divide"),
    kernel=_floor_divide_kernel,
    special={"numpy": _floor_divide_numpy},
    accepts="real",
    why_no_gradient="it is constant between jumps",
))  # fmt: skip


def floor_divide(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The largest whole number not above `x / y`, broadcasting; also the operator `//`. Not differentiable.

    Real operands. An integer divided by 0 gives 0.

    >>> import limelight as ll
    >>> ll.floor_divide(ll.constant([7, -7]), 2).tolist()
    [3, -4]
    """
    return _floor_divide(x, y)


operators(_floor_divide, "floordiv")

# remainder

_remainder = entry(defop(
    "remainder",
    inputs="x y",
    infer=broadcast("remainder"),
    kernel="remainder",
    accepts="real",
    vjp={
        "x": lambda g, x_shape: g.sum_to(x_shape),
        "y": lambda g, x, y, y_shape: (-g * (x // y)).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄", "y": "ȳ = -z̄ ⌊x / y⌋"},
))  # fmt: skip


def remainder(x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x - y * floor(x / y)`, which has the sign of `y`, broadcasting; also the operator `%`.

    Real operands.

    >>> import limelight as ll
    >>> ll.remainder(ll.constant([7, -7]), 3).tolist()
    [1, 2]
    """
    return _remainder(x, y)


operators(_remainder, "mod")


def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """What Python's `divmod(x, y)` calls."""
    return x // y, x % y


operators(_divmod, "divmod")

# pow


def _slope(x: Any, y: Any) -> Any:
    """The derivative of xʸ by x: `y * x ** (y - 1)`, but 0 where y is 0, also where x is 0 or infinite."""
    if not isinstance(y, Tensor):
        return y * x ** (y - 1) if y != 0 else 0
    return y * (y == 0).where(1, x) ** (y - 1)


def _log_of_base(x: Any) -> Any:
    """Log x, but 0 where x is 0: 0ʸ does not change with y."""
    if isinstance(x, Tensor):
        return (x == 0).where(1, x).log()
    if isinstance(x, complex):
        return cmath.log(x) if x else 0.0
    return math.log(x) if x > 0 else 0.0 if x == 0 else math.nan


_pow = entry(defop(
    "pow",
    inputs="x y",
    infer=broadcast("pow"),
    kernel="power",
    accepts="numeric",
    vjp={
        "x": lambda g, x, y, x_shape: (g * conj(_slope(x, y))).sum_to(x_shape),
        "y": lambda g, x, out, y_shape: (g * conj(out * _log_of_base(x))).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ (y xʸ⁻¹)*", "y": "ȳ = z̄ (z log x)*"},
    domain=Domain(
        0,
        "{x} > 0",
        "1",
        "a power below 1 has an infinite slope at 0, one below 0 is infinite there; neither is for x < 0",
    ),
))  # fmt: skip


def pow(x: TensorLike, y: TensorLike, /) -> Tensor:  # the Array API's name
    """`x` to the power of `y`, element by element, broadcasting; also the operator `**`.

    Numeric operands of one kind of dtype. `x ** 2` is computed as `square(x)`. Real negative bases with fractional
    exponents give NaN.

    >>> import limelight as ll
    >>> ll.pow(ll.constant([1.0, 2.0]), 3.0).tolist()
    [1.0, 8.0]
    """
    return _square(x) if type(y) in (int, float) and y == 2 else _pow(x, y)


operators(pow, "pow")

# square

_square = entry(defop(
    "square",
    inputs="x",
    infer=same,
    kernel="square",
    accepts="numeric",
    vjp={"x": lambda g, x: g * conj(x * 2)},
    maths={"x": "x̄ = 2 ȳ x*"},
))  # fmt: skip


@method("square")
def square(x: TensorLike, /) -> Tensor:
    """`x * x` for each element; numeric.

    >>> import limelight as ll
    >>> ll.square(ll.constant([1.0, -3.0])).tolist()
    [1.0, 9.0]
    """
    return _square(x)

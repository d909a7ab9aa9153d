"""Arithmetic and its operators: `add`, `subtract`, `multiply`, `divide`, `floor_divide`, `remainder`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from limelight.core.dtypes import float32
from limelight.core.eager import entry_point, operators
from limelight.core.op import Domain, defop
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._gradient_terms import conj
from limelight.ops._kernel_parts import add_reduce
from limelight.ops._shape_rules import broadcast

__all__ = ["add", "divide", "floor_divide", "multiply", "remainder", "subtract"]

# add

_add = entry_point(defop(
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

_subtract = entry_point(defop(
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

_multiply = entry_point(defop(
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

_divide = entry_point(defop(
    "divide",
    inputs="x y",
    infer=broadcast("divide"),
    kernel="divide",
    accepts="inexact",
    integers=float32,
    vjp={
        "x": lambda g, y, x_shape: (g / conj(y)).sum_to(x_shape),
        "y": lambda g, y, out, y_shape: (-g * conj(out / y)).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ / y*", "y": "ȳ = -z̄ (z / y)*"},
    domain=Domain(1, "{x} != 0", "1", "a quotient by 0 is infinite or NaN, and so is its gradient"),
))  # fmt: skip


def divide(x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x / y`, element by element, broadcasting; also the operator `/`.

    Floating or complex operands; integers and booleans are made float32 first (`floor_divide` keeps integers). Division
    by zero gives infinities and NaN, as IEEE 754 has it.

    >>> import limelight as ll
    >>> ll.divide(ll.constant([1.0, 3.0]), 2.0).tolist()
    [0.5, 1.5]
    """
    return _divide(x, y)


operators(_divide, "truediv")

# floor_divide


def _floor_divide_kernel(xp: Any, x: Any, y: Any) -> Any:
    """Where one operand is infinite the quotient itself, as the Array API has it; NumPy's would be NaN or -1."""
    quotient = xp.floor_divide(x, y)
    if quotient.dtype.kind in "iu":
        return quotient
    infinite = xp.isinf(x) | xp.isinf(y)
    return xp.where(infinite, xp.divide(x, y), quotient)


def _floor_divide_numpy(xp: Any, x: Any, y: Any) -> Any:
    """The same, in a third of the time where nothing is infinite: then some total of the operands is finite."""
    quotient = np.floor_divide(x, y)
    if quotient.dtype.kind in "iu":
        return quotient
    try:
        total = np.vdot(x, y)
    except (TypeError, ValueError):  # sizes differ
        total = add_reduce(np.add(x, y), None)
    return quotient if math.isfinite(total) else _floor_divide_kernel(np, x, y)


_floor_divide = entry_point(defop(
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

_remainder = entry_point(defop(
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

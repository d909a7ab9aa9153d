"""Arithmetic and functions of each element."""

from __future__ import annotations

from limelight.eager import entry, operators
from limelight.ops._infer import broadcast, same
from limelight.registry import defop
from limelight.tensor import Tensor, TensorLike, method

# add

_add = entry(defop(
    "add",
    inputs="x y",
    infer=broadcast("add"),
    kernel="add",
    vjp={
        "x": lambda g, x_shape: g.sum_to(x_shape),
        "y": lambda g, y_shape: g.sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄", "y": "ȳ = z̄"},
))  # fmt: skip


def add(x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x + y`, element by element, broadcasting; also the operator `+`.

    Operands of any one kind of dtype. Raises ShapeError when the shapes do not broadcast, DTypeError when kinds mix.

    >>> import limelight as ll
    >>> ll.add(ll.constant([1.0, 2.0]), 10.0).tolist()
    [11.0, 12.0]
    """
    result: Tensor = _add(x, y)
    return result


operators(_add, "add")

# multiply

_multiply = entry(defop(
    "multiply",
    inputs="x y",
    infer=broadcast("multiply"),
    kernel="multiply",
    vjp={
        "x": lambda g, y, x_shape: (g * y).sum_to(x_shape),
        "y": lambda g, x, y_shape: (g * x).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ y", "y": "ȳ = z̄ x"},
))  # fmt: skip


def multiply(x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x * y`, element by element, broadcasting; also the operator `*`.

    Operands of any one kind of dtype. Raises ShapeError when the shapes do not broadcast, DTypeError when kinds mix.

    >>> import limelight as ll
    >>> ll.multiply(ll.constant([1.0, 2.0]), 10.0).tolist()
    [10.0, 20.0]
    """
    result: Tensor = _multiply(x, y)
    return result


operators(_multiply, "mul")

# tanh

_tanh = entry(defop(
    "tanh",
    inputs="x",
    infer=same,
    kernel="tanh",
    accepts="inexact",
    vjp={"x": lambda g, out: g * (1.0 - out * out)},
    maths={"x": "x̄ = ȳ (1 - y²)"},
))  # fmt: skip


@method("tanh")
def tanh(x: TensorLike, /) -> Tensor:
    """Hyperbolic tangent of each element; floating or complex.

    >>> import limelight as ll
    >>> ll.tanh(ll.constant(0.0)).item()
    0.0
    """
    return _tanh(x)

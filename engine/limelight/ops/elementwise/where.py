"""A choice between two operands for each element: `where`, and `nan_to_num`, which is made of it."""

from __future__ import annotations

from math import inf
from typing import Any

import ml_dtypes

from limelight.core import shapes
from limelight.core.dtypes import is_inexact, kind
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import DTypeError

__all__ = ["nan_to_num", "where"]

# where


def _where_infer(condition: TensorSpec, x: TensorSpec, y: TensorSpec) -> TensorSpec:
    return known(shapes.broadcast("where", condition.shape, x.shape, y.shape, of=(condition, x, y)), x.dtype)


_where = entry_point(defop(
    "where",
    inputs="condition:bool x y",
    infer=_where_infer,
    kernel="where",
    vjp={
        "x": lambda g, condition, x_shape: condition.where(g, 0.0).sum_to(x_shape),
        "y": lambda g, condition, y_shape: condition.where(0.0, g).sum_to(y_shape),
    },
    elementwise=True,
    maths={"x": "x̄ = z̄ where the condition holds, else 0", "y": "ȳ = z̄ where it does not, else 0"},
))  # fmt: skip


@method("where")
def where(condition: TensorLike, x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x` where the boolean `condition` holds and `y` elsewhere, element by element, all three broadcasting.

    `x` and `y` are of one kind of dtype. Both are computed; to run only one of two computations use `ll.cond`.

    >>> import limelight as ll
    >>> ll.where(ll.constant([True, False]), ll.constant([1.0, 2.0]), 0.0).tolist()
    [1.0, 0.0]
    """
    return _where((condition, x, y))


def nan_to_num(x: TensorLike, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """`x` with NaN and infinities replaced by numbers.

    Args:
        x: real; integers and booleans stay as they are.
        nan: what replaces NaN; 0.
        posinf: what replaces inf; by default the dtype's largest number.
        neginf: what replaces -inf; by default the dtype's least number.

    Returns:
        A tensor of the shape and dtype of `x`. The gradient of what is replaced is 0.

    Raises:
        DTypeError: `x` is complex.

    >>> import limelight as ll
    >>> ll.nan_to_num(ll.constant([1.0, ll.nan, ll.inf]), posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """
    x = as_tensor(x)
    if not is_inexact(x.dtype):
        return x
    if kind(x.dtype) == "complex":
        raise DTypeError(f"nan_to_num needs real operands, got {x.dtype.name}; write it for ll.real(x) and ll.imag(x)")
    limits: Any = ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call]  # the library has no annotations here
    largest = float(limits.max)
    result = where(x != x, nan, x)  # noqa: PLR0124  # NaN, and nothing else
    result = where(x == inf, largest if posinf is None else posinf, result)
    return where(x == -inf, -largest if neginf is None else neginf, result)

"""The triangular parts of matrices: `tril`, `triu`."""

from __future__ import annotations

from typing import Any

from limelight.core import shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.errors import ShapeError

__all__ = ["tril", "triu"]


def _triangle_infer(name: str) -> Any:
    def infer(x: TensorSpec, offset: int) -> TensorSpec:
        if x.rank < 2:
            raise ShapeError(f"{name}: {x} is no matrix: it needs two axes at least; use expand_dims or reshape")
        return known(x.shape, x.dtype)

    return infer


def _triangle_kernel(name: str) -> Any:
    """The function of xp, which would make a matrix of a vector by itself."""

    def kernel(xp: Any, x: Any, offset: int) -> Any:
        if x.ndim < 2:
            raise ValueError("no matrix")  # the shape rule says it better
        return getattr(xp, name)(x, offset)

    return kernel


# tril

_tril: EntryPoint = entry_point(defop(
    "tril",
    inputs="x",
    attrs="offset",
    infer=_triangle_infer("tril"),
    kernel=_triangle_kernel("tril"),
    vjp={"x": lambda g, offset: _tril(g, offset)},
    linear="x",
    maths={"x": "x̄ = the lower triangle of ȳ"},
    batching="last_axes",
))  # fmt: skip


@method("_tril")  # for the gradients of decompositions
def tril(x: TensorLike, /, k: int = 0) -> Tensor:
    """The last two axes of `x` with zeros above the `k`-th diagonal (0 the main one, above it positive).

    Raises ShapeError for vectors.

    >>> import limelight as ll
    >>> ll.tril(ll.ones((2, 2))).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return _tril(x, k if type(k) is int else shapes.whole("tril", "k", k))


# triu

_triu: EntryPoint = entry_point(defop(
    "triu",
    inputs="x",
    attrs="offset",
    infer=_triangle_infer("triu"),
    kernel=_triangle_kernel("triu"),
    vjp={"x": lambda g, offset: _triu(g, offset)},
    linear="x",
    maths={"x": "x̄ = the upper triangle of ȳ"},
    batching="last_axes",
))  # fmt: skip


@method("_triu")  # for the gradients of decompositions
def triu(x: TensorLike, /, k: int = 0) -> Tensor:
    """The last two axes of `x` with zeros below the `k`-th diagonal (0 the main one, above it positive).

    Raises ShapeError for vectors.

    >>> import limelight as ll
    >>> ll.triu(ll.ones((2, 2))).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return _triu(x, k if type(k) is int else shapes.whole("triu", "k", k))

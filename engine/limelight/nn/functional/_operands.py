"""Operands of compositions: checked under the name of the function that the user called, not of the op that fails."""

from __future__ import annotations

from typing import Final, TypeVar

from limelight.core import dtypes, shapes
from limelight.core.dtypes import DType
from limelight.core.shapes import Shape
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, DTypeError, ShapeError

_SHORT: Final = (dtypes.float16, dtypes.bfloat16)
T = TypeVar("T")


def floating(name: str, x: TensorLike) -> Tensor:
    """`x` as a tensor. Raises DTypeError unless it is floating."""
    x = as_tensor(x)
    if dtypes.kind(x.dtype) != "floating":
        raise DTypeError(f"{name} needs floating operands, got {x.dtype.name}; write ll.astype(x, ll.float32) first")
    return x


def wide(x: Tensor) -> Tensor:
    """`x` in float32 where it has 16 bits, in which sums and differences lose too much."""
    return x.astype(dtypes.float32) if x.dtype in _SHORT else x


def widened(name: str, x: TensorLike | None, dtype: DType) -> Tensor | None:
    """An optional operand in the dtype that is computed in."""
    return None if x is None else floating(name, x).astype(dtype)


def check_broadcast(name: str, **given: Tensor) -> None:
    """Raises ShapeError unless the operands broadcast."""
    shapes.broadcast(name, *[x.shape for x in given.values()])


def check_alike(name: str, x: Tensor, y: Tensor, what: str = "predictions and targets") -> None:
    """Checks that the shapes of two operands are equal, as far as they are known.

    Args:
        name: that of the function that the user called.
        x: one operand.
        y: the other operand.
        what: what the two are, for the message.

    Raises:
        ShapeError: they are not.
    """
    if len(x.shape) == len(y.shape):
        axis = next(
            (i for i, (m, n) in enumerate(zip(x.shape, y.shape, strict=True)) if None not in (m, n) and m != n), None
        )
        if axis is None:
            return
        clash = f"axis {axis} has sizes {x.shape[axis]} and {y.shape[axis]}"
    else:
        clash = f"they have {len(x.shape)} and {len(y.shape)} axes"
    remedy = _as_alike(x.shape, y.shape, what.rpartition(" ")[2])
    raise ShapeError(f"{name}: {what} must have the same shape, got {x.spec} and {y.spec}: {clash}; {remedy}")


def _as_alike(x: Shape, y: Shape, second: str) -> str:
    """What to write for `second`, of shape `y`, where the shape `x` is needed."""
    if x.count(None) < 2 and [n for n in x if n != 1] == [n for n in y if n != 1]:
        sizes = shapes.show([-1 if n is None else n for n in x])
        return f"write {second}.reshape({sizes})"
    if None not in x and len(y) <= len(x) and all(n in (1, m) for m, n in zip(x[::-1], y[::-1], strict=False)):
        return f"where repetition is meant, write ll.broadcast_to({second}, {shapes.show(x)})"
    return "reshape one, or use ll.broadcast_to where repetition is meant"


def choice(name: str, what: str, given: T, among: tuple[T, ...]) -> T:
    """A word or number that must be one of a few.

    Args:
        name: that of the function that the user called.
        what: that of its argument.
        given: the argument.
        among: what is allowed.

    Returns:
        `given`.

    Raises:
        ArgumentError: it is none of those allowed.
    """
    if given not in among:
        raise ArgumentError(f"{name}: {what} must be one of {', '.join(map(repr, among))}; got {given!r}")
    return given

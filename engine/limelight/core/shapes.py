"""Shapes: tuples of sizes, where None stands for a size that is known only at run time."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from limelight.errors import ArgumentError, AxisError, LimelightError, ShapeError, SymbolicValueError

Shape: TypeAlias = tuple[int | None, ...]


def as_shape(like: int | Iterable[int | None] | None) -> Shape:
    """`like` as a tuple of sizes; a single int is a vector's length."""
    if type(like) is tuple:
        for n in like:
            if type(n) is not int or n < 0:
                break
        else:
            return like
    if isinstance(like, int) or like is None:
        return (like,)
    if not isinstance(like, Iterable):
        like = (as_size("a shape", like),)
    sizes = tuple(None if n is None else as_size("a shape", n) for n in like)
    if any(n is not None and n < 0 for n in sizes):
        raise ShapeError(f"sizes must not be negative, got {show(sizes)}")
    return sizes


def as_size(what: str, n: Any) -> int:
    """`n` as a Python int; raises ShapeError, which begins with `what`, for anything but an integer."""
    try:
        return operator.index(n)
    except TypeError:
        raise ShapeError(f"{what}: sizes must be integers, got {n!r} ({type(n).__name__}); write int(n)") from None


def whole(op: str, what: str, n: Any) -> int:
    """`n` as a Python int; raises ArgumentError that names `op` and `what` for anything but an integer."""
    try:
        return operator.index(n)
    except SymbolicValueError:
        if op not in _WITH_UNKNOWN_SIZES:
            raise
        raise SymbolicValueError(f"{op}: {what} must be known while tracing, got {n.spec}{_if_unknown(op)}") from None
    except LimelightError:
        raise  # a tensor, which says why it is no index
    except TypeError:
        hint = _if_unknown(op) if n is None else ""
        raise ArgumentError(f"{op}: {what} must be an int, got {n!r} ({type(n).__name__}){hint}") from None


_WITH_UNKNOWN_SIZES: Final = {
    "eye": "ll.astype(ll.arange(n)[:, None] == ll.arange(n), ll.float32)",
    "one_hot": "ll.astype(ll.expand_dims(x, -1) == ll.arange(n), ll.float32)",
    "linspace": "start + step * ll.astype(ll.arange(n), ll.float32)",
    "tile": "ll.broadcast_to(x, (n, ...)), or ll.repeat(x, n, axis=0)",
}
"""What does the work of an op that takes Python's integers alone, where one is a size of a trace."""


def _if_unknown(op: str) -> str:
    """What to write if a size of `x.shape`, unknown while tracing, was meant."""
    instead = _WITH_UNKNOWN_SIZES.get(op)
    if instead is None:
        return (
            f"; if it is a size of x.shape that is unknown while tracing: {op} needs it as an int, so give x that size"
        )
    return f"; for a size of x that is unknown while tracing write {instead}, where n = ll.shape_of(x)[0]"


def flag(op: str, what: str, given: Any) -> bool:
    """`given` as a bool, NumPy's and 0 and 1 included. Raises ArgumentError that names `op` and `what` for all else."""
    if isinstance(given, (bool, int, np.bool_)) and given in (0, 1):
        return bool(given)
    raise ArgumentError(f"{op}: {what} must be True or False, got {given!r}; others go by name")


def wholes(op: str, what: str, given: Any) -> tuple[int, ...]:
    """One integer, or several, as a tuple; raises ArgumentError as `whole` does."""
    several = (isinstance(given, Sequence) and not isinstance(given, str)) or bool(getattr(given, "ndim", False))
    return tuple([whole(op, what, n) for n in given]) if several else (whole(op, what, given),)


def show(shape: Sequence[int | None]) -> str:
    """A shape as written in messages: "(3, None)"."""
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def is_static(shape: Sequence[int | None]) -> bool:
    return None not in shape


def size(shape: Sequence[int | None]) -> int | None:
    """The number of elements, or None when a size is unknown."""
    return None if None in shape else prod(n for n in shape if n is not None)


def broadcast(op: str, *given: Shape, of: Sequence[Any] = ()) -> Shape:
    """The shape in which `given` meet by NumPy's rules; an unknown size meets 1 as unknown and n as n.

    Raises ShapeError that names `op`, the shapes (or the operands `of` which they are) and the axis that clashes.
    """
    if len(given) == 2:  # nearly always, and nearly always one fits into the other
        x, y = given
        if None not in x and None not in y:
            if x == y or not y:
                return x
            if not x or (len(y) >= len(x) and y[len(y) - len(x) :] == x):
                return y
            if x[len(x) - len(y) :] == y and len(x) >= len(y):
                return x
    rank = max(map(len, given), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in given]
    return tuple(_meet(op, of or given, axis - rank, [shape[axis] for shape in padded]) for axis in range(rank))


def _meet(op: str, named: Sequence[Any], axis: int, sizes: list[int | None]) -> int | None:
    known = {n for n in sizes if n is not None and n != 1}
    if len(known) > 1:
        raise ShapeError(
            f"{op}: {_named(named)} do not broadcast: "
            f"axis {axis} has sizes {' and '.join(str(n) for n in dict.fromkeys(sizes) if n in known)}; "
            "sizes must be equal or 1 (use reshape, expand_dims or a transpose to line them up)"
        )
    if known:
        return known.pop()
    return None if None in sizes else 1


def _named(operands: Sequence[Any]) -> str:
    plain = all(type(x) is tuple for x in operands)
    return "shapes " + " and ".join(map(show, operands)) if plain else " and ".join(map(str, operands))


def axes(op: str, rank: int, axis: int | Sequence[int] | None) -> tuple[int, ...]:
    """`axis` as sorted non-negative axes of a tensor of `rank` dimensions; None means all."""
    if axis is None:
        return tuple(range(rank))
    if isinstance(axis, (str, float)):
        instead = f"; of two operands write ll.{op}imum(x, {axis!r})" if op in ("max", "min") else ""
        raise ArgumentError(
            f"{op}: axis must be an int, a tuple of ints or None, got {axis!r} ({type(axis).__name__}){instead}"
        )
    positions = tuple([one_axis(op, rank, a) for a in wholes(op, "axis", axis)])
    if len(set(positions)) != len(positions):
        raise ArgumentError(f"{op}: axis {axis} names the same axis twice")
    return tuple(sorted(positions))


def one_axis(op: str, rank: int, axis: int) -> int:
    """`axis` counted from the front; raises AxisError when the tensor has no such axis."""
    index = whole(op, "axis", axis)
    if not -rank <= index < rank:
        allowed = f"from {-rank} to {rank - 1}" if rank else "none: it is a scalar"
        raise AxisError(f"{op}: axis {axis} is out of range for a tensor of rank {rank} (allowed: {allowed})")
    return index % rank


def reduce(shape: Shape, over: tuple[int, ...], keepdims: bool) -> Shape:
    """The shape after reducing the non-negative axes `over`."""
    if keepdims:
        return tuple(1 if i in over else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in over)


def compatible(actual: Shape, required: Shape) -> bool:
    """Whether a tensor of shape `actual` may stand where `required` was promised."""
    return len(actual) == len(required) and all(r is None or a == r for a, r in zip(actual, required, strict=True))


def generalise(a: Shape, b: Shape) -> Shape | None:
    """The most specific shape that covers both, or None when their ranks differ."""
    if len(a) != len(b):
        return None
    return tuple(m if m == n else None for m, n in zip(a, b, strict=True))

"""Large arrays as rows, so that what is computed of elements can be computed of a piece of the rows at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from limelight.core.shapes import Shape

PIECE: Final = 1 << 16
"""Elements of a piece: they stay in a core's cache."""


class Rows(NamedTuple):
    """Operands that broadcast to a shape, whose leading axes are one.

    Args:
        shape: how many rows, then the axes that are left.
        operands: those that have rows with such axes, the others without the first.
        cut: for each operand whether it has rows.
    """

    shape: tuple[int, ...]
    operands: list[Any]
    cut: list[bool]

    def pieces(self, elements: int) -> list[slice]:
        """All rows in pieces of about so many elements."""
        step = max(1, elements // math.prod(self.shape[1:]))
        return [slice(start, min(start + step, self.shape[0])) for start in range(0, self.shape[0], step)]

    def of(self, piece: slice) -> list[Any]:
        """The operands there."""
        return [x[piece] if cut else x for x, cut in zip(self.operands, self.cut, strict=True)]


def in_rows(operands: Sequence[Any], shape: Shape) -> Rows | None:
    """As many axes are rows as each operand has all of, or none of; None where one lies in another order of memory.

    Args:
        operands: arrays, or numbers.
        shape: what they broadcast to: known, of more than one element.
    """
    if not all(map(_lies_in_c_order, operands)):
        return None
    sizes = tuple([n or 0 for n in shape])
    padded = [(1,) * (len(sizes) - len(own)) + own for own in [getattr(x, "shape", ()) for x in operands]]
    leading = [_leading(own, sizes) for own in padded]
    lead = min([count for count, _ in leading])
    if not all(x.flags.c_contiguous for x in operands if hasattr(x, "flags")):
        lead = min(lead, 1)  # or rows would be a copy
    rows = math.prod(sizes[:lead])
    views = [
        x if not hasattr(x, "reshape") else x.reshape((rows, *own[lead:]) if cut else own[lead:])
        for x, own, (_, cut) in zip(operands, padded, leading, strict=True)
    ]
    return Rows((rows, *sizes[lead:]), views, [cut for _, cut in leading])


def _leading(own: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, bool]:
    """How many leading axes an operand has all of, or none of; and which of the two."""
    has = [(i, n == size) for i, (n, size) in enumerate(zip(own, sizes, strict=True)) if size != 1]
    return next((i for i, here in has if here is not has[0][1]), len(sizes)), has[0][1]


def _lies_in_c_order(x: Any) -> bool:
    """Whether the axes of an array are in memory one inside the other, the last one innermost, and run forwards."""
    flags = getattr(x, "flags", None)
    if flags is None or flags.c_contiguous:
        return True
    strides = [stride for n, stride in zip(x.shape, x.strides, strict=True) if n != 1]
    return strides[-1] > 0 and all(a > b for a, b in itertools.pairwise(strides))

"""`element_place`: an index of a `TensorArray`, checked when it is used. It counts from 0, and not from the end."""

from __future__ import annotations

from typing import Any, Final

from limelight.core.op import defop
from limelight.ops._shape_rules import broadcast

__all__: list[str] = []  # arrays call it by name

FROM_ZERO: Final = ": indices count from 0, and none from the end; write array.size() - 1 for the last"


def _checked(xp: Any, index: Any, size: Any) -> Any:
    wrong = (index < 0) | (index >= size)
    if wrong.any():
        sizes = xp.broadcast_to(size, wrong.shape)
        given, size = int(xp.broadcast_to(index, wrong.shape)[wrong][0]), int(sizes[wrong][0])
        raise IndexError(f"there is no index {given} in a TensorArray of {size} elements{FROM_ZERO}")
    return xp.add(index, xp.zeros_like(size))


defop(
    "element_place",
    inputs="index size",
    infer=broadcast("element_place"),
    kernel=lambda xp, index, size: xp.where(index < 0, size, index),
    special={"numpy": _checked},
    accepts="integer",
    why_no_gradient="it is an index",
)

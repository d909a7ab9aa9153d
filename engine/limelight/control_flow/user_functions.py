"""Errors and advice about what the functions that users give to control flow get and return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, as_tensor
from limelight.errors import ControlFlowError, DTypeError


def as_carried(op: str, names: Sequence[str], leaves: Sequence[Any], before: Sequence[TensorSpec] = ()) -> list[Tensor]:
    """What a loop carries, as tensors. Raises ControlFlowError for None.

    Args:
        op: the public function, for the error.
        names: what the leaves are called there.
        leaves: what the user gave, or a step returned.
        before: of what a step returned, the specs on entry.
    """
    for i, x in enumerate(leaves):
        if x is None and before:
            raise ControlFlowError(
                f"{op}: `{names[i]}` is {before[i]} on entry and None after one step; the function must return it"
            )
        if x is None:
            raise ControlFlowError(
                f"{op}: `{names[i]}` is None, and a loop carries tensors; write () where there is nothing to carry"
            )
    return [as_tensor(x) for x in leaves]


def suggest_initial_dtype(error: DTypeError, names: Sequence[str], carried: Sequence[Any]) -> None:
    """Adds to `error`, of operands that do not mix, that one which is `carried` may have begun in the wrong dtype."""
    for name, x in zip(names, carried, strict=True):
        if id(x) in error.operands and error.wanted is not None and x.dtype != error.wanted:
            where = str(error)[len(error.bare) :]
            error.bare += f"; or, if `{name}` itself should be carried as {error.wanted.name}, "
            error.bare += _initial_conversion(x.spec, error.wanted)
            error.args = (error.bare + where,)
            return


def _initial_conversion(before: TensorSpec, wanted: DType) -> str:
    number = "0.0 instead of 0, or " if before.rank == 0 and wanted == dtypes.float32 else ""
    return f"begin with {number}ll.astype(..., ll.{wanted.name})"


def conversion_hint(before: TensorSpec, after: TensorSpec, inside: str) -> str:
    """What to write where a carried value changes its dtype or rank; "" where only sizes change."""
    if before.dtype != after.dtype:
        start = _initial_conversion(before, after.dtype) if dtypes.holds(after.dtype, before.dtype) else ""
        cast = f"cast in the {inside}: ll.astype(..., ll.{before.dtype.name})"
        return f"{start[:1].upper()}{start[1:]}, or {cast}" if start else f"{cast[:1].upper()}{cast[1:]}"
    if before.rank != after.rank:
        return f"The number of axes cannot change: reshape in the {inside}, to {before.rank}"
    return ""

"""Calls of the functions given to control flow, and what is wrong with what they get or return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.core.spec import TensorSpec
from limelight.errors import CallError, DTypeError


def called(op: str, parameter: str, gets: str, fn: Callable[..., Any], *given: Any) -> Any:
    """`fn(*given)`, the function that `op` was given as `parameter`.

    Raises CallError, which says what it `gets`, where it does not take that many arguments.
    """
    try:
        return fn(*given)
    except TypeError as error:
        if _takes(fn, given):
            raise
        number = f"{len(given) or 'no'} argument{'' if len(given) <= 1 else 's'}"
        raise CallError(f"{op}: {parameter} gets {number}{gets and ', '}{gets}, but {error}") from None


def _takes(fn: Callable[..., Any], given: Sequence[Any]) -> bool:
    """Whether it can be called with that many arguments, as far as can be told."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*given)
    except TypeError:
        return False
    return True


def blame_beginning(error: DTypeError, names: Sequence[str], carried: Sequence[Any]) -> None:
    """Adds to `error` that what is `carried`, which did not mix with others, may have begun in the wrong dtype."""
    for name, x in zip(names, carried, strict=True):
        if id(x) in error.operands and error.wanted is not None:
            where = str(error)[len(error.bare) :]
            error.bare += f"; or, if `{name}` itself should be carried as {error.wanted.name}, "
            error.bare += _beginning(x.spec, error.wanted)
            error.args = (error.bare + where,)
            return


def _beginning(before: TensorSpec, wanted: DType) -> str:
    number = "0.0 instead of 0, or " if before.rank == 0 and wanted == dtypes.float32 else ""
    return f"begin with {number}ll.astype(..., ll.{wanted.name})"


def repaired(before: TensorSpec, after: TensorSpec, inside: str) -> str:
    """What to write where something carried changes its dtype or rank; "" where only sizes change."""
    if before.dtype != after.dtype:
        start = _beginning(before, after.dtype) if dtypes.holds(after.dtype, before.dtype) else ""
        cast = f"cast in the {inside}: ll.astype(..., ll.{before.dtype.name})"
        return f"{start[:1].upper()}{start[1:]}, or {cast}" if start else f"{cast[:1].upper()}{cast[1:]}"
    if before.rank != after.rank:
        return f"The number of axes cannot change: reshape in the {inside}, to {before.rank}"
    return ""

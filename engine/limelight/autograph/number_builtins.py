"""Builtins asked of what stands for a Python number in a cell: they answer as in the plain cell, or are refused.

What is a number in some runs only is a tensor to them in the others: the code beside it says which (`python_numbers`).
"""

from __future__ import annotations

import builtins
from typing import Any, Final

from limelight.autograph.python_numbers import (
    MixedNumber,
    SymbolicNumber,
    as_number,
    by_kind,
    examples,
    is_unsure,
    sources_of,
    tells,
    without_number,
)
from limelight.core import dtypes
from limelight.core.tensor import Tensor, array_stand_ins
from limelight.errors import ControlFlowError
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code.tracebacks import in_place_of_python


def _stands_for_number(args: tuple[Any, ...]) -> bool:
    return bool(args) and tells.codes and type(args[0]) in (SymbolicNumber, MixedNumber)


def _meant(x: Any) -> Any:
    """`x`, or of what stands for an array of NumPy's in a cell an array."""
    return x.meant if array_stand_ins and type(x) is array_stand_ins[0] else x


@in_place_of_python
def _isinstance(x: Any, kinds: Any) -> Any:
    """As the plain code answers, each run its own way where that depends on it."""
    return by_kind(x, lambda one: isinstance(one, kinds)) if _stands_for_number((x,)) else isinstance(_meant(x), kinds)


@in_place_of_python
def _hasattr(x: Any, name: str) -> Any:
    return by_kind(x, lambda one: hasattr(one, name)) if _stands_for_number((x,)) else hasattr(_meant(x), name)


@in_place_of_python
def _type(*args: Any) -> Any:
    if len(args) != 1:
        return type(*args)
    if not _stands_for_number(args):
        return Tensor if tells.codes and type(args[0]) is SymbolicTensor else type(_meant(args[0]))
    if type(args[0]) is MixedNumber:
        raise ControlFlowError(
            "the type is asked of what is a Python number in some runs, and in others a tensor or another kind of "
            "number, which is unknown while tracing; write isinstance(x, float), or begin with a tensor, as "
            "ll.constant(...), so that it is one in all"
        )
    return type(examples(args[0])[0])


@in_place_of_python
def class_of(x: Any) -> Any:
    """`x.__class__`."""
    return _type(x) if _stands_for_number((x,)) else x.__class__


def _converting(kind: Any, dtype: Any) -> Any:
    """`int`, `float` or `bool` of a number."""

    @in_place_of_python
    def convert(*args: Any) -> Any:
        if len(args) != 1 or not _stands_for_number(args):
            return kind(*args)
        x = without_number(args[0])
        unsure = is_unsure(args[0]) or (kind is not bool and getattr(args[0], "kind", None) is float)
        return as_number(x != 0 if kind is bool else x.astype(dtype), kind, sources_of(args[0]), unsure)

    return convert


OVERLOADS: Final[dict[Any, Any]] = {
    builtins.isinstance: _isinstance,
    builtins.hasattr: _hasattr,
    builtins.type: _type,
    builtins.int: _converting(int, dtypes.int32),
    builtins.float: _converting(float, dtypes.float32),
    builtins.bool: _converting(bool, dtypes.bool_),
}

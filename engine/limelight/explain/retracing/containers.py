"""What the lists of a call could be instead: one tensor, by `ll.constant` of numbers or `ll.stack` of tensors."""

from __future__ import annotations

import itertools
import re
from typing import Any, Final

from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.core.shapes import Shape
from limelight.explain.retracing.causes import ADVICE, Cause
from limelight.explain.retracing.fix_context import FixContext
from limelight.explain.retracing.key_diff import Change, TextPart
from limelight.staging.key import Key
from limelight.staging.key_parts import Part, TensorPart, ValuePart, VariablePart

_NUMBERS: Final[dict[str, tuple[type, ...]]] = {"bool": (bool,), "integer": (int,), "floating": (int, float)}
"""What a tensor of each kind of dtype can be made of."""


def constant(dtype: DType) -> str:
    """The expression for a number as a tensor, with {} for it."""
    return "ll.constant({})" if dtype == dtypes.float32 else f'll.constant({{}}, "{dtype.name}")'


def as_tensor(path: str, tensor: TensorPart, context: FixContext) -> str | None:
    """The expression that makes such a tensor of the lists at `path`, with {} for them; None where they are no such."""
    found = _grid(path, context.key, context)
    if found is None:
        return None
    sizes, parts = found
    if all(isinstance(part, ValuePart) and part.kind in _NUMBERS.get(dtypes.kind(tensor.dtype), ()) for part in parts):
        floats = any(isinstance(part, ValuePart) and part.kind is float for part in parts)
        made = constant(tensor.dtype) if floats else f'll.constant({{}}, "{tensor.dtype.name}")'
        return made if sizes == tensor.shape else None
    one = _shared_type(parts)
    return "ll.stack({})" if one == (tensor.dtype, tensor.shape[1:]) and sizes == tensor.shape[:1] else None


def advice_on_kind(change: Change, context: FixContext) -> str:
    """What to do where one call has a tensor and another one a list that no code here makes one of."""
    kinds = [part.kind for part in (change.before, change.after) if isinstance(part, TextPart)]
    tensors = [part for part in (change.before, change.after) if isinstance(part, (TensorPart, VariablePart))]
    if isinstance(change.before, TensorPart) and as_tensor(change.path, change.before, context) is not None:
        return ""
    if len(kinds) != 1 or kinds[0] not in (list, tuple) or not tensors:
        return ""
    return f"Pass a tensor as `{change.path}` in each call: ll.constant makes one of numbers, ll.stack one of tensors."


def advice_on_count(change: Change, context: FixContext) -> str:
    """What could take the place of so many values: a tensor, where they are of one type in both calls."""
    keys = [context.key, *([] if context.closest is None else [context.closest.key])]
    parts = [part for key in keys for _, part in _leaves(change.path, key, context)]
    if all(isinstance(part, ValuePart) for part in parts):
        return ADVICE[Cause.COUNT].replace("ll.stack", "ll.constant")
    if _shared_type(parts) is not None:
        return ADVICE[Cause.COUNT]
    return "Each number of values needs a trace of its own, since tensors of several shapes or dtypes cannot be one."


def _leaves(path: str, key: Key, context: FixContext) -> list[tuple[str, Part]]:
    """What is in a container, each with the way to it from there."""
    paths = context.signature.paths(key.structure, len(key.parts))
    inside = [
        (leaf, part) for leaf, part in zip(paths, key.parts, strict=True) if leaf.startswith((f"{path}[", f"{path}."))
    ]
    return [(leaf[len(path) :], part) for leaf, part in inside]


def _grid(path: str, key: Key, context: FixContext) -> tuple[Shape, list[Part]] | None:
    """The sizes of nested lists that could be an array, and what is in them."""
    leaves = _leaves(path, key, context)
    if not leaves or not all(re.fullmatch(r"(\[\d+\])+", way) for way, _ in leaves):
        return None
    places = [tuple(map(int, re.findall(r"\d+", way))) for way, _ in leaves]
    if len(set(map(len, places))) > 1:
        return None
    sizes = tuple([max(axis) + 1 for axis in zip(*places, strict=True)])
    whole = places == list(itertools.product(*map(range, sizes)))
    return (sizes, [part for _, part in leaves]) if whole else None


def _shared_type(parts: list[Part]) -> Any:
    """The dtype and shape that tensors and variables share."""
    types = {
        (part.dtype, part.shape if isinstance(part, TensorPart) else part.spec.shape)
        if isinstance(part, (TensorPart, VariablePart))
        else None
        for part in parts
    }
    return types.pop() if len(types) == 1 else None

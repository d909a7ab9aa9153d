"""Signatures to declare: `input_signature` with the sizes that vary left open, or `reduce_retracing`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from limelight import nest, shapes
from limelight.dtypes import DType
from limelight.errors import SignatureError
from limelight.nest import Structure
from limelight.staging.changes import Change, Part, quoted
from limelight.staging.signature import part_of
from limelight.staging.situation import MOST, Code, Fix, Situation, decorator


def for_shapes(changes: Sequence[Change], templates: dict[str, str], situation: Situation) -> list[Fix]:
    """A signature with the sizes that vary left open, or `reduce_retracing` where a signature cannot say it."""
    shaped = [c for c in changes if c.before[0] == c.after[0] == "tensor" and _sizes_differ(c.before[2], c.after[2])]
    if not shaped:
        return []
    paths = tuple([change.path for change in shaped])
    options = dict(situation.options)
    signature = _signature(paths, templates, situation)
    if signature is not None:
        options |= {"input_signature": Code(signature), "reduce_retracing": False}
    elif options.get("reduce_retracing") or options.get("input_signature"):
        return []
    else:
        options["reduce_retracing"] = True
    return [Fix(decorator(situation.name, options), "", paths)]


def _sizes_differ(before: tuple[int | None, ...], after: tuple[int | None, ...]) -> bool:
    return len(before) == len(after) and before != after


def _signature(paths: Sequence[str], templates: dict[str, str], situation: Situation) -> str | None:
    """The specs of all arguments but trailing defaults, None where these are not all tensors."""
    if len(paths) > MOST or len(situation.key.parts) > MOST:
        return None
    arguments, keywords = _arguments(situation)
    written: list[str | None] = []
    while arguments and arguments[-1].is_default:
        arguments.pop()
    for argument in arguments:
        specs = iter([_spec(i, templates, situation) for i in range(argument.start, argument.stop)])
        written.append(_written(argument.structure, specs))
    covered = [path for argument in arguments for path in argument.paths]
    fits = None not in written and all(argument.is_default for argument in keywords) and set(paths) <= set(covered)
    return f"[{', '.join(map(str, written))}]" if fits else None


class _Argument(NamedTuple):
    """One argument of the call: its structure, which leaves of the key are its, and their paths."""

    structure: Structure
    start: int
    stop: int
    paths: list[str]
    is_default: bool


def _arguments(situation: Situation) -> tuple[list[_Argument], list[_Argument]]:
    """The positional arguments and the keywords of the call."""
    key, signature = situation.key, situation.signature
    count = len(key.parts)
    structure = key.structure or Structure(tuple, tuple(range(count)), (nest.LEAF,) * count)
    positional, keywords = structure.children if signature.takes_keywords else (structure, None)
    named = [(signature.root(i), child) for i, child in enumerate(positional.children)]
    more = list(zip(keywords.keys, keywords.children, strict=True)) if keywords else []
    found, start = [], 0
    for name, child in [*named, *more]:
        stop = start + child.n_leaves
        parameter = signature.inspected.parameters.get(name)
        default = parameter is not None and child is nest.LEAF and _is_default(key.parts[start], parameter.default)
        found.append(_Argument(child, start, stop, nest.paths(child, name), default))
        start = stop
    return found[: len(named)], found[len(named) :]


def _is_default(part: Part, default: Any) -> bool:
    if part[0] != "value" or default is inspect.Parameter.empty:
        return False
    try:
        return bool(part == part_of(default, {}))
    except SignatureError:  # a default that no call could have
        return False


def _spec(index: int, templates: dict[str, str], situation: Situation) -> str | None:
    """One leaf as a TensorSpec: sizes that the traces of this rank and structure do not share are None."""
    part = situation.key.parts[index]
    path = situation.paths[index]
    number = part[0] == "value" and (path in templates or (part[1] is float and not situation.obstacle(path)))
    if number:  # of the ints, which may be sizes or counts, only those that are known not to be
        met = _number_dtype(index, situation)
        return None if met is None else f'll.TensorSpec((), "{met.name}")'
    if part[0] != "tensor":
        return None
    shape, dtype = part[2], part[1]
    for entry in situation.entries:
        if entry.key.structure == situation.key.structure and len(entry.key.parts) == len(situation.key.parts):
            seen = entry.key.parts[index]
            if seen[0] == "tensor":
                shape = shapes.generalise(shape, seen[2]) or shape
                dtype = seen[1] if path in templates else dtype
    return f'll.TensorSpec({shapes.show(shape)}, "{dtype.name}")'


def _number_dtype(index: int, situation: Situation) -> DType | None:
    """The dtype of a number as a tensor: that of the tensor which an earlier call passed, or what it meets."""
    for entry in situation.entries:
        seen = entry.key.parts
        if len(seen) == len(situation.key.parts) and seen[index][0] == "tensor":
            dtype: DType = seen[index][1]
            return dtype
    return situation.met_dtype()


def _written(structure: Structure, specs: Iterator[str | None]) -> str | None:
    """A nest of specs as code, None where it holds what no signature can."""
    if structure.kind is None:
        return next(specs)
    inner = [_written(child, specs) for child in structure.children]
    if None in inner or structure.kind not in (list, tuple, dict):
        return None
    items = [str(item) for item in inner]
    if structure.kind is dict:
        return "{" + ", ".join(f"{quoted(key)}: {item}" for key, item in zip(structure.keys, items, strict=True)) + "}"
    if structure.kind is list:
        return f"[{', '.join(items)}]"
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

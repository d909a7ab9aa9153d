"""Signatures to declare: `input_signature` with the sizes that vary left open, or a first trace for all sizes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from limelight.core import nest, shapes
from limelight.core.nest import Structure
from limelight.errors import SignatureError
from limelight.explain.retracing.fix_context import MOST, Code, Fix, Situation, decorator
from limelight.explain.retracing.key_diff import Change, Part, quoted, show
from limelight.staging.signature import LONG, part_of
from limelight.user_code.code_uses import reads_sizes

ONCE: Final = "once, before the loop,"
LATER: Final = "once two sizes have been traced,"
"""The place of a fix that does not spare this very trace."""


def for_shapes(
    changes: Sequence[Change], templates: dict[str, str], hoisted: Mapping[str, str], situation: Situation
) -> list[Fix]:
    """A signature with the sizes that vary left open.

    Where a signature cannot say it, a first trace for all sizes, by `get_concrete_function`; or `reduce_retracing`,
    which needs two traces to see what varies. `hoisted` are the names of arguments that another fix makes before the
    loop.
    """
    shaped = [c for c in changes if c.before[0] == c.after[0] == "tensor" and _sizes_differ(c.before[2], c.after[2])]
    if not shaped or _decides_by_sizes(situation.function):
        return []
    paths = tuple([change.path for change in shaped])
    options = dict(situation.options)
    signature = _signature(paths, templates, situation)
    if signature is not None:
        options |= {"input_signature": Code(signature), "reduce_retracing": False}
    elif options.get("reduce_retracing") or options.get("input_signature"):
        return []
    elif (first := _first(paths, templates, hoisted, situation)) is not None:
        return [Fix(first, ONCE, paths)]
    else:
        options["reduce_retracing"] = True
        return [Fix(decorator(situation.function, options), LATER, paths)]
    return [Fix(decorator(situation.function, options), "", paths)]


def _decides_by_sizes(function: Any) -> bool:
    """Whether what `function` does may depend on sizes: left open they are None, which decides otherwise."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and reads_sizes(code)


def _sizes_differ(before: tuple[int | None, ...], after: tuple[int | None, ...]) -> bool:
    return len(before) == len(after) and before != after


def _signature(paths: Sequence[str], templates: dict[str, str], situation: Situation) -> str | None:
    """The specs of all arguments but trailing defaults, None where these are not all tensors."""
    if not _are_alike(paths, situation):
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


def _first(
    paths: Sequence[str], templates: dict[str, str], hoisted: Mapping[str, str], situation: Situation
) -> str | None:
    """A call of `get_concrete_function` in the words of this call, None where these mean something only there."""
    site = situation.site
    if site is None or situation.nested or not is_lasting(site.called) or not _are_alike(paths, situation):
        return None
    written, covered = [], []
    for argument in [one for group in _arguments(situation) for one in group]:
        given = site.expression(argument.name)
        if given is None:
            continue
        specs = iter([_spec(i, templates, situation) for i in range(argument.start, argument.stop)])
        text = hoisted.get(argument.name) or _written(argument.structure, specs)
        text = text or _repeated(argument, given, situation)
        if text is None:
            return None
        covered += argument.paths
        written.append(text if site.is_positional(argument.name) else f"{argument.name}={text}")
    return f"{site.called}.get_concrete_function({', '.join(written)})" if set(paths) <= set(covered) else None


def _repeated(argument: _Argument, given: str, situation: Situation) -> str | None:
    """An argument that is no tensor, as it is in every call: a plain value, or an object under a lasting name."""
    if argument.structure is not nest.LEAF:
        return None
    part = situation.key.parts[argument.start]
    if any(entry.key.parts[argument.start] != part for entry in situation.entries):
        return None
    if part[0] == "value":
        plain = part[1] in (bool, int, float, str, type(None)) and part[2] not in ("nan", "inf", "-inf")
        return show(part, LONG) if plain and len(str(part[2])) <= LONG // 2 else None
    return given if is_lasting(given) else None


def is_lasting(expression: str) -> bool:
    """Whether an expression is a name or an attribute, which give the same object each time."""
    return all(name.isidentifier() for name in expression.split("."))


def _are_alike(paths: Sequence[str], situation: Situation) -> bool:
    """Whether all traces and the call are of one structure, of a size that anybody would write down."""
    key = situation.key
    if len(paths) > MOST or len(key.parts) > MOST:
        return False
    return all((len(e.key.parts), e.key.structure) == (len(key.parts), key.structure) for e in situation.entries)


class _Argument(NamedTuple):
    """One argument: its structure, which leaves of the key are its, their paths; whether all calls left it out."""

    name: str
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
        default = default and all(entry.key.parts[start] == key.parts[start] for entry in situation.entries)
        found.append(_Argument(name, child, start, stop, nest.paths(child, name), default))
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
    """One leaf as a TensorSpec that takes what every trace was made for: sizes that they do not share are None."""
    part, path = situation.key.parts[index], situation.paths[index]
    seen = [entry.key.parts[index] for entry in situation.entries]
    if part[0] == "value":
        return _number_spec(index, path in templates, situation) if all(map(_is_scalar, seen)) else None
    if part[0] != "tensor":
        return None
    shape, dtypes_seen = part[2], set()
    for other in seen:
        if other[0] == "tensor":
            dtypes_seen.add(other[1])
            shape = shapes.generalise(shape, other[2])
        elif not (path in templates and _is_scalar(other)):
            shape = None
        if shape is None:
            return None
    dtype = next(iter(dtypes_seen)) if path in templates and dtypes_seen else part[1]
    return f'll.TensorSpec({shapes.show(shape)}, "{dtype.name}")' if dtypes_seen <= {dtype} else None


def _is_scalar(part: Part) -> bool:
    """Whether a part is a number, or a tensor that a number could be."""
    return part[1] in (int, float) if part[0] == "value" else part[0] == "tensor" and part[2] == ()


def _number_spec(index: int, is_mended: bool, situation: Situation) -> str | None:
    """A number as a tensor. Of the ints, which may be sizes or counts, only those that are known not to be."""
    if not is_mended and (situation.key.parts[index][1] is not float or situation.obstacle(situation.paths[index])):
        return None
    tensors = {seen[1] for entry in situation.entries if (seen := entry.key.parts[index])[0] == "tensor"}
    dtype = (tensors.pop() if len(tensors) == 1 else None) if tensors else situation.met_dtype()
    return None if dtype is None else f'll.TensorSpec((), "{dtype.name}")'


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

"""Signatures to declare: `input_signature` with the sizes that vary left open, or a first trace for all sizes.

A signature must take every call so far. Where none can be declared, the fix is a first trace for all sizes,
`f.get_concrete_function(model, ll.TensorSpec((None, 3)))`: `reduce_retracing` needs two traces to see what varies.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from limelight.core import nest, shapes
from limelight.core.nest import Structure
from limelight.errors import SignatureError
from limelight.explain.fix import Fix
from limelight.explain.retracing.causes import Cause
from limelight.explain.retracing.fix_context import MOST, Code, FixContext, restaged
from limelight.explain.retracing.helper_sizes import Need, need
from limelight.explain.retracing.key_diff import Change, quoted, show
from limelight.explain.retracing.size_reads import Rewriting, loops_over, rewriting
from limelight.staging.key_parts import LONG, Part, TensorPart, ValuePart, bare_part

ONCE: Final = "once, before the loop,"
LATER: Final = "once two sizes have been traced,"
"""The place of a fix that does not spare this very trace."""
_OF_TENSORS: Final = frozenset([Cause.SHAPE, Cause.DTYPE, Cause.DEVICE])
"""What two tensors of one rank may differ in: of a thousand changes few have to be looked at."""


def for_shapes(
    changes: Sequence[Change], templates: dict[str, str], hoisted: Mapping[str, str], context: FixContext
) -> list[Fix]:
    """A signature with the sizes that vary left open.

    Where a signature cannot say it, a first trace for all sizes, by `get_concrete_function`; else `reduce_retracing`.

    Args:
        changes: what differs from the closest trace.
        templates: by path, the expression that another fix passes; such a number is a tensor from then on.
        hoisted: by path, the name of what another fix makes before the loop.
        context: of the call.
    """
    shaped = [change for change in changes if change.cause in _OF_TENSORS and _is_of_sizes(change)]
    written = _written(context) if shaped else None
    if not isinstance(written, Rewriting):
        return []
    paths = tuple([change.path for change in shaped])
    options = dict(context.options)
    signature = _signature(paths, templates, context)
    if signature is not None:
        options |= {"input_signature": Code(signature), "reduce_retracing": False}
        options |= {"autograph": True} if written.loops else {}
    elif written.words or options.get("reduce_retracing") or options.get("input_signature"):
        return []
    elif (first := _first_trace(paths, templates, hoisted, context)) is not None:
        assert context.site is not None, "whose words these are"
        return [Fix(first, ONCE, paths, is_inside=context.site.is_inside)]
    else:
        options["reduce_retracing"] = True
        return [restaged(context.function, options, LATER, paths)]
    fix = restaged(context.function, options, written.place, paths)
    return [fix._replace(cell=f"{fix.code}\n{written.definition}") if written.words and not fix.is_inside else fix]


def number_needed(changes: Sequence[Change], context: FixContext) -> Need | None:
    """What keeps sizes from being left open that alone differ, where that is known."""
    written = _written(context) if any(map(_is_of_sizes, changes)) else None
    return None if isinstance(written, Rewriting) else written


def _written(context: FixContext) -> Rewriting | Need | None:
    """The function written for sizes that are left open, or what keeps it from that, None where there is no telling."""
    function, sizes = inspect.unwrap(context.function), _sizes_of_parameters(context)
    if loops_over(function, sizes) and not context.options.get("autograph"):
        return None
    written = rewriting(function, sizes)
    if written is None:
        return need(function, context.traces, context.key, loops=False, own=True) or Rewriting()
    return need(function, context.traces, context.key, loops=written.loops) or written


def _sizes_of_parameters(context: FixContext) -> dict[str, tuple[int | None, ...]]:
    """By parameter, the sizes of the tensor that it is; None where the calls so far do not share one."""
    found = {}
    for i, path in enumerate(context.paths):
        parts = [context.key.parts[i], *[trace.key.parts[i] for trace in context.traces if i < len(trace.key.parts)]]
        if path.isidentifier() and all(isinstance(part, TensorPart) for part in parts):
            shared = functools.reduce(
                lambda sizes, part: sizes and shapes.generalise(sizes, part.shape), parts[1:], parts[0].shape
            )
            if shared is not None:
                found[path] = shared
    return found


def _is_of_sizes(change: Change) -> bool:
    """Whether two tensors of one rank differ in their sizes."""
    before, after = change.before, change.after
    if not (isinstance(before, TensorPart) and isinstance(after, TensorPart)):
        return False
    return len(before.shape) == len(after.shape) and before.shape != after.shape


def _signature(paths: Sequence[str], templates: dict[str, str], context: FixContext) -> str | None:
    """The specs of all arguments but trailing defaults, None where these are not all tensors."""
    if not _are_alike(paths, context):
        return None
    arguments, keywords = _arguments(context)
    written: list[str | None] = []
    while arguments and arguments[-1].is_default:
        arguments.pop()
    for argument in arguments:
        specs = iter([_spec(i, templates, context) for i in range(argument.start, argument.stop)])
        written.append(_spec_code(argument.structure, specs))
    covered = [path for argument in arguments for path in argument.paths]
    fits = None not in written and all(argument.is_default for argument in keywords) and set(paths) <= set(covered)
    return f"[{', '.join(map(str, written))}]" if fits else None


def _first_trace(
    paths: Sequence[str], templates: dict[str, str], hoisted: Mapping[str, str], context: FixContext
) -> str | None:
    """A call of `get_concrete_function` in the words of this call, None where these mean something only there.

    The arguments are those of `for_shapes`, but for the `paths` of what has other sizes.
    """
    site = context.site
    if site is None or context.is_nested or not is_lasting(site.called) or not _are_alike(paths, context):
        return None
    written, covered = [], []
    for argument in [one for group in _arguments(context) for one in group]:
        given = site.expression(argument.name)
        if given is None:
            continue
        specs = iter([_spec(i, templates, context) for i in range(argument.start, argument.stop)])
        text = hoisted.get(argument.name) or _spec_code(argument.structure, specs)
        text = text or _same_code(argument, given, context)
        if text is None:
            return None
        covered += argument.paths
        written.append(text if site.is_positional(argument.name) else f"{argument.name}={text}")
    return f"{site.called}.get_concrete_function({', '.join(written)})" if set(paths) <= set(covered) else None


def _same_code(argument: _Argument, given: str, context: FixContext) -> str | None:
    """An argument that is no tensor, as it is in every call: a plain value, or an object under a lasting name."""
    if argument.structure is not nest.LEAF:
        return None
    part = context.key.parts[argument.start]
    if any(trace.key.parts[argument.start] != part for trace in context.traces):
        return None
    if isinstance(part, ValuePart):
        plain = part.kind in (bool, int, float, str, type(None)) and part.value not in ("nan", "inf", "-inf")
        return show(part, LONG) if plain and len(str(part.value)) <= LONG // 2 else None
    return given if is_lasting(given) else None


def is_lasting(expression: str) -> bool:
    """Whether an expression is a name or an attribute, which give the same object each time."""
    return all(name.isidentifier() for name in expression.split("."))


def _are_alike(paths: Sequence[str], context: FixContext) -> bool:
    """Whether all traces and the call are of one structure, of a size that anybody would write down."""
    key = context.key
    if len(paths) > MOST or len(key.parts) > MOST:
        return False
    return all(
        (len(trace.key.parts), trace.key.structure) == (len(key.parts), key.structure) for trace in context.traces
    )


class _Argument(NamedTuple):
    """One argument: its structure, which leaves of the key are its, their paths; whether all calls left it out."""

    name: str
    structure: Structure
    start: int
    stop: int
    paths: list[str]
    is_default: bool


def _arguments(context: FixContext) -> tuple[list[_Argument], list[_Argument]]:
    """The positional arguments and the keywords of the call."""
    key, signature = context.key, context.signature
    count = len(key.parts)
    structure = key.structure or Structure(tuple, tuple(range(count)), (nest.LEAF,) * count)
    positional, keywords = structure.children if signature.takes_keywords else (structure, None)
    named = [(signature.root(i), child) for i, child in enumerate(positional.children)]
    more = list(zip(keywords.keys, keywords.children, strict=True)) if keywords else []
    arguments, start = [], 0
    for name, child in [*named, *more]:
        stop = start + child.n_leaves
        parameter = signature.inspected.parameters.get(name)
        default = parameter is not None and child is nest.LEAF and _is_default(key.parts[start], parameter.default)
        default = default and all(trace.key.parts[start] == key.parts[start] for trace in context.traces)
        arguments.append(_Argument(name, child, start, stop, nest.paths(child, name), default))
        start = stop
    return arguments[: len(named)], arguments[len(named) :]


def _is_default(part: Part, default: Any) -> bool:
    if not isinstance(part, ValuePart) or default is inspect.Parameter.empty:
        return False
    try:
        return bool(part == bare_part(default, {}))
    except SignatureError:  # a default that no call could have
        return False


def _spec(index: int, templates: dict[str, str], context: FixContext) -> str | None:
    """One leaf as a TensorSpec that takes what every trace was made for: sizes that they do not share are None."""
    part, path = context.key.parts[index], context.paths[index]
    seen = [trace.key.parts[index] for trace in context.traces]
    if isinstance(part, ValuePart):
        return _number_spec(index, path in templates, context) if all(map(_is_scalar, seen)) else None
    if not isinstance(part, TensorPart):
        return None
    sizes, dtypes_seen = part.shape, set()
    for other in seen:
        if isinstance(other, TensorPart):
            dtypes_seen.add(other.dtype)
            shared = shapes.generalise(sizes, other.shape)
            if shared is None:
                return None
            sizes = shared
        elif not (path in templates and _is_scalar(other)):
            return None
    dtype = next(iter(dtypes_seen)) if path in templates and dtypes_seen else part.dtype
    return f'll.TensorSpec({shapes.show(sizes)}, "{dtype.name}")' if dtypes_seen <= {dtype} else None


def _is_scalar(part: Part) -> bool:
    """Whether a part is a number, or a tensor that a number could be."""
    if isinstance(part, ValuePart):
        return part.kind in (int, float)
    return isinstance(part, TensorPart) and part.shape == ()


def _number_spec(index: int, is_mended: bool, context: FixContext) -> str | None:
    """A number as a tensor. Of the ints, which may be sizes or counts, only those that are known not to be."""
    part = context.key.parts[index]
    is_float = isinstance(part, ValuePart) and part.kind is float
    if not is_mended and (not is_float or context.obstacle(context.paths[index])):
        return None
    seen = [trace.key.parts[index] for trace in context.traces]
    tensors = {other.dtype for other in seen if isinstance(other, TensorPart)}
    dtype = (tensors.pop() if len(tensors) == 1 else None) if tensors else context.met_dtype()
    return None if dtype is None else f'll.TensorSpec((), "{dtype.name}")'


def _spec_code(structure: Structure, specs: Iterator[str | None]) -> str | None:
    """A nest of specs as code, None where it holds what no signature can."""
    if structure.kind is None:
        return next(specs)
    inner = [_spec_code(child, specs) for child in structure.children]
    if None in inner or structure.kind not in (list, tuple, dict):
        return None
    items = [str(item) for item in inner]
    if structure.kind is dict:
        return "{" + ", ".join(f"{quoted(key)}: {item}" for key, item in zip(structure.keys, items, strict=True)) + "}"
    if structure.kind is list:
        return f"[{', '.join(items)}]"
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

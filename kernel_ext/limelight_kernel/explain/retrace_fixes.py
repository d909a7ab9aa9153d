"""What to write on the line of `%%stage` so that the next call finds its trace.

The engine's own fixes are for functions that somebody decorates or calls; a staged cell is neither, so of a `Miss` the
changes are kept and the fixes made anew: the same `Fix` records, with the magic's line for code. Sentences that name an
argument or an option of `ll.function` are put into the words of a cell.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, MutableSequence, Sequence
from typing import Any

from limelight.core import shapes
from limelight.core.spec import TensorSpec
from limelight.errors import TraceBudgetError
from limelight.explain import SideEffects
from limelight.explain.fix import Fix
from limelight.explain.retracing.causes import Cause
from limelight.explain.retracing.fix_context import met_dtype
from limelight.explain.retracing.key_diff import Change
from limelight.staging.key_parts import Part, TensorPart, ValuePart
from limelight.user_code import source_line
from limelight_kernel.explain.side_effects import base_name
from limelight_kernel.inputs.class_code import METHODS
from limelight_kernel.line.options import Options

_CHANGING = frozenset(["mutation", "global write"])


def put_fix(entry: Any, options: Options, misses: MutableSequence[Any], effects: Callable[[], SideEffects]) -> None:
    """Puts the fix for a staged cell into the explanation of a new trace.

    Args:
        entry: the new trace.
        options: of the staged cell.
        misses: the history of its cache; the last is that of the new trace.
        effects: finds what the cell does while it is traced alone.
    """
    entry.miss = misses[-1] = with_fix(entry.miss, entry.key.parts, options, effects)


def with_fix(miss: Any, parts: Sequence[Part], options: Options, effects: Callable[[], SideEffects]) -> Any:
    """A cache miss with the fix for a staged cell instead of that for a function.

    Args:
        miss: the engine's explanation of the call.
        parts: those of the call's key.
        options: of the staged cell.
        effects: finds what the cell does while it is traced alone: it may change what it is then traced again for.
    """
    mended = {path for fix in miss.fixes for path in fix.paths}  # numbers and sizes which the cell only computes with
    specs = {change.path: spec for change in miss.changes if (spec := _spec(change, parts, mended)) is not None}
    fixes: tuple[Fix, ...] = ()
    if specs:
        declared = {name: spec_code(spec) for name, spec in options.specs if name not in specs}
        fixes = (Fix(options.line({**declared, **specs}), "", tuple(specs)),)
    casts = {change.path: code for change in miss.changes if (code := _cast(change)) is not None}
    if casts:
        fixes = (*fixes, Fix("; ".join(casts.values()), "in a cell above,", tuple(casts)))
    changed = {base_name(change.path) for change in miss.changes}
    own = (
        [one for one in effects().records if one.kind in _CHANGING and base_name(one.what) in changed]
        if changed
        else []
    )
    edited = bool(miss.changes) and all(change.path.startswith(METHODS) for change in miss.changes)
    advice = " ".join(map(_changed_by_cell, own)) or (
        "Other code needs a trace of its own." if edited else worded_for_cell(miss.advice)
    )
    return dataclasses.replace(miss, fixes=fixes, advice=advice)


def _changed_by_cell(effect: Any) -> str:
    name = base_name(effect.what)
    where = source_line.at(effect.line)
    return f"The cell changes `{name}` itself{where}, so running it leads to another trace. Instead: {effect.instead}."


def budget_error(
    error: TraceBudgetError, name: str, parts: Sequence[Part], options: Options, effects: Callable[[], SideEffects]
) -> TraceBudgetError:
    """The error of a staged cell that may not trace again, with the flag that says so.

    Args:
        error: the engine's.
        name: of the staged cell.
        parts: those of the call's key.
        options: of the staged cell.
        effects: finds what the cell does while it is traced alone.
    """
    miss = with_fix(error.miss, parts, options, effects)
    traces = f"its {options.max_traces} trace{'s' if options.max_traces != 1 else ''} (--max-traces)"
    allowed = "one trace (--strict)" if options.max_traces is None else traces
    return TraceBudgetError(f"`{name}` has {allowed}, and the call at {miss.where} needs another: {miss.story}", miss)


def worded_for_cell(text: str) -> str:
    """What is said of a function's arguments, for a cell: it takes none, but every name that it reads is an input."""
    text = text.replace("`input_signature` or `reduce_retracing=True`", "`%%stage -s`")
    text = re.sub(r"Create the (\w+) outside, or once: `[^`]*`", r"Create the \1 in a cell above", text)
    return re.sub(r"pass it as an argument, \S+\(\.\.\.,\s(?:ll\.constant\()?([\w.\[\]\"]+)\)+", _name_to_give, text)


def _name_to_give(advice: re.Match[str]) -> str:
    """For `config.rate` a name of its own: `rate = config.rate`."""
    name = [word for word in re.findall(r"\w+", advice[1]) if word.isidentifier()][-1]
    value = "..." if name == advice[1] else advice[1]
    return f"give it a name in a cell above, `{name} = {value}`, and read `{name}` here"


def worded_for_line(text: str, options: Options) -> str:
    """What is said of a function that could be staged with autograph, for a cell: there it is a flag of its line."""
    line = dataclasses.replace(options, autograph=True).line({name: spec_code(spec) for name, spec in options.specs})
    return re.sub(
        r"(let )?ll\.function\(autograph=True\)( rewrite)?",
        lambda m: f"let `{line}` rewrite" if m[1] else f"`{line}`",
        text,
    )


def _spec(change: Change, parts: Sequence[Part], mended: set[str]) -> str | None:
    """The spec, as code, under which both calls would have found one trace; None where no spec helps.

    Those get one that are among `mended`: a whole number, or a size that is read, may decide something in Python.
    """
    before, after = change.before, change.after
    if not change.path.isidentifier() or change.path not in mended:
        return None
    if change.cause is Cause.SHAPE and isinstance(before, TensorPart) and isinstance(after, TensorPart):
        shape = shapes.generalise(before.shape, after.shape)
        return None if shape is None else spec_code(TensorSpec(shape, after.dtype))
    is_float = isinstance(after, ValuePart) and after.kind is float
    if change.cause is Cause.NUMBER and is_float:
        dtype = met_dtype(parts)
        return None if dtype is None else spec_code(TensorSpec((), dtype))
    return None


def _cast(change: Change) -> str | None:
    """The assignment that gives an input the dtype that it had; it may be meant to have another one from now on."""
    before = change.before  # of a tensor, as after it, where they differ in dtype
    if change.cause is not Cause.DTYPE or not change.path.isidentifier() or not isinstance(before, TensorPart):
        return None
    return f'{change.path} = ll.astype({change.path}, "{before.dtype.name}")'


def spec_code(spec: TensorSpec) -> str:
    """A spec as code for the line of a magic, where " stands around it."""
    sizes = ", ".join(map(str, spec.shape))
    dtype = "" if spec.dtype.name == "float32" else f", '{spec.dtype.name}'"
    return f"ll.TensorSpec([{sizes}]{dtype})"

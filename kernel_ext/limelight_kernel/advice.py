"""What to write on the line of `%%stage` so that the next call finds its trace.

The engine's own fixes are for functions that somebody decorates or calls; a staged cell is neither.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import MutableSequence, Sequence
from typing import Any

from limelight import shapes
from limelight.errors import TraceBudgetError
from limelight.spec import TensorSpec
from limelight.staging.changes import Cause, Change, Part
from limelight.staging.situation import Fix, met_dtype
from limelight_kernel.options import Options


def advise(entry: Any, options: Options, misses: MutableSequence[Any]) -> None:
    """Puts the fix for a staged cell into the explanation of a new trace, the last of `misses`."""
    entry.miss = misses[-1] = advised(entry.miss, entry.key.parts, options)
    entry.reason = str(entry.miss)


def advised(miss: Any, parts: Sequence[Part], options: Options) -> Any:
    """`miss`, of a call whose key has these `parts`, with the fix for a staged cell instead of that for a function."""
    numbers = {path for fix in miss.fixes for path in fix.paths}  # which the cell only computes with
    specs = {change.path: spec for change in miss.changes if (spec := _spec(change, parts, numbers)) is not None}
    fixes: tuple[Fix, ...] = ()
    if specs:
        given = {name: str_of(spec) for name, spec in options.specs if name not in specs}
        fixes = (Fix(options.line({**given, **specs}), "", tuple(specs)),)
    return dataclasses.replace(miss, fixes=fixes)


def budget_error(error: TraceBudgetError, name: str, parts: Sequence[Part], options: Options) -> TraceBudgetError:
    """The error of a staged cell that may not trace again, with the flag that says so."""
    miss = advised(error.miss, parts, options)
    traces = f"its {options.max_traces} trace{'s' if options.max_traces != 1 else ''} (--max-traces)"
    allowed = "one trace (--strict)" if options.max_traces is None else traces
    return TraceBudgetError(f"`{name}` has {allowed}, and the call at {miss.where} needs another: {miss.story}", miss)


def for_cell(text: str) -> str:
    """What is said of a function's arguments, for a cell: it takes none, but every name that it reads is an input."""
    return re.sub(
        r"pass it as an argument, \S+\(\.\.\.,\s(\w+)\)",
        r"give it a name in a cell above, `\1 = ...`, and read `\1` here",
        text,
    )


def _spec(change: Change, parts: Sequence[Part], numbers: set[str]) -> str | None:
    """The spec, as code, under which both calls would have found one trace; None where no spec helps.

    Of numbers those get one that are among `numbers`; a whole number may be an axis or a size, which no tensor can be.
    """
    before, after = change.before, change.after
    if not change.path.isidentifier():
        return None
    if change.cause is Cause.SHAPE:
        shape = shapes.generalise(before[2], after[2])
        return None if shape is None else str_of(TensorSpec(shape, after[1]))
    if change.cause is Cause.NUMBER and after[1] is float and change.path in numbers:
        dtype = met_dtype(parts)
        return None if dtype is None else str_of(TensorSpec((), dtype))
    return None


def str_of(spec: TensorSpec) -> str:
    """A spec as code for the line of a magic, where " stands around it."""
    sizes = ", ".join(map(str, spec.shape))
    dtype = "" if spec.dtype.name == "float32" else f", '{spec.dtype.name}'"
    return f"ll.TensorSpec([{sizes}]{dtype})"

"""What to write on the line of `%%stage` so that the next call finds its trace.

The engine's own fixes are for functions that somebody decorates or calls; a staged cell is neither.
"""

from __future__ import annotations

import dataclasses
from collections.abc import MutableSequence, Sequence
from typing import Any

from limelight import shapes
from limelight.spec import TensorSpec
from limelight.staging.changes import Cause, Change, Part
from limelight.staging.situation import Fix, met_dtype
from limelight_kernel.options import Options


def advise(entry: Any, options: Options, misses: MutableSequence[Any]) -> None:
    """Puts the fix for a staged cell into the explanation of a new trace, the last of `misses`."""
    specs = {change.path: spec for change in entry.miss.changes if (spec := _spec(change, entry.key.parts)) is not None}
    fixes: tuple[Fix, ...] = ()
    if specs:
        given = {name: str_of(spec) for name, spec in options.specs if name not in specs}
        fixes = (Fix(options.line({**given, **specs}), "", tuple(specs)),)
    entry.miss = dataclasses.replace(entry.miss, fixes=fixes)
    misses[-1] = entry.miss
    entry.reason = str(entry.miss)


def _spec(change: Change, parts: Sequence[Part]) -> str | None:
    """The spec, as code, under which both calls would have found one trace; None where no spec helps.

    A whole number gets none: it may be an axis or a size, which no tensor can be.
    """
    before, after = change.before, change.after
    if not change.path.isidentifier():
        return None
    if change.cause is Cause.SHAPE:
        shape = shapes.generalise(before[2], after[2])
        return None if shape is None else str_of(TensorSpec(shape, after[1]))
    if change.cause is Cause.NUMBER and after[1] is float:
        dtype = met_dtype(parts)
        return None if dtype is None else str_of(TensorSpec((), dtype))
    return None


def str_of(spec: TensorSpec) -> str:
    """A spec as code for the line of a magic, where " stands around it."""
    sizes = ", ".join(map(str, spec.shape))
    dtype = "" if spec.dtype.name == "float32" else f", '{spec.dtype.name}'"
    return f"ll.TensorSpec([{sizes}]{dtype})"

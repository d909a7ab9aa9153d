"""Cuts: the places where a path of recorded ops ends, which a tape keeps for `explain.why_none`.

These are ops without a gradient, integer results, and values handed to Python or NumPy. None is on the hot path, and
only the latest are kept. They name the first break of a path; what depends on nothing watched is not seen at all, for
which there is `explain.History`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any, Final, NamedTuple

from limelight.autodiff.backward import uid_of
from limelight.autodiff.tape_entries import source_of
from limelight.core.op import Op, TapeEntry
from limelight.core.tensor import new_uid
from limelight.user_code.source_line import Position, Source

MAX_CUTS: Final = 200


class GradientCut(NamedTuple):
    """One such place: `op` is None for a value that left through NumPy; inputs and outputs are uids."""

    op: Op | None
    attrs: tuple[Any, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    dtypes: tuple[Any, ...]  # of the outputs
    code: CodeType | Source | None
    instruction: int

    @property
    def source(self) -> Source | None:
        """The user's line."""
        return None if self.code is None else Position(self.code, self.instruction).resolve()


class Edge(NamedTuple):
    """A recorded op, without what its rule needs."""

    op: Op
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    saved: tuple[Any, ...]  # empty when the entry itself has gone
    source: Source | None


def departure(cuts: Sequence[GradientCut]) -> Source | None:
    """The latest line at which something watched left for Python or NumPy."""
    return next((each.source for each in reversed(cuts) if each.op is None), None)


def departures_of(uid: int, entries: Iterable[TapeEntry], cuts: Sequence[GradientCut]) -> list[Source]:
    """All the lines at which what depends on the value `uid` left for Python or NumPy, each once, earliest first."""
    reached = _reached(uid, entries)
    left = [each.source for each in cuts if each.op is None and reached.intersection(each.inputs)]
    return list(dict.fromkeys(line for line in left if line is not None))


def departure_of(uid: int, entries: Iterable[TapeEntry], cuts: Sequence[GradientCut]) -> Source | None:
    """The latest such line for what depends on the value `uid`."""
    reached = _reached(uid, entries)
    return departure([each for each in cuts if reached.intersection(each.inputs)])


def _reached(uid: int, entries: Iterable[TapeEntry]) -> set[int]:
    reached = {uid}
    for edge in [edge_of(entry, keep=False) for entry in entries]:
        if reached.intersection(edge.inputs):
            reached.update(edge.outputs)
    return reached


def cut_of(
    op: Op | None,
    attrs: tuple[Any, ...],
    inputs: Sequence[Any],
    out: Any,
    place: tuple[CodeType | Source | None, int],
) -> GradientCut:
    """The cut of an op that has run; writing to a variable makes that an output."""
    outs = out if isinstance(out, tuple) else (out,)
    written = inputs[:1] if op is not None and op.effect == "write" else ()
    outputs = tuple([ensure_uid(y) for y in (*outs, *written)])
    attrs = attrs if op is not None and op.higher_order else ()
    return GradientCut(op, attrs, tuple(map(uid_of, inputs)), outputs, tuple([y.dtype for y in outs]), *place)


def ensure_uid(x: Any) -> int:
    """The uid of `x`, which gets one if it has none."""
    if not x._uid:
        x._uid = new_uid()
    uid: int = x._uid
    return uid


def edge_of(entry: TapeEntry, keep: bool) -> Edge:
    """An entry as an edge; `keep` also what was saved."""
    recipe, outputs = entry[0], entry[1]
    uids = (outputs,) if isinstance(outputs, int) else tuple(outputs)
    saved = tuple(entry[6 : recipe.first_input]) if keep else ()
    return Edge(recipe.op, tuple(entry[recipe.first_input :]), uids, saved, source_of(entry))

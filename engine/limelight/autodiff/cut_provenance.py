"""What comes of the results of a cut, for `explain.why_none`: of several cuts it must blame the one of its target.

A tape records nothing there; it only remembers which values led to which, by their uids, while somebody may ask. A
value that left through NumPy cannot be followed so, and goes by the name that its line sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from limelight.autodiff.gradient_cuts import Edge, GradientCut, ensure_uid
from limelight.core.op import Op

MAX_VALUES: Final = 20_000  # values: a loop that runs on behind a cut must not fill the memory

CutDescendants = dict[int, set[int]]
"""Of each value that comes of a cut those that it came of in turn; none for the cut's own results."""


def note_cut(descendants: CutDescendants, uids: Iterable[int]) -> None:
    """Notes the results of a cut."""
    if len(descendants) < MAX_VALUES:
        for uid in uids:
            descendants.setdefault(uid, set())


def note_descendants(descendants: CutDescendants, op: Op, inputs: Sequence[Any], out: Any) -> Any:
    """Notes what an op that a tape does not record makes of such values; returns `out`."""
    if not descendants:
        return out
    uids = [uid for x in inputs if (uid := getattr(x, "_uid", 0)) in descendants]
    if uids and len(descendants) < MAX_VALUES:
        written = inputs[:1] if op.effect == "write" else ()
        for y in (*(out if isinstance(out, tuple) else (out,)), *written):
            descendants.setdefault(ensure_uid(y), set()).update(uids)
    return out


def ancestors(uid: int, descendants: CutDescendants, edges: Iterable[Edge], cuts: Iterable[GradientCut]) -> set[int]:
    """The values that the value `uid` came of, itself among them, recorded or not."""
    before: dict[int, set[int]] = {each: set(sources) for each, sources in descendants.items()}
    steps = [(step.inputs, step.outputs) for step in edges] + [(step.inputs, step.outputs) for step in cuts]
    for inputs, outputs in steps:
        for each in outputs:
            before.setdefault(each, set()).update(inputs)
    reached, waiting = {uid}, [uid]
    while waiting:
        new = before.get(waiting.pop(), set()) - reached - {0}
        reached |= new
        waiting += new
    return reached

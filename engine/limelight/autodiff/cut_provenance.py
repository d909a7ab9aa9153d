"""What comes of the results of a cut, for `explain.why_none`: of several cuts it must blame the one of its target.

A tape records nothing there; it only remembers which values led to which, by their uids, while somebody may ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from limelight.autodiff.gradient_cuts import Edge, Note, named
from limelight.core.op import Op

MOST: Final = 20_000  # values: a loop that runs on behind a cut must not fill the memory

Beyond = dict[int, set[int]]
"""Of each value that comes of a cut those that it came of in turn; none for the cut's own results."""


def begins(beyond: Beyond, uids: Iterable[int]) -> None:
    """Notes the results of a cut."""
    if len(beyond) < MOST:
        for uid in uids:
            beyond.setdefault(uid, set())


def goes_on(beyond: Beyond, op: Op, inputs: Sequence[Any], out: Any) -> Any:
    """Notes what an op that a tape does not record makes of such values; returns `out`."""
    if not beyond:
        return out
    given = [uid for x in inputs if (uid := getattr(x, "_uid", 0)) in beyond]
    if given and len(beyond) < MOST:
        written = inputs[:1] if op.effect == "write" else ()
        for y in (*(out if isinstance(out, tuple) else (out,)), *written):
            beyond.setdefault(named(y), set()).update(given)
    return out


def came_of(uid: int, beyond: Beyond, edges: Iterable[Edge], notes: Iterable[Note]) -> set[int]:
    """The values that the value `uid` came of, itself among them, recorded or not."""
    before: dict[int, set[int]] = {each: set(given) for each, given in beyond.items()}
    steps = [(step.inputs, step.outputs) for step in edges] + [(step.inputs, step.outputs) for step in notes]
    for inputs, outputs in steps:
        for each in outputs:
            before.setdefault(each, set()).update(inputs)
    found, waiting = {uid}, [uid]
    while waiting:
        new = before.get(waiting.pop(), set()) - found - {0}
        found |= new
        waiting += new
    return found

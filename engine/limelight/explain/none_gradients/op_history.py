"""A record of every op of a block, whether a tape takes it down or not: what `why_none` needs to be exact."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Final, NamedTuple

from limelight.autodiff import GradientTape
from limelight.autodiff.gradient_cuts import ensure_uid
from limelight.core import dispatch
from limelight.core.op import Op
from limelight.user_code import source_line as source
from limelight.user_code.source_line import Position, Source

_histories: Final[weakref.WeakKeyDictionary[GradientTape, list[History]]] = weakref.WeakKeyDictionary()
"""The histories in which a tape took part: they live as long as it does."""


class Step(NamedTuple):
    """One op: inputs and outputs by uid, and for each tape then on the stack whether it was recording."""

    op: Op | None  # None for a constant
    attrs: tuple[Any, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    tapes: dict[int, bool]
    watched: dict[int, tuple[bool, ...]]  # for each tape, which of the inputs it watched
    source: Source | None


class History(dispatch.BlockInterpreter):
    """Remembers every op of its block, for `ll.explain.why_none` to look at. Ops cost several times as much.

    A tape records nothing of ops that do not depend on what it watches, so it cannot tell whether something was watched
    too late, or computed outside its block. Put the block into a history, run it again, and ask again.

    >>> import limelight as ll
    >>> x = ll.constant(3.0)
    >>> with ll.explain.History() as history, ll.GradientTape() as tape:
    ...     y = x * x
    ...     tape.watch(x)
    >>> ll.explain.why_none(tape, y, x).cause
    'watched too late'
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._kept: list[Any] = []  # tensors, so that none dies before it is asked about

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        assert self.below is not None, "an interpreter is asked only while it is on the stack"
        input_uids = tuple([ensure_uid(x) if hasattr(x, "_uid") else 0 for x in inputs])
        tapes = [x for x in dispatch.stack() if isinstance(x, GradientTape)]
        for tape in tapes:
            seen = _histories.setdefault(tape, [])
            if self not in seen:
                seen.append(self)
        watched = {tape.id: tuple([uid in tape._watched for uid in input_uids]) for tape in tapes}
        out = self.below.process(op, inputs, attrs)
        outs = out if isinstance(out, tuple) else (out,)
        outputs = tuple([ensure_uid(y) for y in outs])
        if op.effect == "write":
            outputs = (*outputs, input_uids[0])
        recording = {tape.id: tape._recording for tape in tapes}
        place = source.place(sys._getframe(1))
        self.steps.append(Step(op, attrs, input_uids, outputs, recording, watched, _resolved(place)))
        self._kept += outs
        return out

    def constant(self, array: Any, device: Any) -> Any:
        tensor = super().constant(array, device)
        place = source.place(sys._getframe(1))
        self.steps.append(Step(None, (), (), (ensure_uid(tensor),), {}, {}, _resolved(place)))
        self._kept.append(tensor)
        return tensor

    def __repr__(self) -> str:
        return f"<History: {len(self.steps)} steps>"


def _resolved(place: tuple[Any, int]) -> Source | None:
    return None if place[0] is None else Position(*place).resolve()


def of(tape: GradientTape) -> list[Step]:
    """The steps of the histories in which `tape` took part."""
    return [step for history in _histories.get(tape, []) for step in history.steps]

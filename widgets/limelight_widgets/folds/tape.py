"""The fold behind the tape view: what a gradient tape recorded, and what each record keeps alive."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from limelight import events
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.source_excerpts import line_state

MOST_ROWS = 50_000  # rows kept; totals count on

HINT = "x̄ is the gradient of x; ȳ is that of the output, z̄ where there are inputs x and y."
SIGNS = {
    "-": "-: the tape does not watch this input.",
    "?": "?: it watches this input, and keeps nothing else of it.",
}

Row = list[object]
"""Index, op, line (label, number, text) or None, input specs, output specs, saved bytes, rule."""


class TapeFold:
    """Follows one tape: the entries that it has, then those that it records.

    Args:
        tape: a gradient tape; held weakly.
    """

    kinds: tuple[type[events.Event], ...] = (events.Recorded, events.TapeReleased)

    def __init__(self, tape: Any) -> None:
        self._tape = weakref.ref(tape)
        self._id: int = tape.id
        self._rows: list[Row] = []
        self._signs: set[str] = set()  # inputs that are shown as a sign
        self._entries = 0
        self._saved = 0
        self._released = False
        self._start = 1  # marks count from here; a released tape that records again starts anew
        self.catch_up()

    def apply(self, event: events.Event) -> bool:
        if isinstance(event, events.Recorded) and event.tape_id == self._id:
            if self._released:
                self._begin_anew()
            if event.index < self._entries:
                return False  # it was there when the view was made
            self._append(event.index, event)
            return True
        if isinstance(event, events.TapeReleased) and event.tape_id == self._id:
            self._released = True
            return True
        return False

    def catch_up(self) -> None:
        tape = self._tape()
        entries = () if tape is None else tape.entries
        if entries and (self._released or not self._goes_on_in(entries)):
            self._begin_anew()
        self._released = bool(self._rows) and not entries
        for index, record in enumerate(entries):
            if index >= self._entries:
                self._append(index, record)

    def state(self) -> State:
        return self._totals() | {"from": 0, "rows": self._rows[:]}

    def since(self, mark: int) -> tuple[State, int]:
        """Only the rows that were added, with the totals."""
        seen = max(mark - self._start, 0) if mark else 0
        now = self._start + self._entries + self._released  # not rows: totals count on when these do not
        if mark == now:
            return {}, now
        seen = min(seen, len(self._rows))
        return self._totals() | {"from": seen, "rows": self._rows[seen:]}, now

    def _begin_anew(self) -> None:
        """The tape was entered once more, and has let go of what it had."""
        self._start += self._entries + 2
        self._rows, self._entries, self._saved, self._released = [], 0, 0, False

    def _goes_on_in(self, entries: Sequence[Any]) -> bool:
        """Whether these are the known records and some more, by the last that is known."""
        if not self._rows:
            return True
        last = len(self._rows) - 1
        return len(entries) >= self._entries and _row(last, entries[last]) == self._rows[last]

    def _totals(self) -> State:
        empty = "" if self._entries else ANSWERED if has_answered(self._tape()) else EMPTY
        totals: State = {"kind": "tape", "id": self._id, "entries": self._entries, "saved": self._saved}
        totals["hint"] = " ".join([HINT, *(said for sign, said in SIGNS.items() if sign in self._signs)])
        return totals | {"hidden": self._entries - len(self._rows), "released": self._released, "empty": empty}

    def _append(self, index: int, record: Any) -> None:
        self._entries += 1
        self._saved += record.saved_bytes
        if len(self._rows) < MOST_ROWS:
            self._signs |= SIGNS.keys() & {str(spec) for spec in record.inputs}
            self._rows.append(_row(index, record))


def _row(index: int, record: Any) -> Row:
    inputs, outputs = [str(spec) for spec in record.inputs], [str(spec) for spec in record.outputs]
    return [index, str(record.op), line_state(record.source), inputs, outputs, record.saved_bytes, record.rule]


def has_answered(tape: Any) -> bool:
    """Whether the tape has been asked for its gradient, once and for all.

    The tape says so in its repr: `<GradientTape 1: used, 0 entries>`.
    """
    return ": used, " in repr(tape)


def has_recorded(tape: Any) -> bool:
    """Whether the tape has records, or had some before it answered; its `entries` would describe all of them."""
    return has_answered(tape) or not repr(tape).endswith(", 0 entries>")


EMPTY = (
    "This tape has recorded nothing. Compute with variables, or with tensors that it watches, inside its `with` block: "
    "with limelight.GradientTape() as tape: ... Where that was done, the gradient was cut: "
    "limelight.explain.why_none(tape, target, source) says by which op (in a notebook: %tape --why target source)."
)
ANSWERED = (
    "This tape has answered, and let go of what it saved. To see its records, show it before tape.gradient(...) "
    "(in a notebook: %tape), or keep them with limelight.GradientTape(persistent=True)."
)

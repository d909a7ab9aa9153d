"""The fold behind the checkpoint view: what is in a file, how it is matched with objects, how two files differ.

A restore sends no events, and a file is written by anybody: so the fold asks again when what the answer rests on looks
other than before, the files on disk and how many variables there are.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from limelight import events
from limelight.core.storage import count_live
from limelight.errors import LimelightError
from limelight_widgets.folds.fold import State

MOST_ROWS: Final = 20_000
SETTLED: Final = ("matched", "equal", "")
"""What needs no look: such rows come last."""

_COLUMNS: Final = {
    "Contents": ("Contents of a checkpoint", {"saved at": "path", "value": "value", "kind": "kind"}),
    "MatchTree": (
        "Match of a checkpoint",
        {"saved at": "path", "object": "object", "before": "before", "after": "after", "match": "state", "why": "why"},
    ),
    "Comparison": (
        "Two checkpoints",
        {
            "saved at": "path",
            "what": "state",
            "before": "before",
            "after": "after",
            "by": "relative",
            "at most": "largest",
        },
    ),
}


class CheckpointFold:
    """One question about files, and its answer as it is now.

    Args:
        ask: what answers it: a `Contents`, a `MatchTree` or a `Comparison` of `limelight.checkpoint`; None where the
            object that it asks about is gone. Then, and where it raises, the last answer stays.
        files: the files that the answer rests on.
    """

    kinds: tuple[type[events.Event], ...] = ()

    def __init__(self, ask: Callable[[], Any], files: Sequence[str | os.PathLike[str]]) -> None:
        self._ask = ask
        self._files = list(files)
        self.answer: Any = ask()  # first: it says what is wrong with a path
        self._looked = self._looks()
        self._state = state_of(self.answer)
        self._version = 1

    def look(self) -> None:
        """Asks again where something is other than at the last look."""
        looks = self._looks()
        if looks == self._looked:
            return
        self._looked = looks
        try:
            answer = self._ask()
        except (LimelightError, RuntimeError):  # a file that is gone; a dictionary that another thread was changing
            return
        if answer is not None and answer != self.answer:
            self.answer, self._state = answer, state_of(answer)
            self._version += 1

    def apply(self, event: events.Event) -> bool:
        """No event changes it."""
        return False

    def catch_up(self) -> None:
        self.look()

    def state(self) -> State:
        return self._state

    def since(self, mark: int) -> tuple[State, int]:
        return ({} if mark == self._version else self._state), self._version

    def _looks(self) -> tuple[Any, ...]:
        return (count_live(), *map(_looks_of, self._files))


def _looks_of(path: str | os.PathLike[str]) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def state_of(answer: Any) -> State:
    """An answer as columns and rows, those that need a look first."""
    heading, columns = _COLUMNS[type(answer).__name__]
    records = sorted(answer.records, key=lambda record: getattr(record, "state", "") in SETTLED)
    counted = Counter(getattr(record, "state", "") for record in records)
    return {
        "kind": "checkpoint",
        "heading": heading,
        "headline": answer.headline,
        "columns": list(columns),
        "rows": [[_cell(name, record) for name in columns.values()] for record in records[:MOST_ROWS]],
        "states": [getattr(record, "state", "") for record in records[:MOST_ROWS]],
        "counts": {state: n for state, n in counted.items() if state},
        "hidden": max(0, len(records) - MOST_ROWS),
        "empty": "" if records else answer.headline,
    }


def _cell(name: str, record: Any) -> str:
    value = getattr(record, name)
    if value is None:
        return ""
    if isinstance(value, float):
        if value == math.inf:
            return "from zeros"
        return f"{value:.2%}" if name == "relative" else f"{value:.3g}"
    return str(value)

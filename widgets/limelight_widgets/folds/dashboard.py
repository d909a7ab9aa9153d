"""The folds of a dashboard: what is chosen in it, and folds of whatever is newest.

A dashboard that was opened before anything ran shows the function that is traced next and the tape that records next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limelight import events
from limelight.autodiff.tape import alive as tapes
from limelight.staging.function import alive as staged_functions
from limelight_widgets.folds.fold import Fold, State
from limelight_widgets.folds.graph import GraphFold
from limelight_widgets.folds.tape import TapeFold
from limelight_widgets.folds.user_functions import is_user_function

NO_FUNCTION = (
    "No function has been traced yet. Stage one with @limelight.function, or a cell with %%stage, and call it: its "
    "graph appears here."
)
NO_TAPE = (
    "No tape has recorded yet. Compute inside `with limelight.GradientTape() as tape:`, and its records appear here."
)
_INNER = 1 << 32  # marks of the inner folds are smaller


class DashboardFold:
    """What is chosen in a dashboard, and which views it has."""

    kinds: tuple[type[events.Event], ...] = ()

    def __init__(self, panels: tuple[str, ...]) -> None:
        self._state: State = {
            "kind": "dashboard",
            "panels": list(panels),
            "asked": False,
            "reset": "",
            "title": "",
            "selection": {},
        }
        self._version = 1

    def apply(self, event: events.Event) -> bool:
        """It follows no events: its views do."""
        return False

    def catch_up(self) -> None:
        """Nothing is missed."""

    def put(self, **changed: Any) -> None:
        """Takes other values for parts of the state."""
        self._state = self._state | changed
        self._version += 1

    def state(self) -> State:
        return self._state

    def since(self, mark: int) -> tuple[State, int]:
        return ({} if mark == self._version else self._state), self._version


class NewestFold:
    """The fold of whatever is newest.

    Args:
        kinds: the events that say so, and those of the fold of it.
        nothing: the state before there is anything.
        make: the fold of a subject, which has an `id`.
        subject_of: the subject that an event is about where that is newer than the present one, else None.
        subject: what is shown at first, if there is anything.
    """

    def __init__(
        self,
        kinds: tuple[type[events.Event], ...],
        nothing: State,
        make: Callable[[Any], Fold],
        subject_of: Callable[[events.Event, int | None], Any],
        subject: Any,
    ) -> None:
        self.kinds = kinds
        self._nothing = nothing
        self._make = make
        self._subject_of = subject_of
        self._fold: Fold | None = None
        self._id: int | None = None
        self._generation = 1
        if subject is not None:
            self.follow(subject)

    def follow(self, subject: Any) -> Fold:
        """Shows `subject` from now on, until there is a newer one."""
        if self._fold is None or subject.id != self._id:
            self._fold, self._id = self._make(subject), subject.id
            self._generation += 1
        return self._fold

    def apply(self, event: events.Event) -> bool:
        newer = self._subject_of(event, self._id)
        if newer is not None:
            self.follow(newer)
        changed = self._fold is not None and self._fold.apply(event)
        return changed or newer is not None

    def catch_up(self) -> None:
        if self._fold is not None:
            self._fold.catch_up()

    def state(self) -> State:
        return self._nothing if self._fold is None else self._fold.state()

    def since(self, mark: int) -> tuple[State, int]:
        """The change of the present fold; all of its state where the reader has seen another."""
        generation, seen = divmod(mark, _INNER)
        first = generation != self._generation
        if self._fold is None:
            return (self._nothing if first else {}), self._generation * _INNER
        change, now = self._fold.since(0 if first else seen)
        return change, self._generation * _INNER + now


class NewestGraphFold(NewestFold):
    """The graph of the function that was traced last, or chosen in a cache."""

    def __init__(self) -> None:
        nothing: State = {"kind": "graph", "title": "Graph", "which": "optimised", "traces": 0, "empty": NO_FUNCTION}
        nothing |= {"variants": [], "graphs": [], "sources": [], "rules": {}}
        theirs = [one for one in staged_functions() if is_user_function(one)]
        newest = theirs[-1] if theirs else None
        super().__init__((events.Traced, events.CacheCleared), nothing, GraphFold, _traced, newest)

    def choose(self, function_id: int, index: int) -> None:
        """Shows the trace `index` of a function."""
        function = next((one for one in staged_functions() if one.id == function_id), None)
        if function is not None:
            fold = self.follow(function)
            assert isinstance(fold, GraphFold), "that is what it makes"
            fold.choose(function_id, index)


class NewestTapeFold(NewestFold):
    """The tape that was made last, of those that have recorded."""

    def __init__(self) -> None:
        nothing: State = {
            "kind": "tape",
            "id": -1,
            "entries": 0,
            "saved": 0,
            "hint": "",
            "hidden": 0,
            "released": False,
        }
        nothing |= {"empty": NO_TAPE, "from": 0, "rows": []}
        newest = next((tape for tape in reversed(tapes()) if tape.entries), None)
        super().__init__((events.Recorded, events.TapeReleased), nothing, TapeFold, _recorded, newest)


def _traced(event: events.Event, known: int | None) -> Any:
    if not isinstance(event, events.Traced) or event.function_id == known:
        return None
    traced = next((one for one in staged_functions() if one.id == event.function_id), None)
    return traced if traced is not None and is_user_function(traced) else None


def _recorded(event: events.Event, known: int | None) -> Any:
    if not isinstance(event, events.Recorded) or event.tape_id <= (known or 0):
        return None
    return next((tape for tape in tapes() if tape.id == event.tape_id), None)

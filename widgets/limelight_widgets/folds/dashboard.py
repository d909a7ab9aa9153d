"""The folds of a dashboard: what is chosen in it, and folds of whatever is newest.

A dashboard that was opened before anything ran shows the function that is traced next and the tape that records next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limelight import events
from limelight.autodiff.tape import alive as tapes
from limelight.staging import partial_trace
from limelight.staging.function import alive as staged_functions
from limelight.staging.function import with_id
from limelight_widgets.folds.fold import Fold, State, shown
from limelight_widgets.folds.graph import GraphFold
from limelight_widgets.folds.tape import TapeFold, has_recorded
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
    """The fold of whatever is newest; each kind of subject is a subclass.

    It looks for something newer when an event tells of it, and whenever it catches up: a view listens from when the
    page says that it is seen, which may be after the first call, or much later where it stands behind another tab.

    Args:
        nothing: the state before there is anything.
        make: the fold of a subject, which has an `id`.
    """

    kinds: tuple[type[events.Event], ...]

    def __init__(self, nothing: State, make: Callable[[Any], Fold]) -> None:
        self._nothing = nothing
        self._make = make
        self._fold: Fold | None = None
        self._id: int | None = None
        self._latest = 0  # the serial of the newest that it has seen
        self._generation = 1
        self._look()

    def _newest(self, event: events.Event | None = None) -> tuple[int, Any] | None:
        """What is newest, after its serial; with an event of those that it tells of. None where there is nothing."""
        raise NotImplementedError

    def _tells_of_newer(self, event: events.Event) -> bool:
        """Whether it is worth looking."""
        raise NotImplementedError

    def _look(self, event: events.Event | None = None) -> bool:
        """Shows what has come since it last looked, whatever was chosen before; whether that is another subject."""
        newest = self._newest(event)
        if newest is None or newest[0] <= self._latest:
            return False
        before = self._id
        self._latest = newest[0]
        self.follow(newest[1])
        return self._id != before

    def follow(self, subject: Any) -> Fold:
        """Shows `subject` from now on, until there is a newer one."""
        if self._fold is None or subject.id != self._id:
            self._fold, self._id = self._make(subject), subject.id
            self._generation += 1
        return self._fold

    def apply(self, event: events.Event) -> bool:
        newer = self._tells_of_newer(event) and self._look(event)
        changed = self._fold is not None and self._fold.apply(event)
        return changed or newer

    def catch_up(self) -> None:
        if not self._look() and self._fold is not None:
            self._fold.catch_up()

    def state(self) -> State:
        return self._nothing if self._fold is None else self._fold.state()

    def shown(self) -> State:
        """The same, as a view of the present fold reads it."""
        return self._nothing if self._fold is None else shown(self._fold)

    def since(self, mark: int) -> tuple[State, int]:
        """The change of the present fold; all of its state where the reader has seen another."""
        generation, seen = divmod(mark, _INNER)
        first = generation != self._generation
        if self._fold is None:
            return (self._nothing if first else {}), self._generation * _INNER
        change, now = self._fold.since(0 if first else seen)
        return change, self._generation * _INNER + now


class NewestGraphFold(NewestFold):
    """The graph of the function that was traced last, whole or not, or chosen in a cache."""

    kinds: tuple[type[events.Event], ...] = (
        events.TraceBegun,
        events.TraceFailed,
        events.Traced,
        events.CacheCleared,
    )
    _fold: GraphFold | None

    def __init__(self) -> None:
        nothing: State = {"kind": "graph", "title": "Graph", "which": "optimised", "traces": 0, "empty": NO_FUNCTION}
        nothing |= {"variants": [], "graphs": [], "sources": [], "rules": {}}
        super().__init__(nothing, lambda function: GraphFold(function, follows_failures=True))

    @property
    def runs(self) -> bool:
        """Whether a function is being traced, or was when its trace was last shown."""
        return bool(partial_trace.running()) or (self._fold is not None and self._fold.runs)

    @property
    def has_failed(self) -> bool:
        """Whether a call of what it shows had failed, and none had gone well since, when it last looked."""
        return self._fold is not None and self._fold.has_failed

    @property
    def seconds(self) -> float:
        """What it took to describe the last state."""
        return 0.0 if self._fold is None else self._fold.seconds

    def grow(self) -> bool:
        """Shows what a trace that runs has written, the outermost of the user's; whether one runs."""
        functions = (with_id(function_id) for function_id in partial_trace.running())
        outermost = next((one for one in functions if one is not None and is_user_function(one)), None)
        if outermost is not None:
            self.follow(outermost)
        return self._fold is not None and self._fold.grow()

    def describe_all(self) -> None:
        """Describes both versions of a large graph from now on: somebody asks for the other one."""
        if self._fold is not None:
            self._fold.describe_all()

    def _newest(self, event: events.Event | None = None) -> tuple[int, Any] | None:
        if event is None:
            functions: list[Any] = staged_functions(untraced=True)
        else:
            functions = [with_id(event.function_id)]  # type: ignore[attr-defined]  # which all of its kinds have
        latest = None
        for function in functions:
            serial = 0 if function is None else _serial(function)
            if serial > (latest[0] if latest else self._latest) and is_user_function(function):
                latest = (serial, function)
        return latest

    def _tells_of_newer(self, event: events.Event) -> bool:
        return isinstance(event, events.Traced | events.TraceFailed)

    def choose(self, function_id: int, index: int) -> None:
        """Shows the trace `index` of a function."""
        function = with_id(function_id)
        if function is not None:
            fold = self.follow(function)
            assert isinstance(fold, GraphFold), "that is what it makes"
            fold.choose(function_id, index)


def _serial(function: Any) -> int:
    """That of a function's newest trace, or of the one that failed since; 0 where it has none."""
    entry = function.trace_cache.newest
    return max(0 if entry is None else entry.serial, partial_trace.failed(function.id))


class NewestTapeFold(NewestFold):
    """The tape that was made last, of those that have recorded."""

    kinds: tuple[type[events.Event], ...] = (events.Recorded, events.TapeReleased)

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
        super().__init__(nothing, TapeFold)

    def _newest(self, event: events.Event | None = None) -> tuple[int, Any] | None:
        newest = next((tape for tape in reversed(tapes()) if tape.id > self._latest and has_recorded(tape)), None)
        return None if newest is None else (newest.id, newest)

    def _tells_of_newer(self, event: events.Event) -> bool:
        return isinstance(event, events.Recorded) and event.tape_id > self._latest

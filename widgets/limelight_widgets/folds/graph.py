"""The fold behind the graph view: one trace of a staged function, traced and optimised."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Literal

from limelight import events
from limelight.core.collector import collector_paused
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.graph_json import Describer
from limelight_widgets.folds.version_links import link

Which = Literal["traced", "optimised"]


class GraphFold:
    """Describes one trace of a staged function, or a graph as it is.

    A staged function is held weakly and described anew after it is traced; a graph is described once and not held.

    Args:
        subject: a staged function (it has `trace_cache`), an entry of a trace cache or a concrete function (they have
            `graph`), or a graph (it has `nodes`).
        which: the version that is shown first.
        trace: index of a function's trace, -1 for the newest.

    Raises:
        TypeError: `subject` is none of these.
        IndexError: the function has no trace of that index.
    """

    kinds: tuple[type[events.Event], ...]

    def __init__(self, subject: Any, which: Which = "optimised", trace: int = -1) -> None:
        if which not in {"traced", "optimised"}:
            raise ValueError(f'which={which!r}: a graph view shows "traced" or "optimised"')
        self._which = which
        self._trace = trace
        self._version = 1
        self._stale = False
        self._opened = False  # whether there was something to show
        self._function: weakref.ref[Any] | None = None
        self._function_id: int | None = None
        self.kinds = ()
        if hasattr(subject, "trace_cache"):
            self.kinds = (events.Traced, events.CacheCleared)
            self._function, self._function_id = weakref.ref(subject), subject.id
            self._state = self._of_function(subject)
        else:
            self._state = self._of_graph(subject)
        self._opened = True

    def apply(self, event: events.Event) -> bool:
        if not isinstance(event, events.Traced | events.CacheCleared) or event.function_id != self._function_id:
            return False
        self._version += 1
        self._stale = True
        return True

    def choose(self, function_id: int, index: int) -> None:
        """Shows the trace whose number is `index`, if it is one of this function's and still there."""
        function = self._function() if self._function is not None else None
        if function is None or function_id != self._function_id:
            return
        for position, entry in enumerate(function.trace_cache):
            if entry.index == index:
                self._trace, self._stale = position, True
                self._version += 1

    def catch_up(self) -> None:
        function = self._function() if self._function is not None else None
        if function is not None and len(function.trace_cache) != self._state.get("traces"):
            self._version += 1
            self._stale = True

    def state(self) -> State:
        function = self._function() if self._function is not None else None
        if self._stale and function is not None:
            self._state = self._of_function(function)
        self._stale = False
        return self._state

    def since(self, mark: int) -> tuple[State, int]:
        return ({} if mark == self._version else self.state()), self._version

    def _of_function(self, function: Any) -> State:
        cache = function.trace_cache
        head = {"kind": "graph", "title": function.name, "which": self._which, "traces": len(cache)}
        nothing: State = {"variants": [], "graphs": [], "sources": [], "rules": {}}
        if not cache and (self._trace == -1 or self._opened):
            said = "has forgotten its traces" if getattr(function, "trace_count", 0) else "has not been traced yet"
            return head | nothing | {"empty": f"{function.name} {said}. Call it once, and its graph appears here."}
        if not -len(cache) <= self._trace < len(cache):
            if self._opened:
                return head | nothing | {"empty": f"{function.name} has forgotten the trace that was shown here."}
            kept = f"has {len(cache)} traces, numbered from 0" if cache else "has no traces"
            raise IndexError(f"{function.name} {kept}; there is no {self._trace}")
        index = self._trace % len(cache)
        entry = cache[index]
        names = function.output_names(entry) if hasattr(function, "output_names") else ()  # a staged cell knows them
        head["label"] = _label(entry.index, index, len(cache))
        return head | {"trace": index, "signature": str(entry.signature)} | _variants(entry, names)

    def _of_graph(self, subject: Any) -> State:
        if not hasattr(subject, "graph") and not hasattr(subject, "nodes"):
            raise TypeError(
                f"a graph view shows a staged function, one of its traces, or a graph; this is a "
                f"{type(subject).__name__}. Stage it first: F = limelight.function(f)"
            )
        graph = getattr(subject, "graph", subject)
        variants = _variants(subject) if hasattr(subject, "optimised") else _only(graph)
        return {"kind": "graph", "title": graph.name, "which": self._which} | variants


def _label(number: int, position: int, kept: int) -> str:
    """Which trace it is, by the number that the trace cache shows; where some are gone, how many are left.

    >>> _label(1, 1, 3), _label(4, 0, 1)
    ('trace #2 of 3', 'trace #5, 1 kept')
    """
    return f"trace #{number + 1} of {kept}" if number == position else f"trace #{number + 1}, {kept} kept"


def _variants(entry: Any, output_names: Sequence[str] = ()) -> State:
    """Both versions of an entry's graph, and what the optimiser did to come from one to the other."""
    describer = Describer()
    optimised, records = _optimised(entry)
    with collector_paused():
        variants = [
            {"key": "traced", "graph": describer.graph(entry.graph, output_names)},
            {"key": "optimised", "graph": describer.graph(optimised, output_names, optimised=True)},
        ]
        changed = link(describer, entry.graph, optimised, records)
        passes = [_pass(record) | ({"changed": changed[i]} if i in changed else {}) for i, record in enumerate(records)]
    return {"variants": variants, "passes": passes} | describer.state()


def _optimised(entry: Any) -> tuple[Any, Sequence[Any]]:
    """The optimised graph, with the records of the passes where the entry leads to them."""
    holder = getattr(entry, "function", entry).optimised
    return (holder.graph, holder.records) if hasattr(holder, "records") else (holder, ())


def _pass(record: Any) -> State:
    counts = {"before": record.before, "removed": record.removed, "added": record.added, "after": record.after}
    return {"name": record.name, "seconds": record.seconds} | counts


def _only(graph: Any) -> State:
    describer = Describer()
    return {"variants": [{"key": "traced", "graph": describer.graph(graph)}], "passes": []} | describer.state()

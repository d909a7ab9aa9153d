"""The fold behind the graph view: one trace of a staged function, traced and optimised.

A trace that runs is shown as far as it has come. One that failed is shown up to what failed, until the function has
been called well again; not in the place of a whole one, which says of it that it failed.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, Final, Literal

from limelight import events
from limelight.core.collector import collector_paused
from limelight.staging import partial_trace
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.graph_json import Describer
from limelight_widgets.folds.graph_names import NO_NAMES, Names, capture_names, output_names
from limelight_widgets.folds.partial_graphs import failed_trace, partial_state
from limelight_widgets.folds.pass_history import MOST_COMPARED, of_passes, of_traces
from limelight_widgets.folds.user_functions import has_had_traces
from limelight_widgets.folds.version_links import link
from limelight_widgets.format import counted

Which = Literal["traced", "optimised"]

MIDDLE: Final = 500
"""Ops of a traced graph from which on the version that is shown comes first: the page asks for the rest, once drawn."""
LARGE: Final = 5_000
"""From which on the other version, and what links both, are described when the reader asks."""


class GraphFold:
    """Describes one trace of a staged function, or a graph as it is.

    A staged function is held weakly, and followed from trace to trace, unless it is one trace that is shown: that one
    is described once, with its lines as they were called then, and the state says which is newer. A graph is not held.

    Args:
        subject: a staged function (it has `trace_cache`), an entry of a trace cache or a concrete function (they have
            `graph`), or a graph (it has `nodes`).
        which: the version that is shown first.
        trace: index of a function's trace, -1 for the newest.
        costs: those of the ops of a call, as `limelight.explain.costs` measures them.
        overlay: what is told on the boxes at first.
        begin: what else the view begins with: "find", what is sought; "depth", how many levels of groups are open;
            "stop", how many passes have run of those that changed the graph.
        diff: indices of two of a function's traces, which are compared instead.
        brief: whether of a graph of more than `MIDDLE` ops the version that is shown may come first, and the rest when
            a page, which says that it has drawn it, asks for that.
        follows_failures: whether a trace that fails takes the place of a whole one that is shown.

    Raises:
        TypeError: `subject` is none of these.
        IndexError: the function has no trace of that index.
    """

    kinds: tuple[type[events.Event], ...]

    def __init__(
        self,
        subject: Any,
        which: Which = "optimised",
        trace: int = -1,
        costs: Any = None,
        overlay: str = "",
        diff: Any = None,
        begin: State | None = None,
        *,
        brief: bool = False,
        follows_failures: bool = False,
    ) -> None:
        if which not in {"traced", "optimised"}:
            raise ValueError(f'which={which!r}: a graph view shows "traced" or "optimised"')
        self._which = which
        self._trace = trace
        self._diff = diff
        self._first = MIDDLE if brief and which == "optimised" else LARGE  # ops up to which both versions come at once
        self._follows_failures = follows_failures
        self._at_first = ({"overlay": overlay} if overlay else {}) | ({"begin": begin} if begin else {})
        self._costs = None if costs is None else (costs.entry.index, dict(_cost_states(costs)))
        self._measured = None if costs is None else costs.graph
        self._version = 1
        self._stale = False
        self._opened = False  # whether there was something to show
        self._whole = costs is not None or "stop" in (begin or ())  # whether both versions are described
        self._grown = 0  # nodes of a trace that runs, as it was shown
        self.seconds = 0.0  # that it took to describe the last state
        self._known: Known = (0, 0, "", 0)
        self._number: int | None = None  # of the one trace that is shown, where the newest is not followed
        self._described: tuple[Any, State] = (None, {})  # what was described last, and what made of it
        self._state: State = {}
        self._function: weakref.ref[Any] | None = None
        self._function_id: int | None = None
        self.kinds = ()
        if hasattr(subject, "trace_cache"):
            self.kinds = (events.TraceBegun, events.TraceFailed, events.Traced, events.CacheCleared)
            self._function, self._function_id = weakref.ref(subject), subject.id
            self._state = self._of_function(subject)
            if trace != -1 and subject.trace_cache:
                self._number = subject.trace_cache[trace].index
        else:
            self._state = self._of_graph(subject)
        self._opened = True

    def apply(self, event: events.Event) -> bool:
        if not isinstance(event, self.kinds) or getattr(event, "function_id", None) != self._function_id:
            return False
        self._grown = 0
        if isinstance(event, events.TraceBegun):  # most are over before there is anything to see
            return False
        self._version += 1
        self._stale = True
        return True

    @property
    def runs(self) -> bool:
        """Whether the function is being traced, or was when its trace was last shown."""
        return bool(self._grown) or (
            self._function_id is not None and partial_trace.size(self._function_id) is not None
        )

    @property
    def has_failed(self) -> bool:
        """Whether a call had failed, and none gone well since, when it last looked: no event tells of one that does."""
        return bool(self._known[2])

    def grow(self) -> bool:
        """Shows what a trace that runs has written since it was last shown; whether one runs.

        One that was made on the side, as for steps, ends without a word: then the last whole one is shown again.
        """
        size = None if self._function_id is None else partial_trace.size(self._function_id)
        if (size or 0) > self._grown or (size is None and self._grown):
            self._grown = size or 0
            self._version += 1
            self._stale = True
        return size is not None

    def choose(self, function_id: int, index: int) -> None:
        """Shows the trace whose number is `index`, if it is one of this function's and still there."""
        function = self._function() if self._function is not None else None
        if function is None or function_id != self._function_id:
            return
        if any(entry.index == index for entry in function.trace_cache):
            self._number, self._stale = index, True
            self._version += 1

    def describe_all(self) -> None:
        """Describes both versions of a large graph from now on: somebody asks for the other, or for what links both."""
        if not self._whole:
            self._whole, self._stale = True, True
            self._version += 1

    def catch_up(self) -> None:
        if self._grown:
            self.grow()
        function = self._function() if self._function is not None else None
        if function is not None and self._known != _known(function):
            self._version += 1
            self._stale = True

    @property
    def _mark(self) -> str:
        """Tells states apart, also those of two functions that one view shows in turn."""
        return f"{self._function_id}:{self._version}"

    def state(self) -> State:
        if self._state.get("soon"):
            self.describe_all()
        told = self.shown()
        for graph in told["graphs"]:
            graph["nodes"].fill()
        return told

    def shown(self) -> State:
        """The same, but records of nodes are made when they are asked for: of a large graph few are."""
        function = self._function() if self._function is not None else None
        if self._stale and function is not None:
            start = time.perf_counter()
            self._state = self._of_function(function)
            self.seconds = time.perf_counter() - start
        elif self._stale and self._whole and self._function is not None and "waiting" in self._state:
            self._state = {
                key: value for key, value in self._state.items() if key not in {"waiting", "soon"}
            }  # nobody has it any more
        self._stale = False
        self._state["revision"] = self._mark
        return self._state

    def since(self, mark: int) -> tuple[State, int]:
        return ({} if mark == self._version else self.shown()), self._version

    def _of_function(self, function: Any) -> State:
        cache = function.trace_cache
        self._known = _known(function)
        which = "history" if "stop" in self._at_first.get("begin", ()) else self._which
        head = {"kind": "graph", "title": function.name, "which": which, "traces": len(cache)}
        if _is_staged_cell(function):
            head["staged_cell"] = True
        if self._diff is not None and (len(cache) or not self._opened):
            return head | self._of_two(function.name, cache)
        follows = self._trace == -1
        failure = failed_trace(function) if follows else None
        partial = partial_trace.of(function.id) if follows and self._grown else failure
        is_whole = "trace" in self._state
        if partial is not None and (self._grown or self._follows_failures or not is_whole):
            return head | partial_state(partial)
        nothing: State = {"variants": [], "graphs": [], "sources": [], "rules": {}}
        if not cache and (self._trace == -1 or self._opened):
            said = "has forgotten its traces" if has_had_traces(function) else "has not been traced yet"
            return head | nothing | {"empty": f"{function.name} {said}. Call it once, and its graph appears here."}
        index = self._position(cache)
        if index is None:
            if self._opened:
                return head | nothing | {"empty": f"{function.name} has forgotten the trace that was shown here."}
            kept = f"has {len(cache)} traces, numbered from 0" if cache else "has no traces"
            raise IndexError(f"{function.name} {kept}; there is no {self._trace}")
        entry = cache[index]
        head["label"] = _label(entry.index, index, len(cache))
        newer = [f"#{cache[-1].index + 1} is newer"] if self._number is not None and index + 1 < len(cache) else []
        if failure is not None:
            newer.append(f"a call since failed: {failure.error.partition(':')[0]}")
        if newer:
            head["newer"] = ", ".join(newer)
        described = self._with_costs(entry, self._of_entry(function, entry))
        return head | {"trace": index, "signature": str(entry.signature)} | self._at_first | described

    def _of_two(self, name: str, cache: Any) -> State:
        """From one trace to another."""
        for index in self._diff:
            if not -len(cache) <= index < len(cache):
                raise IndexError(f"{name} has {counted(len(cache), 'trace')}, numbered from 0; there is no {index}")
        one, two = [cache[index] for index in self._diff]
        numbers = (one.index + 1, two.index + 1)
        describer = Describer()
        variants = [{"key": "traced", "graph": describer.graph(two.graph)}]
        history = of_traces(describer, one.graph, two.graph, (f"trace #{numbers[0]}", f"trace #{numbers[1]}"))
        if history is None:
            sizes = f"{len(one.graph.nodes):,} and {len(two.graph.nodes):,} ops"
            refused = (
                f"These traces have {sizes}, and traces of up to {MOST_COMPARED:,} ops are compared in a picture. "
                f"%trace_cache {name} --diff {numbers[0]} {numbers[1]} tells how their arguments differ."
            )
            return {"variants": [], "graphs": [], "sources": [], "rules": {}, "empty": refused}
        said = {"which": "history", "label": f"trace #{numbers[0]} to #{numbers[1]}"}
        return {"variants": variants, "passes": [], "history": history} | said | describer.state()

    def _position(self, cache: Sequence[Any]) -> int | None:
        """Where the trace that is shown stands in the cache now; None where it is not there."""
        if self._number is not None:
            return next((position for position, entry in enumerate(cache) if entry.index == self._number), None)
        return self._trace % len(cache) if -len(cache) <= self._trace < len(cache) else None

    def _of_entry(self, function: Any, entry: Any) -> State:
        """What is described of a trace, once: a cell may have another number since, or have been run again."""
        key = (entry.index, id(entry.graph), id(_optimised(entry)[0]), self._whole)
        before, part = self._described
        if before != key:
            outputs = (
                function.output_names(entry)
                if _is_staged_cell(function)
                else output_names(getattr(entry, "output_paths", ()))
            )
            names = Names(outputs, capture_names(function, entry))
            same = before is not None and before[:-1] == key[:-1]
            completes = {"completes": part["described"]} if same else {}
            self._described = key, self._versions(entry, names) | {"described": self._mark} | completes
        return self._described[1]

    def _versions(self, entry: Any, names: Names) -> State:
        """Both versions, or the one that is shown; `soon`: the page shall ask for the rest by itself.

        Not of the traced version: it says on its boxes what became of them, so it needs the other one.
        """
        ops = len(entry.graph.nodes)
        if self._whole or ops <= self._first:
            return _variants(entry, names)
        return _variant(entry, self._which, names) | ({"soon": True} if ops <= LARGE else {})

    def _with_costs(self, entry: Any, described: State) -> State:
        """What is described of a trace, with what a measured call of it said of its nodes."""
        if self._costs is None or self._costs[0] != entry.index:
            return described
        self._note_costs(described, 1)
        return described | {"described": f"{described['described']} measured {id(self._costs)}"}

    def _note_costs(self, described: State, variant: int) -> None:
        nodes = described["graphs"][described["variants"][variant]["graph"]]["nodes"]
        for k, cost in self._costs[1].items() if self._costs else ():
            nodes.note(k, "cost", cost)

    def _of_graph(self, subject: Any) -> State:
        if not hasattr(subject, "graph") and not hasattr(subject, "nodes"):
            raise TypeError(
                f"a graph view shows a staged function, one of its traces, or a graph; this is a "
                f"{type(subject).__name__}. Stage it first: F = limelight.function(f)"
            )
        graph = getattr(subject, "graph", subject)
        variants = _variants(subject) if hasattr(subject, "optimised") else _only(graph)
        if graph is self._measured:
            self._note_costs(variants, 0)
        return {"kind": "graph", "title": graph.name, "which": self._which} | self._at_first | variants


Known = tuple[int, int, str, int]


def _known(function: Any) -> Known:
    """What tells whether a function has been traced since: its traces, the newest's number, and how one failed."""
    numbers = [entry.index for entry in function.trace_cache]
    failed = failed_trace(function)
    said = ("", 0) if failed is None else (failed.error, len(failed.graph.nodes))
    return len(numbers), numbers[-1] if numbers else -1, *said


def _is_staged_cell(function: Any) -> bool:
    """Whether it knows its outputs, and its arguments, by their names in the notebook."""
    return hasattr(function, "output_names")


def _cost_states(costs: Any) -> Iterator[tuple[int, list[object]]]:
    """Of each node of the graph that ran its place and cost; JSON has no infinity."""
    for k, node in enumerate(costs.graph.nodes):
        if node in costs.of:
            seconds, nans, infinities, norm, nbytes = costs.of[node]
            yield k, [seconds, nans, infinities, "inf" if norm is not None and not isfinite(norm) else norm, nbytes]


def _label(number: int, position: int, kept: int) -> str:
    """Which trace it is, by the number that the trace cache shows; where some are gone, how many are left.

    >>> _label(1, 1, 3), _label(4, 0, 1)
    ('trace #2 of 3', 'trace #5, 1 kept')
    """
    return f"trace #{number + 1} of {kept}" if number == position else f"trace #{number + 1}, {kept} kept"


def _variants(entry: Any, names: Names = NO_NAMES) -> State:
    """Both versions of an entry's graph, and what the optimiser did to come from one to the other."""
    describer = Describer()
    optimised, records = _optimised(entry)
    with collector_paused():
        variants = [
            {"key": "traced", "graph": describer.graph(entry.graph, names)},
            {"key": "optimised", "graph": describer.graph(optimised, names, optimised=True)},
        ]
        changed = link(describer, entry.graph, optimised, records)
        passes = [_pass(record) | ({"changed": changed[i]} if i in changed else {}) for i, record in enumerate(records)]
        told = of_passes(describer, entry.graph, optimised, records)
    history = {} if told is None else {"history": told}
    return {"variants": variants, "passes": passes} | history | describer.state()


def _variant(entry: Any, which: Which, names: Names) -> State:
    """One version of an entry's graph; the other one is `waiting`."""
    describer = Describer()
    optimised, records = _optimised(entry)
    runs = which == "optimised"
    with collector_paused():
        graph = describer.graph(optimised if runs else entry.graph, names, optimised=runs)
    variants = [{"key": which, "graph": graph}]
    waiting = "traced" if runs else "optimised"
    passes = [_pass(record) for record in records]
    return {"variants": variants, "waiting": waiting, "passes": passes} | describer.state()


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

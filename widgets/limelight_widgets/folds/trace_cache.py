"""The fold behind the trace-cache view: every entry, why it was made, and how often it was used."""

from __future__ import annotations

import inspect
import itertools
import weakref
from typing import Any, Final, Literal, get_args

from limelight import events
from limelight.explain.subject import called_by
from limelight.staging.function import alive as staged_functions
from limelight.staging.key_parts import TensorPart, ValuePart, VariablePart
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.source_excerpts import line_state
from limelight_widgets.folds.user_functions import has_had_traces, is_user_function
from limelight_widgets.format import short_device

MOST_ENTRIES = 500  # shown of one function; the newest

Sort = Literal["time", "cost", "count"]
SORTS: Final[tuple[Sort, ...]] = get_args(Sort)


class CacheFold:
    """Follows the trace cache of one function, or of every function that is called while the view is open.

    Args:
        functions: staged functions whose present entries are shown at once.
        only: follow only these functions; otherwise also any other that is called.
        internals: with those others also functions that the library has staged.
        sort: the order of entries: "time", as they were made; "cost", the longest traced first; "count", the most
            used first.
    """

    kinds: tuple[type[events.Event], ...] = (events.CacheMiss, events.CacheCleared, events.Traced)
    """Not `CacheHit`: an event for each call costs a loop of 10,000 calls a second 3%; entries count (see `look`)."""

    def __init__(
        self, functions: tuple[Any, ...] = (), *, only: bool = False, internals: bool = False, sort: Sort = "time"
    ) -> None:
        self._internals, self._sort = internals, sort
        self._only = {function.id for function in functions} if only else None
        self._kinds: dict[int, bool] = {}  # whether a function is the library's own
        self._functions: dict[int, State] = {}
        self._known: dict[int, weakref.ref[Any]] = {}
        self._seen: dict[tuple[int, int], weakref.ref[Any]] = {}  # the entries that were described
        self._version = 1
        self._looked: Any = None  # hits of all entries and how far they are compiled, when they were last looked at
        self._newest: list[int] | None = None
        self._chosen: list[list[int]] = []
        self._diff: State | None = None
        self._what_if: State | None = None
        for function in functions:
            self._known[function.id] = weakref.ref(function)
            self._refresh(function)

    def apply(self, event: events.Event) -> bool:
        if not isinstance(event, events.CacheHit | events.CacheMiss | events.CacheCleared | events.Traced):
            return False
        if self._only is not None and event.function_id not in self._only:
            return False
        if self._only is None and not self._internals and self._is_internal(event.function_id):
            return False
        if isinstance(event, events.CacheCleared):
            return self._clear(event)
        if event.function_id not in self._known:
            self._meet(event.function_id)
        entry = self._entry(event.function_id, event.function, event.entry)
        if isinstance(event, events.CacheHit):
            entry["hits"] += 1
        elif isinstance(event, events.CacheMiss):
            entry["reason"], entry["line"] = joined_arrows(event.reason), line_state(event.source)
            entry["state"] = "tracing"
            self._newest = [event.function_id, event.entry]
        else:
            entry["nodes"], entry["seconds"], entry["state"] = event.nodes, event.seconds, "ready"
        self._functions[event.function_id]["stale"] = True
        self._version += 1
        return True

    def _is_internal(self, function_id: int) -> bool:
        """Whether the library has staged the function; while it is traced first, it is not yet among those traced."""
        if function_id not in self._kinds:
            function = next((one for one in staged_functions(untraced=True) if one.id == function_id), None)
            self._kinds[function_id] = function is not None and not is_user_function(function)
        return self._kinds[function_id]

    def _meet(self, function_id: int) -> None:
        """A function that was traced first while this was open: from now on it is asked itself."""
        function = next((one for one in staged_functions() if one.id == function_id), None)
        if function is not None:
            self._known[function_id] = weakref.ref(function)

    def choose(self, chosen: list[list[int]], diff: State | None) -> None:
        """Marks entries, each a function's id and an index, and what distinguishes two."""
        self._chosen, self._diff = chosen, diff
        self._version += 1

    def answer(self, what_if: State) -> None:
        """Shows what a call would do that somebody has typed."""
        self._what_if = what_if
        self._version += 1

    def _clear(self, event: events.CacheCleared) -> bool:
        function = self._functions.get(event.function_id)
        if function is None:
            return False
        function["entries"], function["cleared"] = {}, True
        if self._newest is not None and self._newest[0] == event.function_id:
            self._newest = None
        self._chosen, self._diff = [], None
        self._version += 1
        return True

    def look(self) -> None:
        """Takes notice of hits since the last look, and of what has been compiled: the entries themselves have it."""
        alive = [function for reference in self._known.values() if (function := reference()) is not None]
        entries = [entry for function in alive for entry in function.trace_cache]
        looked = (sum(entry.hits for entry in entries), [tier_text(entry) for entry in entries])
        if looked != self._looked:
            self._looked = looked
            for function in alive:
                self._functions[function.id]["stale"] = True
            self._version += 1

    def catch_up(self) -> None:
        if self._only is None:  # those that were traced while nobody listened
            for function in staged_functions():
                if function.id not in self._known and (self._internals or is_user_function(function)):
                    self._known[function.id] = weakref.ref(function)
                    self._refresh(function)
        for function_id in self._known:
            self._functions[function_id]["stale"] = True
        self._version += 1

    def state(self) -> State:
        for function_id, function in self._functions.items():
            if function["stale"] and (alive := self._alive(function_id)) is not None:
                self._refresh(alive)
        shown = [_shown(function_id, function, self._sort) for function_id, function in self._functions.items()]
        empty = "" if any(function["entries"] for function in shown) else self._sentence()
        state: State = {"kind": "trace_cache", "functions": shown, "newest": self._newest, "empty": empty}
        return state | {"sort": self._sort, "chosen": self._chosen, "diff": self._diff, "what_if": self._what_if}

    def since(self, mark: int) -> tuple[State, int]:
        return ({} if mark == self._version else self.state()), self._version

    def _sentence(self) -> str:
        if self._only:
            names = ", ".join(function["name"] for function in self._functions.values())
            if any(function["cleared"] for function in self._functions.values()):
                return f"{names} has forgotten its traces. Its next call traces, and the new entry appears here."
            return f"{names} has no traces yet. Call it once, and its first entry appears here."
        return "No function is traced yet: start a cell with %%stage, or call one made by ll.function."

    def _alive(self, function_id: int) -> Any:
        reference = self._known.get(function_id)
        return None if reference is None else reference()

    def _entry(self, function_id: int, name: str, index: int) -> State:
        function = self._functions.setdefault(function_id, _new(name))
        entry: State = function["entries"].setdefault(index, _blank(index))
        return entry

    def _refresh(self, function: Any) -> None:
        """Takes over what the cache itself says of its entries; hits are counted there as well."""
        known = self._functions.setdefault(function.id, _new(function.name))
        known["stale"] = False
        known["example"] = _call_of(function)
        known["cleared"] |= has_had_traces(function)
        fresh: dict[int, State] = {}
        for entry in function.trace_cache:
            before, seen = known["entries"].get(entry.index), self._seen.get((function.id, entry.index))
            if before is None or seen is None or seen() is not entry:
                self._seen[function.id, entry.index] = weakref.ref(entry)
                before = _described(entry, before)
            fresh[entry.index] = before | {"hits": entry.hits, "tier": tier_text(entry), "state": "ready"}
        pending = {i: e for i, e in known["entries"].items() if e["state"] == "tracing" and i not in fresh}
        known["entries"] = fresh | pending


def _new(name: str) -> State:
    return {"name": name, "entries": {}, "stale": False, "cleared": False, "example": f"{name}()"}


def _call_of(function: Any) -> str:
    """A call to begin with, of the arguments that go by position: "step(x, y)"."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of what was loaded, or is built in
        return f"{called_by(function)}()"
    named = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return f"{called_by(function)}({', '.join(named[:3])})"


def _described(entry: Any, before: State | None) -> State:
    """All that does not change about an entry."""
    facts = {
        "signature": str(entry.signature),
        "arguments": arguments_text(entry),
        "device": short_device(entry.device) or "any",
        "seconds": entry.trace_seconds,
    }
    facts |= {"nbytes": entry.nbytes, "nodes": len(entry.graph.nodes)}
    base = before or _blank(entry.index)
    return base | facts | {"reason": joined_arrows(entry.reason) or base["reason"]}


def arguments_text(entry: Any) -> str:
    """The arguments on one line as in a signature: tensors first, then values; objects are only counted.

    What is keyed by identity (modules, functions, models) is the same in nearly every entry, and pushes aside what
    differs.
    """
    if not hasattr(entry, "key"):
        return str(entry.signature)
    named: dict[type, list[str]] = {TensorPart: [], ValuePart: [], VariablePart: []}
    objects = 0
    for path, part in zip(entry.paths, entry.key.parts, strict=True):
        if type(part) in named and not (isinstance(part, ValuePart) and part.kind is type):
            named[type(part)].append(f"{path}: {part.describe()}")
        else:
            objects += 1
    counted_objects = [f"+{objects}\u00a0object{'s' * (objects > 1)}"] if objects else []
    return ", ".join([*itertools.chain.from_iterable(named.values()), *counted_objects])


def tier_text(entry: Any) -> str:
    """What an entry runs on, what that gains if it has been measured, and how far it is compiled.

    So "plan, compiling…", "loops, 6.9 times as fast as plan", "xla, compiled: 2.1 times as fast".
    """
    progress, gain = getattr(entry, "tier_progress", ""), getattr(entry, "gain", "")
    known = (progress, gain) if progress.startswith("kept on ") else (entry.tier, gain, progress)
    return ", ".join(filter(None, known))


def joined_arrows(reason: str) -> str:
    """`reason` with arrows that stay on one line with what they connect."""
    return reason.replace(" -> ", "\u00a0→\u00a0")


def _blank(index: int) -> State:
    texts: State = {"signature": "", "arguments": "", "reason": ""}
    entry = {"index": index, "hits": 0, "seconds": None, "nbytes": None, "nodes": None}
    return texts | entry | {"device": "", "tier": "", "line": None, "state": "ready"}


def _shown(function_id: int, function: State, sort: Sort) -> State:
    entries = [function["entries"][index] for index in sorted(function["entries"])]
    kept = entries[-MOST_ENTRIES:]
    if sort != "time":
        kept = sorted(kept, key=lambda entry: -(entry["seconds" if sort == "cost" else "hits"] or 0))
    return {
        "id": function_id,
        "name": function["name"],
        "example": function["example"],
        "entries": [dict(entry) for entry in kept],
        "hidden": max(len(entries) - MOST_ENTRIES, 0),
        "hits": sum(entry["hits"] for entry in entries),
    }

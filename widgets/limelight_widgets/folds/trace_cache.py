"""The fold behind the trace-cache view: every entry, why it was made, and how often it was used."""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections import Counter
from typing import Any, Final, Literal, get_args

from limelight import events
from limelight.explain.subject import called_by
from limelight.staging.function import alive as staged_functions
from limelight.staging.function import with_id
from limelight.staging.key_parts import TensorPart, ValuePart, VariablePart
from limelight.user_code.source_line import Source
from limelight_widgets.folds.entry_uses import EntryUses
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.source_excerpts import line_state
from limelight_widgets.folds.user_functions import has_had_traces, is_user_function
from limelight_widgets.format import joined_arrows, short_device

MOST_ENTRIES = 500  # shown of one function; the newest
MOST_GONE = 100  # functions that are no more, of which entries are shown; those that were traced last

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
        self._uses = EntryUses()
        self._version = 1
        self._changed: dict[tuple[int, int], int] = {}  # the version in which an entry became as it is
        self._looked: Any = None  # hits of all entries and how far they are compiled, when they were last looked at
        self._newest: list[int] | None = None
        self._chosen: list[list[int]] = []
        self._diff: State | None = None
        self._what_if: State | None = None
        self._told_places: tuple[int, dict[str, str]] = (1, {})  # and the version in which they became so
        for function in functions:
            self._known[function.id] = weakref.ref(function)
            self._refresh(function, watched=False)

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
        self._note_change(event.function_id, event.entry)
        return True

    def _note_change(self, function_id: int, *indices: int) -> None:
        """In this version these entries of a function, and so the function, are other than they were."""
        self._functions[function_id]["version"] = self._version
        for index in indices:
            self._changed[function_id, index] = self._version

    def _is_internal(self, function_id: int) -> bool:
        """Whether the library has staged the function; while it is traced first, it is not yet among those traced."""
        if function_id not in self._kinds:
            function = with_id(function_id)
            self._kinds[function_id] = function is not None and not is_user_function(function)
        return self._kinds[function_id]

    def _meet(self, function_id: int) -> None:
        """A function that was traced first while this was open: from now on it is asked itself."""
        function = with_id(function_id)
        if function is not None and function.trace_cache:
            self._known[function_id] = weakref.ref(function)
        if function_id not in self._functions:
            self._forget_some()

    def _forget_some(self) -> None:
        """A loop that stages a function in each round leaves as many behind, all of which would be sent each time."""
        gone = [one for one in self._functions if self._alive(one) is None]
        for function_id in gone[: max(len(gone) - MOST_GONE, 0)]:
            function = self._functions.pop(function_id)
            self._known.pop(function_id, None)
            self._kinds.pop(function_id, None)
            self._uses.forget(function_id)
            for index in function["entries"]:
                self._seen.pop((function_id, index), None)
                self._changed.pop((function_id, index), None)

    def choose(self, chosen: list[list[int]], diff: State | None) -> None:
        """Marks entries, each a function's id and an index, and what distinguishes two."""
        self._chosen, self._diff = chosen, diff
        self._version += 1

    def answer(self, what_if: State) -> None:
        """Shows what a call would do that somebody has typed."""
        self._version += 1
        self._what_if = what_if | {"asked": self._version}  # else the same answer twice looks like none

    def _clear(self, event: events.CacheCleared) -> bool:
        function = self._functions.get(event.function_id)
        if function is None:
            return False
        function["entries"], function["cleared"] = {}, True
        if self._newest is not None and self._newest[0] == event.function_id:
            self._newest = None
        self._chosen, self._diff = [], None
        self._uses.forget(event.function_id)
        self._version += 1
        self._note_change(event.function_id)
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
        self._version += 1
        for known in list(self._known):
            if (alive := self._alive(known)) is not None:
                self._refresh(alive, watched=False)

    def state(self) -> State:
        return self._since(0)

    def since(self, mark: int) -> tuple[State, int]:
        """What has changed: the functions that have, with numbers for those of their entries that have not.

        `order` names all functions then, by their ids; `places` are there if they have changed.
        """
        return ({} if mark == self._version else self._since(mark)), self._version

    def _since(self, mark: int) -> State:
        for function_id, function in self._functions.items():
            if function["stale"] and (alive := self._alive(function_id)) is not None:
                self._refresh(alive)
        shown = [self._shown(*one, mark) for one in self._functions.items() if one[1]["version"] > mark]
        empty = "" if any(function["entries"] for function in self._functions.values()) else self._sentence()
        state: State = {"kind": "trace_cache", "functions": shown, "newest": self._newest, "empty": empty}
        state |= {"order": list(self._functions)} if mark else {}
        state |= {"sort": self._sort, "chosen": self._chosen, "diff": self._diff, "what_if": self._what_if}
        places = self._places()
        if places != self._told_places[1]:
            self._told_places = self._version, places
        state |= {"places": places} if self._told_places[0] > mark else {}
        return state | {"pace": self._uses.pace()}

    def _places(self) -> dict[str, str]:
        """Behind the name of each function, by its id, where it begins, if several are called so: lambdas are."""
        alike = Counter(function["name"] for function in self._functions.values())
        met: Counter[tuple[str, str]] = Counter()
        places = {}
        for function_id, function in self._functions.items():
            if alike[function["name"]] > 1:
                site = function["name"], function["defined"]
                met[site] += 1
                words = filter(None, (function["defined"], f"no. {met[site]}" if met[site] > 1 else ""))
                places[str(function_id)] = f" ({', '.join(words)})" if function["defined"] or met[site] > 1 else ""
        return places

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

    def _refresh(self, function: Any, *, watched: bool = True) -> None:
        """Takes over what the cache itself says of its entries; hits are counted there as well.

        `watched` says whether somebody has looked since it was taken over last.
        """
        known = self._functions.setdefault(function.id, _new(function.name))
        known["stale"] = False
        known["example"] = _call_of(function)
        known["defined"] = _defined(function)
        known["cleared"] |= has_had_traces(function)
        before: dict[int, State] = known["entries"]
        fresh = {
            entry.index: self._row(function.id, entry, before.get(entry.index), watched)
            for entry in function.trace_cache
        }
        pending = {i: e for i, e in before.items() if e["state"] == "tracing" and i not in fresh}
        known["entries"] = fresh | pending
        changed = [i for i, row in fresh.items() if row is not before.get(i)]
        if changed or len(before) != len(known["entries"]) or not known["version"]:
            self._note_change(function.id, *changed)

    def _row(self, function_id: int, entry: Any, before: State | None, watched: bool) -> State:
        """What is shown of an entry; the same dictionary as before, where it is no other."""
        seen = self._seen.get((function_id, entry.index))
        known = before
        if known is None or seen is None or seen() is not entry:
            self._seen[function_id, entry.index] = weakref.ref(entry)
            known = _described(entry, known)
        used = self._uses.seen((function_id, entry.index), entry.hits, watched=watched)
        now = known | {"hits": entry.hits, "tier": tier_text(entry), "state": "ready", "used": used}
        return before if before is not None and now == before else now

    def _shown(self, function_id: int, function: State, mark: int) -> State:
        """A function with its entries; of those that a reader of the state at `mark` has, only the numbers."""
        entries = [function["entries"][index] for index in sorted(function["entries"])]
        kept = entries[-MOST_ENTRIES:]
        if self._sort != "time":
            kept = sorted(kept, key=lambda entry: -(entry["seconds" if self._sort == "cost" else "hits"] or 0))
        return {
            "id": function_id,
            "name": function["name"],
            "example": function["example"],
            "entries": [
                dict(entry) if self._changed.get((function_id, entry["index"]), 1) > mark else entry["index"]
                for entry in kept
            ],
            "hidden": max(len(entries) - MOST_ENTRIES, 0),
            "hits": sum(entry["hits"] for entry in entries),
        }


def _new(name: str) -> State:
    return {
        "name": name,
        "entries": {},
        "stale": False,
        "cleared": False,
        "example": f"{name}()",
        "defined": "",
        "version": 0,
    }


def _defined(function: Any) -> str:
    """Where a function begins, which tells lambdas apart; "" where that is not known."""
    code = getattr(getattr(function, "python_function", None), "__code__", None)
    if code is None:
        return ""
    place = Source(code.co_filename, code.co_firstlineno, code.co_name)
    return f"{place.label}:{place.line}"


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


def _blank(index: int) -> State:
    texts: State = {"signature": "", "arguments": "", "reason": ""}
    entry = {"index": index, "hits": 0, "seconds": None, "nbytes": None, "nodes": None, "used": None}
    return texts | entry | {"device": "", "tier": "", "line": None, "state": "ready"}

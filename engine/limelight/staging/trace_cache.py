"""The trace cache of a staged function: its concrete functions by key, their history, and their bounds.

An entry is a `ConcreteFunction`. It is found in up to four steps, the shortest first:

    by types        `Function.__call__` asks `by_types` with `key.plain_types`, which are quicker to make than a key
    by guard        else it asks `guards`, code that compares a call with an earlier one (`guards`)
    by key          `find` asks the table of entries with a `LookupKey`
    by covering     `find` asks the entries whose keys have unknown sizes whether they cover the key

Tables are replaced rather than emptied, since looking up takes no lock: a call that was under way when the cache was
cleared runs the entry that it found, and writes its shortcut to a table that nobody reads any more, so it cannot bring
back what was cleared.

Two bounds. `cache_size` evicts the entry not used for longest, exactly: the hit counters of a bounded cache note the
time when they are counted up, so unbounded caches pay nothing. `max_traces` counts the entries made since the cache was
last cleared, evicted ones too; the two traces of a function that creates state are one.

The history holds words, numbers and weak references, so it keeps nothing alive that the user let go.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from limelight import forking
from limelight.staging.direct_call import Direct
from limelight.staging.guards import Guards
from limelight.staging.key import Key, LookupKey
from limelight.staging.key_parts import ObjectPart, TensorPart, ValuePart, has_identity
from limelight.staging.weak_identity import Identity

_MAX_SHORTCUTS: Final = 512
"""How many calls are remembered in a table of shortcuts; then all are forgotten."""
_MAX_HISTORY: Final = 1000
WINDOW: Final = 10
"""Of how many latest calls `History.recent_traces` counts those that traced."""


_lock = threading.RLock()
"""Of changes to any cache; the user's code may run in the middle of one, when objects die."""
forking.renew_in_child(__name__, "_lock", threading.RLock)


class HitCounter(list[int]):
    """The hits of an entry in a bounded cache: a list of one number, with the time of the latest hit, `last_used`.

    Counting a hit is what notes the time, so that only bounded caches pay for it.
    """

    __slots__ = ("_clock", "last_used")

    def __init__(self, clock: Iterator[int]) -> None:
        super().__init__([0])
        self._clock = clock
        self.last_used = next(clock)

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        self.last_used = next(self._clock)


class ByTypes(dict[tuple[Any, ...], Any]):
    """Entries by `key.plain_types`, with the direct call of one of them.

    Both are in one object, since a call that was under way when the cache was cleared writes to the table of before.
    """

    __slots__ = ("direct",)

    def __init__(self) -> None:
        super().__init__()
        self.direct: Direct | None = None
        """For calls that are one compiled program, which it runs as well."""


class TraceCache:
    """The concrete functions of one staged function, a sequence in the order in which they were traced.

    A key whose weakly held objects have died can never be found again; its entry goes at the next insertion.

    Args:
        size: how many entries are kept, the one not used for longest giving way; None for all.
        max_traces: how many may be made before the cache is cleared; None for no bound.
    """

    def __init__(self, size: int | None = None, max_traces: int | None = None) -> None:
        self.size = size
        self.max_traces = max_traces
        self._clock = itertools.count()
        self._entries: dict[Key, Any] = {}
        self._weak: dict[Key, Any] = {}  # those whose keys hold objects, and die with them
        self._relaxed: list[tuple[Key, Any]] = []  # entries whose keys have unknown sizes and so cover many
        self._covered: dict[LookupKey, Any] = {}  # shortcuts: keys that one of those covers
        self._order: list[Any] = []
        self.by_types = ByTypes()
        """Shortcuts for the commonest calls: what `find` would find, by `key.plain_types`."""
        self.guards = Guards()
        """The same for calls with containers, keywords and other Python values."""
        self.history = History()

    def find(self, key: LookupKey) -> Any:
        """The entry for `key`, exact or relaxed; None on a miss. Raises TypeError for an unhashable key."""
        covered, relaxed = self._covered, self._relaxed
        entry = self._entries.get(key)  # type: ignore[call-overload]  # equal to the typed key that it stands for
        if entry is None and relaxed:
            entry = covered.get(key)
            if entry is None:
                asked = key.typed()
                entry = next((candidate for wider, candidate in relaxed if wider.covers(asked)), None)
                if entry is not None:
                    add_shortcut(covered, key, entry)
        return entry

    def add(self, key: Key, entry: Any) -> None:
        """Adds a new entry, in the place of one that it replaces, and evicts one where there are too many."""
        with _lock:
            replaced = self._entries.get(key)
            self._drop([e for known, e in self._weak.items() if _is_dead(known)])
            if replaced is not None:
                self._drop([replaced])
            if self.size is not None:
                entry.counter = HitCounter(self._clock)
            self.history.add(entry)  # first: an interrupt in the middle must leave no entry without its number
            if any(isinstance(part, ObjectPart) or has_identity(part) for part in key.parts):
                self._weak = {**self._weak, key: entry}
            if any(part.has_unknown_sizes for part in key.parts):
                self._relaxed = [*self._relaxed, (key, entry)]
            self._order = [*self._order, entry]
            self._entries[key] = entry
            if self.size is not None and len(self._order) > self.size:
                self._drop([self._least_recently_used()], "evicted")
            self.clear_shortcuts()

    def lost(self, key: Key) -> Ghost | None:
        """The latest trace that a call with `key` would have found, and that was evicted or cleared."""
        return self.history.ghost(key)

    @property
    def newest(self) -> Any:
        """The entry that was made last, of those that are there; None where there is none."""
        order = self._order
        return order[-1] if order else None

    @property
    def next_evicted(self) -> Any:
        """The entry that gives way to the next new one; None while there is room, or no bound."""
        with _lock:
            return None if self.size is None or len(self._order) < self.size else self._least_recently_used()

    @property
    def budget_is_spent(self) -> bool:
        """Whether another trace would exceed `max_traces`."""
        return self.max_traces is not None and self.history.made_since_clearing >= self.max_traces

    def over_budget(self, name: str, record: Any) -> str:
        """What a TraceBudgetError of the function `name` says: the budget, the call, and why it would trace.

        `record` is the `Miss` that was about to be traced.
        """
        most = self.max_traces
        plural = "" if most == 1 else "s"
        return (
            f"`{name}` has its {most} trace{plural} (max_traces={most}), and the call at {record.where} needs "
            f"another: {record.story}"
        )

    def clear(self) -> None:
        with _lock:
            self.history.note_clearing()
            self._drop(self._order, "cleared")
            self.clear_shortcuts()

    def clear_shortcuts(self) -> None:
        """Forgets the shortcuts, so that the next calls look entries up by their whole keys."""
        self.by_types = ByTypes()
        self.guards = Guards()
        self._covered = {}

    def __iter__(self) -> Iterator[Any]:
        return iter(tuple(self._order))

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: int) -> Any:
        return self._order[index]

    def __repr__(self) -> str:
        hits = sum(entry.hits for entry in self._order)
        return f"<trace cache: {_counted(len(self), 'trace')}, {_counted(hits, 'hit')}>"

    def _least_recently_used(self) -> Any:
        return min(self._order, key=lambda entry: entry.counter.last_used)

    def _drop(self, entries: list[Any], why: str = "") -> None:
        """Takes entries out. Tables are replaced rather than changed, since other threads may be reading them."""
        if not entries:
            return
        dropped = {id(entry) for entry in entries}
        self._entries = {key: entry for key, entry in self._entries.items() if id(entry) not in dropped}
        self._weak = {key: entry for key, entry in self._weak.items() if id(entry) not in dropped}
        self._relaxed = [(key, entry) for key, entry in self._relaxed if id(entry) not in dropped]
        self._order = [entry for entry in self._order if id(entry) not in dropped]
        for entry in entries:
            self.history.remove(entry, why)


def add_shortcut(table: dict[Any, Any], key: Any, entry: Any) -> None:
    """Notes in a table of shortcuts what a call has found."""
    if len(table) >= _MAX_SHORTCUTS:
        table.clear()
    table[key] = entry


class Ghost(NamedTuple):
    """What is remembered of an entry that was cleared, or evicted from a cache of bounded size: `why` says which."""

    why: str
    number: int
    where: str
    uses: int
    key_hash: int
    values: str
    objects: tuple[Identity, ...]
    relaxed: Key | None  # the key of a trace with unknown sizes, where it is made of tensors alone

    def was_for(self, key: Key) -> bool:
        """Whether a call with `key`, of the same hash, would have found this trace. A hash would take -1 for -2."""
        return self.values == _values(key) and self.objects == objects_of(key)


class History:
    """Of one function: its misses, oldest first, the traces that it no longer has, and when its calls traced."""

    def __init__(self) -> None:
        self.misses: deque[Any] = deque(maxlen=_MAX_HISTORY)
        self.ghosts: deque[Ghost] = deque(maxlen=_MAX_HISTORY)
        self.made = 0
        self._made_before = 0  # until the cache was last cleared
        self.cleared = 0
        self.warned = self.warned_at = 0  # how often, and how many calls there had been the last time
        self._counters: dict[int, list[int]] = {}  # shared with the entries, which count their hits in them
        self._past_calls = 0  # of entries that have been removed
        self._traced_at: deque[int] = deque(maxlen=WINDOW)

    def add(self, entry: Any) -> None:
        """A new entry: numbers it, and keeps its reason and its counter."""
        entry.index = self.made
        self.made += 1
        self._counters[entry.index] = entry.counter
        if entry.miss is not None:
            self.misses.append(entry.miss)

    def remove(self, entry: Any, why: str = "") -> None:
        """An entry leaves the cache. It is remembered where there is a reason `why`, other than that its key died."""
        self._past_calls += 1 + self._counters.pop(entry.index)[0]
        if why and not any(identity.keeps_alive for identity in objects_of(entry.key)):
            key, uses = entry.key, entry.hits + 1
            relaxed = key if _is_relaxed(key) else None
            words = _values(key), objects_of(key)
            self.ghosts.append(Ghost(why, entry.index + 1, entry.where, uses, hash(key), *words, relaxed))

    def note_clearing(self) -> None:
        """The cache is about to be cleared; one that never had an entry does not count as cleared."""
        self.cleared += self.made > 0
        self._made_before = self.made

    @property
    def made_since_clearing(self) -> int:
        """How many traces there have been since the cache was last cleared, evicted ones too."""
        return self.made - self._made_before

    def ghost(self, key: Key) -> Ghost | None:
        """The latest trace for calls with `key` that the cache has lost."""
        key_hash = hash(key)
        ghost: Ghost
        for ghost in reversed(list(self.ghosts)):
            if ghost.key_hash == key_hash and ghost.was_for(key):
                return ghost
            if ghost.relaxed is not None and ghost.relaxed.covers(key):
                return ghost
        return None

    def evicted(self) -> set[int]:
        """The hashes of the keys whose traces were evicted, but for those that no call can ask for any more."""
        evicted = [ghost for ghost in list(self.ghosts) if ghost.why == "evicted"]
        return {ghost.key_hash for ghost in evicted if None not in [known.ref() for known in ghost.objects]}

    @property
    def calls(self) -> int:
        """How many calls there have been, as far as they traced or found a trace."""
        return self._past_calls + len(self._counters) + sum([counter[0] for counter in list(self._counters.values())])

    def recent_traces(self) -> int:
        """To be asked once for each call that traced: how many of the last ten calls did so.

        The first trace after the cache was cleared is not counted: whoever clears it has asked for that one.
        """
        calls = self.calls
        if not (self.cleared and self.made_since_clearing == 1):
            self._traced_at.append(calls)
        return sum(call > calls - WINDOW for call in self._traced_at)


def _is_dead(key: Key) -> bool:
    return any(part.is_dead for part in key.parts)


def _is_relaxed(key: Key) -> bool:
    """Whether all parts are tensors, some of unknown sizes: then nothing of the user's is in the key."""
    return all(isinstance(part, TensorPart) for part in key.parts) and any(part.has_unknown_sizes for part in key.parts)


def _values(key: Key) -> str:
    """The whole numbers of a key, among which some hash alike."""
    return " ".join([str(part.value) for part in key.parts if isinstance(part, ValuePart) and part.kind is int])


def objects_of(key: Key) -> tuple[Identity, ...]:
    """The objects that a key has by identity, without variables."""
    return tuple([part.identity for part in key.parts if isinstance(part, ObjectPart)])


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"

"""The trace cache: concrete functions by key, with the history that explains them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any, Final

from limelight.staging.cache_history import Ghost, History
from limelight.staging.key import Key, LookupKey

_MOST: Final = 512
"""How many calls of other sizes are remembered, so that they find their trace at once; then all are forgotten."""


class Uses(list[int]):
    """The hits of one entry in a bounded cache, as a list of one number, and `used`: when the latest of them was.

    Counting a hit is what notes the time, so that only bounded caches pay for it.
    """

    __slots__ = ("_clock", "used")

    def __init__(self, clock: Iterator[int]) -> None:
        super().__init__([0])
        self._clock = clock
        self.used = next(clock)

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        self.used = next(self._clock)


class TraceCache:
    """Traces by key, in the order in which they were made; of more than `size`, the one not used for longest goes.

    A key whose weakly held objects have died can never be found again; its entry goes at the next insertion. Looking
    up takes no lock: a call that has found its entry runs it, whatever becomes of the cache meanwhile.
    """

    def __init__(self, size: int | None = None) -> None:
        self.size = size
        self._lock = threading.RLock()  # of changes; code of the user's may run in the middle of one, when objects die
        self._clock = itertools.count()
        self._entries: dict[Key, Any] = {}
        self._relaxed: list[tuple[Key, Any]] = []  # keys with unknown sizes, which serve many calls
        self._covered: dict[LookupKey, Any] = {}  # what `find` found among them; another dictionary after any change
        self._order: list[Any] = []
        self.plain: dict[tuple[Any, ...], Any] = {}
        """What `find` would find for the commonest calls, by `key.plain_types`; another one after any change.

        A call that was under way at the change writes to the former one, where it does no harm."""
        self.history = History()

    def find(self, key: LookupKey) -> Any:
        """The entry for `key`, exact or relaxed; None on a miss. Raises TypeError for an unhashable key."""
        covered, relaxed = self._covered, self._relaxed
        found = self._entries.get(key)  # type: ignore[call-overload]  # equal to the typed key that it stands for
        if found is None and relaxed:
            found = covered.get(key)
            if found is None:
                asked = key.typed()
                found = next((entry for wider, entry in relaxed if wider.covers(asked)), None)
                if found is not None:
                    remember(covered, key, found)
        return found

    def add(self, key: Key, entry: Any) -> None:
        with self._lock:
            replaced = self._entries.get(key)
            self._drop([e for known, e in self._entries.items() if e is replaced or _is_dead(known)])
            if self.size is not None:
                entry.counter = Uses(self._clock)
            self._entries[key] = entry
            self._order.append(entry)
            self.history.enter(entry)
            if any(part.has_open_sizes for part in key.parts):
                self._relaxed = [*self._relaxed, (key, entry)]
            if self.size is not None and len(self._order) > self.size:
                self._drop([self._oldest()], "evicted")
            self.forget_finds()

    def lost(self, key: Key) -> Ghost | None:
        """The latest trace that a call with `key` would have found, and that was evicted or cleared."""
        return self.history.ghost(key)

    @property
    def next_to_go(self) -> Any:
        """The entry that gives way to the next new one; None while there is room, or no bound."""
        with self._lock:
            return None if self.size is None or len(self._order) < self.size else self._oldest()

    def clear(self) -> None:
        with self._lock:
            self.history.start_again()
            self._drop(self._order, "cleared")
            self.forget_finds()

    def forget_finds(self) -> None:
        """Forgets the short ways to entries, so that the next calls look them up by their whole keys."""
        self.plain = {}
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

    def _oldest(self) -> Any:
        return min(self._order, key=lambda entry: entry.counter.used)

    def _drop(self, entries: list[Any], why: str = "") -> None:
        """Takes entries out. Tables are replaced rather than changed, since other threads may be reading them."""
        gone = {id(entry) for entry in entries}
        self._entries = {key: entry for key, entry in self._entries.items() if id(entry) not in gone}
        self._relaxed = [(key, entry) for key, entry in self._relaxed if id(entry) not in gone]
        self._order = [entry for entry in self._order if id(entry) not in gone]
        for entry in entries:
            self.history.leave(entry, why)


def remember(table: dict[Any, Any], key: Any, entry: Any) -> None:
    """Notes in one of the tables of `TraceCache` what a call has found."""
    if len(table) >= _MOST:
        table.clear()
    table[key] = entry


def _is_dead(key: Key) -> bool:
    return any(part.is_dead for part in key.parts)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"

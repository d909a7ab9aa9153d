"""The trace cache: concrete functions by key, with the history that explains them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from limelight import shapes
from limelight.staging.history import History
from limelight.staging.signature import Identity, Key

_MOST: Final = 512
"""How many calls of other sizes are remembered, so that they find their trace at once; then all are forgotten."""


class TraceCache:
    """Traces by key, in the order in which they were made.

    A key whose weakly held objects have died can never be found again; its entry goes at the next insertion.
    """

    def __init__(self) -> None:
        self._entries: dict[Key, Any] = {}
        self._relaxed: list[tuple[Key, Any]] = []  # keys with unknown sizes, which serve many calls
        self._covered: dict[Key, Any] = {}  # what `find` found among them; emptied at any change
        self._order: list[Any] = []
        self.plain: dict[tuple[Any, ...], Any] = {}
        """What `find` would find for the commonest calls, by `signature.plain_types`; emptied at any change."""
        self.history = History()

    def find(self, key: Key) -> Any:
        """The entry for `key`, exact or relaxed; None on a miss. Raises TypeError for an unhashable key."""
        found = self._entries.get(key)
        if found is None and self._relaxed:
            found = self._covered.get(key)
            if found is None:
                found = next((entry for relaxed, entry in self._relaxed if covers(relaxed, key)), None)
                if found is not None:
                    _remember(self._covered, key, found)
        return found

    def find_plainly(self, types: tuple[Any, ...], entry: Any) -> None:
        """Remembers that calls of these `signature.plain_types` find `entry`."""
        _remember(self.plain, types, entry)

    def add(self, key: Key, entry: Any) -> None:
        self._drop_dead()
        self._forget()
        self._entries[key] = entry
        self._order.append(entry)
        self.history.enter(entry)
        if any(part[0] == "tensor" and None in part[2] for part in key.parts):
            self._relaxed.append((key, entry))

    def clear(self) -> None:
        self.history.clear(self._order)
        self._forget()
        self._entries.clear()
        self._relaxed.clear()
        self._order.clear()

    def __iter__(self) -> Iterator[Any]:
        return iter(tuple(self._order))

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: int) -> Any:
        return self._order[index]

    def __repr__(self) -> str:
        hits = sum(entry.hits for entry in self._order)
        return f"<trace cache: {_counted(len(self), 'trace')}, {_counted(hits, 'hit')}>"

    def _forget(self) -> None:
        self.plain.clear()
        self._covered.clear()

    def _drop_dead(self) -> None:
        for key in [key for key in self._entries if _is_dead(key)]:
            entry = self._entries.pop(key)
            if entry in self._order and entry not in self._entries.values():
                self._order.remove(entry)
                self.history.leave(entry)
        self._relaxed = [(key, entry) for key, entry in self._relaxed if not _is_dead(key)]


def _remember(table: dict[Any, Any], key: Any, entry: Any) -> None:
    if len(table) >= _MOST:
        table.clear()
    table[key] = entry


def _is_dead(key: Key) -> bool:
    return any(isinstance(part[-1], Identity) and part[-1].ref() is None for part in key.parts)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def covers(relaxed: Key, key: Key) -> bool:
    """Whether a trace for `relaxed`, whose shapes may have unknown sizes, serves a call with `key`."""
    if relaxed.structure != key.structure or relaxed.device is not key.device or len(relaxed.parts) != len(key.parts):
        return False
    return all(map(_part_covers, relaxed.parts, key.parts))


def _part_covers(relaxed: tuple[Any, ...], part: tuple[Any, ...]) -> bool:
    if relaxed[0] == "tensor" and part[0] == "tensor" and None in relaxed[2]:
        return relaxed[1] == part[1] and relaxed[3:] == part[3:] and shapes.compatible(part[2], relaxed[2])
    return bool(relaxed == part)


def generalise(key: Key, seen: Key) -> Key | None:
    """The key that serves both calls with some sizes unknown, None when they differ in more than sizes."""
    if seen.structure != key.structure or seen.device is not key.device or len(seen.parts) != len(key.parts):
        return None
    merged = []
    for old, new in zip(seen.parts, key.parts, strict=True):
        if old == new:
            merged.append(new)
            continue
        if old[0] != "tensor" or new[0] != "tensor" or old[1] != new[1] or old[3:] != new[3:]:
            return None
        shape = shapes.generalise(old[2], new[2])
        if shape is None:
            return None
        merged.append(("tensor", new[1], shape, *new[3:]))
    return Key(tuple(merged), key.structure, key.device)

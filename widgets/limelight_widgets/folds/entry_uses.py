"""When entries of a trace cache were used, as far as somebody looked: the engine counts hits, and notes no times."""

from __future__ import annotations

import time
from typing import Final

SECONDS: Final = 60
"""Of use that are told, each by its hits."""

Entry = tuple[int, int]
"""A function's id, and the number of a trace of it."""


class EntryUses:
    """Notes hits as they are seen to rise.

    >>> uses = EntryUses()
    >>> uses.seen((1, 0), 3, watched=False) is None  # since before anybody looked
    True
    >>> uses.seen((1, 0), 5, watched=True) is None
    False
    >>> uses.pace()[-1]
    2
    """

    def __init__(self) -> None:
        self._hits: dict[Entry, int] = {}
        self._last: dict[Entry, float | None] = {}
        self._in_second: dict[int, int] = {}

    def seen(self, entry: Entry, hits: int, *, watched: bool) -> float | None:
        """The time of the latest use, in seconds since 1970, as far as it is known, now that an entry has so many hits.

        Args:
            entry: which one.
            hits: how often it was used so far.
            watched: whether somebody has looked ever since the hits were seen last.
        """
        before = self._hits.get(entry)
        if before != hits:
            self._hits[entry] = hits
            now = time.time()
            self._last[entry] = now if watched else None
            if watched and before is not None and hits > before:
                self._count(int(now), hits - before)
        return self._last[entry]

    def forget(self, function_id: int) -> None:
        """Lets go of all entries of a function: their numbers are given again."""
        for entry in [one for one in self._hits if one[0] == function_id]:
            del self._hits[entry], self._last[entry]

    def pace(self) -> list[int]:
        """The hits of each of the last seconds of use; nothing where none were seen."""
        last = max(self._in_second, default=0)
        return [self._in_second.get(last - SECONDS + 1 + i, 0) for i in range(SECONDS)] if self._in_second else []

    def _count(self, second: int, hits: int) -> None:
        self._in_second[second] = self._in_second.get(second, 0) + hits
        for old in [one for one in self._in_second if one <= second - SECONDS]:
            del self._in_second[old]

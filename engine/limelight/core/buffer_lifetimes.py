"""Lifetimes of buffers while somebody listens: which of them were alive at a moment that has passed?"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Final, NamedTuple

from limelight import events
from limelight.user_code.source_line import Source

MOST: Final = 100_000
"""Buffers that are remembered after they have gone, the newest."""


class Lifetime(NamedTuple):
    """A buffer from its birth to its death, in seconds of `time.perf_counter`.

    What was there before anybody listened has no known birth; what is still there has no death.
    """

    born: float
    died: float
    buffer_id: int
    device: str
    nbytes: int
    line: Source | None


class Lifetimes:
    """Follows births and deaths from when it is made, `since`, until it is closed."""

    def __init__(self) -> None:
        self.since = time.perf_counter()
        self._alive: dict[int, Lifetime] = {}
        self._gone: deque[Lifetime] = deque(maxlen=MOST)
        self._lost = -math.inf  # until when some of those that have gone are not remembered
        self._subscription = events.listen(self._hear, events.Allocated, events.Freed)

    def at(self, moment: float) -> tuple[dict[int, Lifetime], list[Lifetime]]:
        """What was born since a moment and lives, by id; and what was alive then and has gone.

        What lives now and is not among the first was alive then, too. Raises LookupError where that is not remembered.
        """
        if moment < self._lost:
            raise LookupError(f"only the last {MOST:,} buffers that have gone are remembered")
        since = {one.buffer_id: one for one in list(self._alive.values()) if one.born > moment}
        return since, [one for one in list(self._gone) if one.born <= moment < one.died]

    def peak(self, device: str | None, now: int) -> float:
        """The moment at which most bytes were alive, counted back from the `now` that are; the latest of several."""
        changes = []
        for one in [*self._gone, *list(self._alive.values())]:
            if device is None or one.device == device:
                changes += [(one.died, -one.nbytes)] if one.died != math.inf else []
                changes += [(one.born, one.nbytes)] if one.born != -math.inf else []
        best, when, live = now, math.inf, now
        changes.sort(reverse=True)
        for i, (_, change) in enumerate(changes):
            live -= change  # what was alive before this change, and after the one before it
            if live > best:
                best, when = live, changes[i + 1][0] if i + 1 < len(changes) else self.since
        return when

    @property
    def closed(self) -> bool:
        """Whether it follows them no longer: what it knows is of the past then."""
        return self._subscription.closed

    def close(self) -> None:
        """Follows them no longer; may be repeated."""
        self._subscription.close()

    def _hear(self, event: events.Event) -> None:
        # No lock: each line is one operation of the interpreter, and a death may interrupt a birth at any of them.
        if isinstance(event, events.Allocated):
            key = event.buffer_id
            self._alive[key] = Lifetime(event.time, math.inf, key, event.device, event.nbytes, event.source)
        elif isinstance(event, events.Freed):
            one = self._alive.pop(event.buffer_id, None)
            born, line = (-math.inf, None) if one is None else (one.born, one.line)
            if len(self._gone) == MOST:
                self._lost = self._gone[0].died
            self._gone.append(Lifetime(born, event.time, event.buffer_id, event.device, event.nbytes, line))

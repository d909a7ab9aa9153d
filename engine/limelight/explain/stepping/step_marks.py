"""Copies between devices and traces of called functions, as they come while a recording is made."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Literal

from limelight import events

Mark = tuple[Literal["copy", "retrace", "shape"], str]
"""What is special about a step, and the same in words, none where the step itself says it."""


class EventMarks:
    """Within its block, what happens on this thread is noted until `take` is called.

    A function that is traced for the first time is not noted: only one that had a trace.
    """

    def __init__(self) -> None:
        self._marks: list[Mark] = []
        self._thread = 0

    def take(self) -> tuple[Mark, ...]:
        """What was noted since the last time."""
        marks = tuple(self._marks)
        self._marks.clear()
        return marks

    def __enter__(self) -> EventMarks:
        self._thread = threading.get_ident()
        self._subscription = events.listen(self._hear, events.Copied, events.CacheMiss)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._subscription.close()

    def _hear(self, event: events.Event) -> None:
        if threading.get_ident() != self._thread:
            return
        if isinstance(event, events.Copied):
            what = f"{event.what}, {event.nbytes:,} bytes, copied"
            self._marks.append(("copy", f"{what} from {event.source_device} to {event.target_device}: {event.cause}"))
        elif isinstance(event, events.CacheMiss) and event.entry:
            self._marks.append(("retrace", event.reason.partition("\n")[0]))

"""A line that says how far a long question has come, and vanishes with its answer."""

from __future__ import annotations

import sys
import time
import uuid
from typing import Any, Final, Self

from limelight import events
from limelight_widgets.live import front_end
from limelight_widgets.live.static_outputs import are_kept, display

_PATIENCE: Final = 1.0
"""Seconds without a line: most questions are answered by then."""
_PACE: Final = 0.2
"""Seconds from one state of the line to the next."""


class ProgressLine:
    """Within its `with` block, how many numbers of a gradient have been compared.

    In a notebook it is an output, empty in the end; in a terminal a line that is written over. Elsewhere there is none:
    a file keeps whatever is written to it.
    """

    def __init__(self) -> None:
        self._shown = ""
        self._display_id = f"ll-progress-{uuid.uuid4().hex}"

    def __enter__(self) -> Self:
        self._next = time.perf_counter() + _PATIENCE
        self._listener = events.listen(self._tell, events.GradientCompared)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        if self._shown:
            self._show("")

    def _tell(self, event: Any) -> None:
        if event.time >= self._next:
            self._next = event.time + _PACE
            self._show(f"{event.done:,} of {event.total:,} numbers compared, now of {event.source_name} …")

    def _show(self, text: str) -> None:
        if are_kept() and front_end.has_front_end():
            display({"text/plain": text}, self._display_id, update=bool(self._shown))
        elif front_end.shell() is not None and not are_kept() and sys.stderr.isatty():
            end = "" if text else "\r"
            sys.stderr.write(f"\r{text:<{len(self._shown)}}{end}")
            sys.stderr.flush()
        self._shown = text

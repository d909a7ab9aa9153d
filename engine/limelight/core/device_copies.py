"""Copies between devices: the one place that makes them, and the ring of the newest.

Each copy is noted, whether anybody listens or not, so that a view that is opened late tells of those before it. A note
takes 10 us, of which nearly all is the search for the user's line: a tenth of the smallest copy.
"""

from __future__ import annotations

import time
from collections import deque
from contextvars import ContextVar
from typing import Any, Final

from limelight import events
from limelight.core import backends, devices
from limelight.core.devices import CPU0, Device
from limelight.core.spec import known
from limelight.errors import DeviceError
from limelight.user_code.source_line import Source

MOST_COPIES: Final = 512
ASKED: Final = ".to()"
"""The cause of a copy that somebody asked for."""
forbidden: Final[ContextVar[bool]] = ContextVar("forbidden", default=False)
"""Whether, in this context, a copy that nobody asked for is an error."""
_recent: Final[deque[events.Copied]] = deque(maxlen=MOST_COPIES)


def copied(data: Any, home: Device, to: Device, cause: str, line: Source | None) -> Any:
    """The payload `data` of a tensor on `home`, as one on `to`.

    Raises DeviceError where copies are forbidden and nobody asked for this one.
    """
    what = str(known(tuple(data.shape), data.dtype)) if hasattr(data, "dtype") else type(data).__name__
    if cause != ASKED and forbidden.get():
        raise DeviceError(
            f"{cause}: {what}, {int(data.nbytes):,} bytes, would be copied from {home.short} to {to.short}, and copies "
            f'are forbidden here; copy it once, before: x = x.to("{to.short}")'
        )
    start = time.perf_counter()
    copy = backends.moved(data, home.backend, to.backend)
    seconds = time.perf_counter() - start
    if to is not CPU0:
        devices.mark_in_use()
    event = events.Copied(home.short, to.short, int(data.nbytes), cause, line, what, seconds)
    _recent.append(event)
    if events.wanted(events.Copied):
        events.emit(event)
    return copy


def forget_copies() -> None:
    """Begins the ring of the newest copies anew."""
    _recent.clear()


def recent_copies() -> tuple[events.Copied, ...]:
    """The newest copies between devices since limelight was imported, at most 512, oldest first."""
    return tuple(_recent)

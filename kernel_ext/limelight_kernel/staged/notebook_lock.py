"""Keeps the threads that call staged cells from seeing what another one has lent to a trace.

While a cell is traced, symbolic tensors stand in the notebook's names, containers and objects. Whoever reads inputs
there, or changes them after a run, waits until they are back; graphs run without waiting. `take` and `give_back` are
those of a lock that its thread may take again: every hit calls them, so they are no Python functions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from limelight import forking

LONGEST: Final = 30.0
"""Seconds to wait: a trace whose code waits for a thread that waits here goes on after these."""
tracers: Final[list[int]] = []
"""The threads that have traced a cell, one for each trace."""
take: Callable[..., bool]
give_back: Callable[[], Any]


def _renew() -> None:
    """Makes the lock: anew in a forked child, where no other thread gives it back."""
    global take, give_back
    lock = threading.RLock()
    take, give_back = lock.acquire, lock.release


def another_has_traced(since: int) -> bool:
    """Whether a thread other than this one has traced since there were so many `tracers`."""
    return any(one != threading.get_ident() for one in tracers[since:])


_renew()
forking.in_child(_renew)

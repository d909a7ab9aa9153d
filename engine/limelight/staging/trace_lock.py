"""The trace lock: one thread traces at a time, and none waits for ever.

One lock is held while any function is traced, so that two functions that trace each other from two threads do not wait
for each other. Running takes no lock, and neither does a call that finds its trace.

A trace may still wait for a thread that has to trace: its Python code starts one and joins it. When no trace has begun
or ended for a minute, that thread gets a RunError, and the trace goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from limelight.errors import RunError

_PATIENCE: Final = 60.0
"""Seconds without any trace beginning or ending, after which a thread gives up waiting for the lock."""
_POLL: Final = 0.002
"""Seconds between two looks of a thread that waits."""


class TraceLock:
    """Held by the thread that traces, for all functions; that thread may take it again for a trace within a trace.

    >>> lock = TraceLock()
    >>> with lock.held_for("f"), lock.held_for("g"):
    ...     lock.tracing
    ['f', 'g']
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.tracing: list[str] = []  # the functions that are being traced, outermost first
        self.owner: int | None = None  # the thread that holds the lock
        self.changes = 0  # traces begun or ended

    @contextmanager
    def held_for(self, name: str) -> Iterator[None]:
        """A block in which this thread may trace the function `name`; raises RunError when it waits in vain."""
        self._wait(name)
        with self.lock:  # the lock's own `with`, which no interrupt can leave half done
            depth, before = len(self.tracing), self.owner
            try:
                self.owner = threading.get_ident()
                self.tracing.append(name)
                self.changes += 1
                yield
            finally:
                try:
                    self._restore(depth, before)
                except KeyboardInterrupt:
                    self._restore(depth, before)
                    raise

    def _restore(self, depth: int, owner: int | None) -> None:
        """Ends the trace at `depth`; an interrupt in the middle has it called again."""
        del self.tracing[depth:]
        self.owner = owner
        self.changes += 1

    def _wait(self, name: str) -> None:
        """Returns when no other thread holds the lock. It only looks: a lock taken here could be left behind."""
        changes, since = self.changes, time.monotonic()
        while self.owner not in (None, threading.get_ident()):
            time.sleep(_POLL)
            now = time.monotonic()  # before it looks at the changes: none that it sees was made later
            if changes != self.changes:
                changes, since = self.changes, now
            if now - since > _PATIENCE:
                raise RunError(_in_vain(name, (self.tracing or ["a function"])[-1]))


def _in_vain(name: str, other: str) -> str:
    return (
        f"{name} has no trace for these arguments and waited {_PATIENCE:g} s in vain for its turn: one thread traces "
        f"at a time, and another one is still tracing {other}. If that trace waits for this thread (joins it, or waits "
        f"for its result), neither can go on: call {name} once with such arguments before, or start the thread outside "
        "the staged function, or in ll.py_func, which runs with the graph"
    )

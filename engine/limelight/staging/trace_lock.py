"""The trace lock: one thread traces at a time, and none waits for ever.

One lock is held while any function is traced, so that two functions that trace each other from two threads do not wait
for each other. Running takes no lock, and neither does a call that finds its trace.

A trace may still wait for a thread that has to trace: its Python code starts one and joins it. When no trace has begun
or ended for a minute, that thread gets a RunError, and the trace goes on.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any, Final

from limelight.errors import RunError
from limelight.with_blocks import Block

_PATIENCE: Final = 60.0
"""Seconds without any trace beginning or ending, after which a thread gives up waiting for the lock."""
_POLL: Final = 0.002
"""Seconds between two looks of a thread that waits."""


class TraceLock:
    """Held by the thread that traces, for all functions; that thread may take it again for a trace within a trace.

    To be taken by one `with` statement, lock first: a lock's own `__exit__` is not Python's, so no interrupt keeps it
    from running.

    >>> trace_lock = TraceLock()
    >>> with trace_lock.turn("f"), trace_lock.tracing_of("f"):
    ...     trace_lock.tracing
    ['f']
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.tracing: list[str] = []  # the functions that are being traced, outermost first
        self.owner: int | None = None  # the thread that holds the lock
        self.block: Block | None = None  # that of its outermost trace
        self.changes = 0  # traces begun or ended

    def turn(self, name: str) -> Any:
        """The lock, when no other thread holds it; raises RunError where the function `name` waits in vain."""
        self._wait(name)
        return self.lock

    def tracing_of(self, name: str) -> _Turn:
        """A block in which this thread, which holds the lock, traces the function `name`."""
        return _Turn(self, name)

    def is_taken(self) -> bool:
        """Whether a function is being traced, by any thread."""
        return self.owner is not None and not (self.block is not None and self.block.is_over)

    def renew(self) -> None:
        """In a process that has just been forked: the thread that holds the lock may not be in it."""
        if self.owner != threading.get_ident():  # else this very thread traces, and goes on
            self.__init__()  # type: ignore[misc]

    def _wait(self, name: str) -> None:
        """Returns when no other thread holds the lock. It only looks: a lock taken here could be left behind."""
        changes, since = self.changes, time.monotonic()
        while self.owner != threading.get_ident() and self.is_taken():
            time.sleep(_POLL)
            now = time.monotonic()  # before it looks at the changes: none that it sees was made later
            if changes != self.changes:
                changes, since = self.changes, now
            if now - since > _PATIENCE:
                raise RunError(_in_vain(name, (self.tracing or ["a function"])[-1]))


class _Turn:
    """One function being traced. What an interrupt has kept another one from ending, the next outermost one ends."""

    def __init__(self, lock: TraceLock, name: str) -> None:
        self._lock = lock
        self._name = name

    def __enter__(self) -> None:
        lock, block = self._lock, Block(sys._getframe(1))
        if lock.owner != threading.get_ident() or not lock.is_taken():
            lock.tracing.clear()
        self._depth = len(lock.tracing)
        if not self._depth:
            lock.owner, lock.block = threading.get_ident(), block
        lock.tracing.append(self._name)
        lock.changes += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        lock = self._lock
        del lock.tracing[self._depth :]
        if not self._depth:
            lock.owner = lock.block = None
        lock.changes += 1


def _in_vain(name: str, other: str) -> str:
    return (
        f"{name} has no trace for these arguments and waited {_PATIENCE:g} s in vain for its turn: one thread traces "
        f"at a time, and another one is still tracing {other}. If that trace waits for this thread (joins it, or waits "
        f"for its result), neither can go on: call {name} once with such arguments before, or start the thread outside "
        "the staged function, or in ll.py_func, which runs with the graph"
    )

"""One trace at a time, and no waiting for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from limelight.errors import RunError

_PATIENCE: Final = 60.0
"""Seconds without any trace beginning or ending, after which a thread does not wait for its turn any longer."""
_LOOK: Final = 0.002
"""Seconds between two looks of a thread that waits."""


class Turns:
    """Who may trace: one thread for all functions, so that two that trace each other from two threads get on.

    A trace may itself wait for a thread, which asks for its turn in vain; that thread is told so, with a RunError.

    >>> turns = Turns()
    >>> with turns.take("f"), turns.take("g"):
    ...     turns.tracing
    ['f', 'g']
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.tracing: list[str] = []  # the functions whose turn it is, outermost first
        self.owner: int | None = None  # the thread whose turn it is
        self.passed = 0  # turns begun or ended

    @contextmanager
    def take(self, name: str) -> Iterator[None]:
        """A block in which this thread may trace the function `name`; raises RunError when it never comes to that."""
        self._wait(name)
        with self.lock:  # the lock's own `with`, which no interrupt can leave half done
            outside, before = len(self.tracing), self.owner
            try:
                self.owner = threading.get_ident()
                self.tracing.append(name)
                self.passed += 1
                yield
            finally:
                try:
                    self._end(outside, before)
                except KeyboardInterrupt:
                    self._end(outside, before)
                    raise

    def _end(self, outside: int, before: int | None) -> None:
        """The turn is over; an interrupt in the middle has it called again."""
        del self.tracing[outside:]
        self.owner = before
        self.passed += 1

    def _wait(self, name: str) -> None:
        """Returns when no other thread has its turn. It only looks: a lock taken here could be left behind."""
        since, passed = time.monotonic(), self.passed
        while self.owner not in (None, threading.get_ident()):
            time.sleep(_LOOK)
            if passed != self.passed:
                since, passed = time.monotonic(), self.passed
            if time.monotonic() - since > _PATIENCE:
                raise RunError(_stuck(name, (self.tracing or ["a function"])[-1]))


def _stuck(name: str, other: str) -> str:
    return (
        f"{name} has no trace for these arguments and waited {_PATIENCE:g} s in vain for its turn: one thread traces "
        f"at a time, and another one is still tracing {other}. If that trace waits for this thread (joins it, or waits "
        f"for its result), neither can go on: call {name} once with such arguments before, or start the thread outside "
        "the staged function, or in ll.py_func, which runs with the graph"
    )

"""One trace at a time, and no waiting for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from limelight.errors import RunError

_PATIENCE: Final = 60.0
"""Seconds without any trace beginning or ending, after which a thread does not wait for its turn any longer."""


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
        self.passed = 0  # turns begun or ended

    @contextmanager
    def take(self, name: str) -> Iterator[None]:
        """A block in which this thread may trace the function `name`; raises RunError when it never comes to that."""
        self._wait(name)
        with self.lock:  # the lock's own `with`, which no interrupt can leave half done
            outside = len(self.tracing)
            try:
                self.tracing.append(name)
                self.passed += 1
                yield
            finally:
                del self.tracing[outside:]
                self.passed += 1

    def _wait(self, name: str) -> None:
        """Returns when the lock was to be had a moment ago."""
        passed = self.passed
        while not self.lock.acquire(timeout=_PATIENCE):
            if passed == self.passed:
                raise RunError(_stuck(name, (self.tracing or ["a function"])[-1]))
            passed = self.passed
        self.lock.release()


def _stuck(name: str, other: str) -> str:
    return (
        f"{name} has no trace for these arguments and waited {_PATIENCE:g} s in vain for its turn: one thread traces "
        f"at a time, and another one is still tracing {other}. If that trace waits for this thread (joins it, or waits "
        f"for its result), neither can go on: call {name} once with such arguments before, or start the thread outside "
        "the staged function, or in ll.py_func, which runs with the graph"
    )

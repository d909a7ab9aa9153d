"""A setting with a global value and `with` overrides that hold for the current thread and context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")


class Scoped(Generic[T]):
    """A named setting.

    `get()` returns the innermost override of this context, else the global value. Overrides do not reach other
    threads: a new thread starts with the global value.

    >>> verbose = Scoped("verbose", False)
    >>> with verbose.override(True):
    ...     verbose.get()
    True
    >>> verbose.get()
    False
    """

    def __init__(self, name: str, default: T) -> None:
        self.name = name
        self.default = default
        self._value = default
        self._override: ContextVar[T] = ContextVar(name)

    def get(self) -> T:
        return self._override.get(self._value)

    def set_globally(self, value: T) -> T:
        """Sets the global value and returns the previous one."""
        previous, self._value = self._value, value
        return previous

    def replace(self, value: T) -> None:
        """Overrides the value in this context from now on; the caller sees to it that it is put back."""
        self._override.set(value)

    @contextmanager
    def override(self, value: T) -> Iterator[T]:
        token = self._override.set(value)
        try:
            yield value
        finally:
            self._override.reset(token)

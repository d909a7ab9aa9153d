"""A setting with a global value and `with` overrides that hold for the current thread and context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
_NONE: Final = object()
"""Stands for "no override"."""


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
        self._override: ContextVar[Any] = ContextVar(name)

    def get(self) -> T:
        found = self._override.get(_NONE)
        return self._value if found is _NONE else found

    def set_globally(self, value: T) -> T:
        """Sets the global value and returns the previous one."""
        previous, self._value = self._value, value
        return previous

    def replace(self, value: T) -> None:
        """Overrides the value in this context from now on; the caller sees to it that it is put back."""
        self._override.set(value)

    @contextmanager
    def override(self, value: T) -> Iterator[T]:
        outer = self._override.get(_NONE)  # and not a token, which an interrupt could lose
        try:
            self._override.set(value)
            yield value
        finally:
            self._override.set(outer)

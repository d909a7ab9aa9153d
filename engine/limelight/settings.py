"""A setting with a global value and `with` overrides that hold for the current thread and context."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, Final, Generic, TypeVar

from limelight import forking
from limelight.with_blocks import Block

T = TypeVar("T")
_all: Final[list[Scoped[Any]]] = []
_lock = threading.Lock()


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
        self._global: _Override | None = None
        self._innermost: ContextVar[_Override | None] = ContextVar(name, default=None)
        _all.append(self)

    def get(self) -> T:
        override = _in_force(self._innermost.get())
        if override is None and self._global is not None and self._global.has_ended:
            self.withdraw(self._global)
        return self._value if override is None else override.value  # type: ignore[return-value]  # what `override` was given

    def set_globally(self, value: T) -> _Override:
        """Sets the global value; what it returns is for `withdraw`."""
        with _lock:
            self._value, self._global = value, _Override(value, self._global)
            return self._global

    def withdraw(self, mine: _Override) -> None:
        """Undoes one `set_globally`, in any order, from any thread: the newest of the others holds. May be repeated."""
        with _lock:
            mine.end()
            self._global = _in_force(self._global)
            self._value = self.default if self._global is None else self._global.value  # type: ignore[assignment]  # set

    @contextmanager
    def override(self, value: T) -> Iterator[T]:
        """Holds in its block, and in whatever runs before it is left: the body of a `for` loop over a generator, too.

        Overrides may be left in any order: each ends itself only.
        """
        mine = _Override(value, _in_force(self._innermost.get()))
        mine.lasts_for_block_of(sys._getframe(1))
        try:
            self._innermost.set(mine)
            yield value
        finally:
            mine.end()  # all that matters: an interrupt may come after it
            self._innermost.set(_in_force(self._innermost.get()))

    def innermost(self) -> _Override | None:
        """The override in force, for `restore`."""
        return _in_force(self._innermost.get())

    def restore(self, to: _Override | None) -> None:
        """Ends the overrides that have been entered since `to` was the innermost."""
        older = []
        while to is not None:
            older.append(to)
            to = to.before
        override = self._innermost.get()
        while override is not None and override not in older:
            override.end()
            override = override.before
        self._innermost.set(_in_force(override))


class _Override:
    """One override of a setting, and the one that held before it."""

    __slots__ = ("before", "block", "ended", "value")

    def __init__(self, value: object, before: _Override | None) -> None:
        self.value = value
        self.before = before
        self.ended = False
        self.block: Block | None = None

    def lasts_for_block_of(self, frame: FrameType) -> None:
        """It ends with the `with` block that the code of `frame` is about to begin, at the latest."""
        self.block = Block(frame)

    def end(self) -> None:
        self.ended = True
        self.block = None

    @property
    def has_ended(self) -> bool:
        return self.ended or (self.block is not None and self.block.is_over_here)


def _in_force(override: _Override | None) -> _Override | None:
    """The newest of an override and those before it that has not ended; None where the global value holds."""
    while override is not None and override.has_ended:
        override = override.before
    return override


def current_overrides() -> list[tuple[Scoped[Any], _Override | None]]:
    """The innermost override of each setting in this context."""
    return [(setting, setting.innermost()) for setting in _all]


forking.renew_in_child(__name__, "_lock", threading.Lock)

"""A setting with a global value and `with` overrides that hold for the current thread and context."""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from limelight import forking
from limelight.with_blocks import Block, begins_after, block_of

T = TypeVar("T")
_all: Final[list[Scoped[Any]]] = []
_lock = threading.RLock()  # an interrupt may leave it held by its thread


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
        self._global: _Override | None = None
        self._innermost: ContextVar[_Override | None] = ContextVar(name, default=None)
        _all.append(self)

    def get(self) -> T:
        override = _in_force(self._innermost.get())
        if override is None and self._global is not None and self._global.has_ended:
            self.withdraw(self._global)
        override = override or self._global
        return self.default if override is None else override.value  # type: ignore[return-value]  # what it was given

    def set_globally(self, value: T, frame: FrameType | None = None) -> _Override:
        """Sets the global value, for the block that the code of `frame` is about to begin, or for good.

        What it returns is for `withdraw`.
        """
        with _lock:
            mine = _Override(value, self._global, self._innermost)
            mine.block = None if frame is None else block_of(frame)
            self._global = mine
            return mine

    def may_become(self, value: T) -> bool:
        """Whether the global value is `value`, or might be at the end of a block."""
        override = self._global
        while override is not None:
            if not override.ended:
                if override.value == value:
                    return True
                if override.block is None:  # set for good: what was before it does not come back
                    return False
            override = override.before
        return self.default == value

    @property
    def global_block(self) -> Block | None:
        """The block at whose end the global value is withdrawn."""
        return None if self._global is None else self._global.block

    def set_globally_or_later(self, value: T, frame: FrameType) -> _Override | None:
        """`set_globally`, for good; None where `frame` enters what it is just calling as a block: that sets it then."""
        return None if begins_after(frame) else self.set_globally(value)

    def set_for_block(self, value: T, mine: _Override | None, frame: FrameType) -> _Override:
        """What `set_globally_or_later` has set, for the block that the code of `frame` is about to begin only."""
        if mine is None or mine.ended:
            return self.set_globally(value, frame)
        mine.lasts_for_block_of(frame)
        return mine

    def withdraw(self, mine: _Override) -> None:
        """Undoes one `set_globally`, in any order, from any thread: the newest of the others holds. May be repeated."""
        with _lock:
            mine.end()
            self._global = _in_force(self._global)

    def override(self, value: T) -> _Override:
        """Holds in its block, and in whatever runs before it is left: the body of a `for` loop over a generator, too.

        Overrides may be left in any order: each ends itself only.
        """
        return _Override(value, None, self._innermost)

    def innermost(self) -> _Override | None:
        """The latest override, which may be over, for `restore`."""
        return self._innermost.get()

    def restore(self, to: _Override | None) -> None:
        """Ends the overrides that have been entered since `to` was the innermost."""
        override = self._innermost.get()
        if override is to:
            return
        older = []
        while to is not None:
            older.append(to)
            to = to.before
        while override is not None and override not in older:
            override.end()
            override = override.before
        self._innermost.set(_in_force(override))


class _Override:
    """One override of a setting, and the one that held before it. One that is not global is entered by `with`."""

    __slots__ = ("_innermost", "before", "block", "ended", "value")

    def __init__(self, value: object, before: _Override | None, innermost: ContextVar[_Override | None]) -> None:
        self.value = value
        self.before = before
        self.ended = False
        self.block: Block | None = None
        self._innermost = innermost

    def __enter__(self) -> Any:
        return self.begin(sys._getframe(1))

    def begin(self, frame: FrameType) -> Any:
        """Holds from now on, for the block that the code of `frame` is about to begin, at the longest."""
        self.before = _in_force(self._innermost.get())
        self.block = block_of(frame)
        self._innermost.set(self)
        return self.value

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.ended = True  # all that matters: an interrupt may come after it
        self.block = None
        self._innermost.set(_in_force(self._innermost.get()))

    def lasts_for_block_of(self, frame: FrameType) -> None:
        """It ends with the `with` block that the code of `frame` is about to begin, at the latest."""
        self.block = block_of(frame)

    def end(self) -> None:
        self.ended = True
        self.block = None

    @property
    def has_ended(self) -> bool:
        return self.ended or (self.block is not None and self.block.is_over_here)


class SettingScope(Generic[T]):
    """A setting made from now on in the whole process, or as a `with` block for what this thread does in the block.

    Args:
        setting: the setting.
        value: its value.
        frame: that of the code that calls, which may enter it as a block.
    """

    def __init__(self, setting: Scoped[T], value: T, frame: FrameType) -> None:
        self._setting = setting
        self._value = value
        self._global_override = setting.set_globally_or_later(value, frame)
        self._blocks: list[_Override] = []

    def __enter__(self) -> Self:
        block = self._setting.override(self._value)
        self._blocks.append(block)
        block.begin(sys._getframe(1))
        if self._global_override is not None:
            self._setting.withdraw(self._global_override)
        return self

    def __exit__(self, *exc: object) -> None:
        self._blocks.pop().__exit__(None, None, None)


def _in_force(override: _Override | None) -> _Override | None:
    """The newest of an override and those before it that has not ended; None where the global value holds."""
    while override is not None and override.has_ended:
        override = override.before
    return override


def current_overrides() -> list[tuple[Scoped[Any], _Override | None]]:
    """The latest override of each setting in this context."""
    return [(setting, setting.innermost()) for setting in _all]


forking.renew_in_child(__name__, "_lock", threading.RLock)

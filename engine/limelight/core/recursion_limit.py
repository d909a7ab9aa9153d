"""The recursion limit, raised for traces and calls nested hundreds of levels deep.

Each level of nested traces, and of nested calls at run time, costs Python 4 to 11 frames. Where there are many levels
the recursion limit is raised for as long as they last, by what they need and up to a bound, so that an endless
recursion still ends with RecursionError instead of a crash.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, TypeVar, cast

from limelight import forking
from limelight.with_blocks import Block, block_of

Run = TypeVar("Run", bound=Callable[..., Any])

USUAL_LEVELS: Final = 20
"""Levels that fit into Python's usual limit of 1,000 frames."""
FRAMES_PER_LEVEL: Final = 12
"""Frames of a level; the most that was measured are 11, for gradients of branches."""
MAX_RAISE: Final = 6000
"""Frames that the limit is raised by at most."""


class _Room:
    """Frames that somebody needs on the stack, for a block, or until they are given back."""

    def __init__(self, frames: int) -> None:
        self.frames = frames
        self.block: Block | None = None

    def __enter__(self) -> None:
        self.block = block_of(sys._getframe(1))
        _limit.make(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _limit.give_back(self)


class _Limit:
    """The recursion limit, which belongs to all threads together."""

    def __init__(self) -> None:
        self._rooms: list[_Room] = []
        self._usual = self._raised = sys.getrecursionlimit()

    def make(self, room: _Room) -> None:
        with _lock:
            if not self._rooms:
                self._usual = self._raised = sys.getrecursionlimit()
            self._rooms.append(room)
            self._set()

    def give_back(self, room: _Room) -> None:
        """May be called again, and does nothing then."""
        with _lock:
            self._rooms = [
                other
                for other in self._rooms
                if other is not room and (other.block is None or not other.block.is_over_here)
            ]
            self._set()
        room.block = None

    def _set(self) -> None:
        if sys.getrecursionlimit() != self._raised:
            return  # somebody else has set it meanwhile
        limit = self._usual + min(sum([room.frames for room in self._rooms]), MAX_RAISE)
        if limit != self._raised:
            with suppress(RecursionError):  # it would be lower than this thread is deep
                sys.setrecursionlimit(limit)
                self._raised = limit


_lock = threading.Lock()
forking.renew_in_child(__name__, "_lock", threading.Lock)
_limit: Final = _Limit()
_thread: Final = threading.local()


class Level:
    """One of several nested traces: it has room on the stack until `close`, which may be called again.

    The depth is put back rather than counted down, and an outermost level begins at none: an interrupt anywhere in
    between, which leaves a level open, is forgotten by the next trace.
    """

    __slots__ = ("_open", "_outer", "_room")

    def __init__(self, outermost: bool = False) -> None:
        self._outer: int = 0 if outermost else getattr(_thread, "levels", 0)
        _thread.levels = self._outer + 1
        self._room = _Room(FRAMES_PER_LEVEL) if _thread.levels > USUAL_LEVELS else None
        self._open = True
        if self._room is not None:
            _limit.make(self._room)

    @property
    def is_outermost(self) -> bool:
        """Whether it is within no other trace."""
        return self._outer == 0

    def close(self) -> None:
        if self._open:
            _thread.levels = self._outer
            if self._room is not None:
                _limit.give_back(self._room)
            self._open = False  # last: an interrupt before it has all of this done again


def with_recursion_room(run: Run, levels: int) -> Run:
    """`run`, with room on the stack for calls nested `levels` deep, where these are many."""
    if levels <= USUAL_LEVELS:
        return run

    @functools.wraps(run)
    def with_room(*operands: Any) -> Any:
        with _Room(levels * FRAMES_PER_LEVEL):
            return run(*operands)

    return cast(Run, with_room)

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
from typing import Any, Final, TypeVar, cast

Run = TypeVar("Run", bound=Callable[..., Any])

USUAL_LEVELS: Final = 20
"""Levels that fit into Python's usual limit of 1,000 frames."""
FRAMES_PER_LEVEL: Final = 12
"""Frames of a level; the most that was measured are 11, for gradients of branches."""
MAX_RAISE: Final = 6000
"""Frames that the limit is raised by at most."""


class _Limit:
    """The recursion limit, which belongs to all threads together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._usual = self._raised = sys.getrecursionlimit()

    def add(self, frames: int) -> None:
        with self._lock:
            if not self._wanted:
                self._usual = self._raised = sys.getrecursionlimit()
            self._wanted += frames
            if sys.getrecursionlimit() != self._raised:
                return  # somebody else has set it meanwhile
            limit = self._usual + min(self._wanted, MAX_RAISE)
            with suppress(RecursionError):  # it would be lower than this thread is deep
                sys.setrecursionlimit(limit)
                self._raised = limit


_limit: Final = _Limit()
_thread: Final = threading.local()


class Level:
    """One of several nested traces: it has room on the stack until `close`, which may be called again.

    The depth is put back rather than counted down, and an outermost level begins at none: an interrupt anywhere in
    between, which leaves a level open, is forgotten by the next trace.
    """

    __slots__ = ("_frames", "_open", "_outer")

    def __init__(self, outermost: bool = False) -> None:
        self._outer: int = 0 if outermost else getattr(_thread, "levels", 0)
        _thread.levels = self._outer + 1
        self._frames = FRAMES_PER_LEVEL if _thread.levels > USUAL_LEVELS else 0
        self._open = True
        if self._frames:
            _limit.add(self._frames)

    def close(self) -> None:
        if self._open:
            _thread.levels = self._outer
            frames, self._frames = self._frames, 0
            if frames:
                _limit.add(-frames)
            self._open = False  # last: an interrupt before it has the depth put back again


def with_recursion_room(run: Run, levels: int) -> Run:
    """`run`, with room on the stack for calls nested `levels` deep, where these are many."""
    if levels <= USUAL_LEVELS:
        return run

    @functools.wraps(run)
    def with_room(*operands: Any) -> Any:
        _limit.add(levels * FRAMES_PER_LEVEL)
        try:
            return run(*operands)
        finally:
            _limit.add(-levels * FRAMES_PER_LEVEL)

    return cast(Run, with_room)

"""`prefetch`: a thread makes the next elements while the last one is used.

The thread knows the buffer and the source's cursor, never the cursor that reads from it; so it ends when that is gone,
at the end of the program, and when its elements have ended. What it raises is raised where the element was asked for.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from typing import Any, NamedTuple

from limelight.core import shapes
from limelight.data.element import Element
from limelight.data.epoch import Epoch
from limelight.data.stage import END, Cursor, End, Stage, State
from limelight.errors import ArgumentError


class Prefetch(Stage):
    """The elements of a source, made ahead."""

    name = "prefetch"
    keeps_elements = True

    def __init__(self, source: Stage, ahead: int) -> None:
        super().__init__(source)
        self.ahead = shapes.whole("prefetch", "the number of elements", ahead)
        if self.ahead < 1:
            raise ArgumentError(f"prefetch: at least one element is made ahead, got {ahead}")
        self.settings = str(ahead)

    @property
    def size(self) -> float | None:
        return self.sources[0].size

    def cursor(self, epoch: Epoch) -> Cursor:
        return _Prefetching(self.sources[0], epoch, self.ahead)


class _Made(NamedTuple):
    """What the thread hands over: an element or what was raised; `place` steps after the source was at `position`."""

    element: Any
    position: State
    place: int
    error: BaseException | None = None


class _Buffer:
    """Up to `most` elements on their way from one thread to another."""

    def __init__(self, most: int) -> None:
        self._items: deque[_Made] = deque()
        self._most = most
        self._change = threading.Condition()
        self._closed = False

    def put(self, item: _Made) -> bool:
        """Waits for room; whether there is anybody left who wants more."""
        with self._change:
            self._change.wait_for(lambda: self._closed or len(self._items) < self._most)
            self._items.append(item)
            self._change.notify_all()
            return not self._closed

    def get(self) -> _Made:
        with self._change:
            self._change.wait_for(lambda: self._items)
            item = self._items.popleft()
            self._change.notify_all()
            return item

    def close(self) -> None:
        with self._change:
            self._closed = True
            self._change.notify_all()


def _work(source: Cursor, buffer: _Buffer, every: int) -> None:
    place, position = 0, source.state()
    wanted = True
    while wanted:
        try:
            if place == every:
                place, position = 0, source.state()
            item = _Made(source.next(), position, place)
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is the consumer's
            item = _Made(END, position, place, error)
        wanted = buffer.put(item) and not isinstance(item.element, End)
        place += 1
        del item


def _end(buffer: _Buffer, thread: threading.Thread) -> None:
    """Ends the thread; one that is in the middle of a user's code is waited for only so long."""
    buffer.close()
    if thread.is_alive() and thread is not threading.current_thread():
        thread.join(timeout=2.0)


class _Prefetching(Cursor):
    """Its position is one of the source, and how many elements further it is than that."""

    def __init__(self, stage: Stage, epoch: Epoch, ahead: int) -> None:
        self._stage, self._epoch, self._ahead = stage, epoch, ahead
        self._buffer: _Buffer | None = None
        self._process = os.getpid()
        self._start: State = None  # where the source begins; None for the start
        self._further = 0
        self._last: _Made | None = None
        self._ended = False

    def _begin(self) -> _Buffer:
        source = self._stage.cursor(self._epoch.below())
        if self._start is not None:
            source.restore(self._start)
        source.skip(self._further)
        buffer = _Buffer(self._ahead)
        thread = threading.Thread(
            target=_work, args=(source, buffer, self._ahead), name="limelight-prefetch", daemon=True
        )
        thread.start()
        weakref.finalize(self, _end, buffer, thread)
        return buffer

    def next(self) -> Element | End:
        if self._ended:
            return END
        if self._buffer is None or self._process != os.getpid():  # in a forked process there is no such thread
            self._process = os.getpid()
            self._buffer = self._begin()
        made = self._buffer.get()
        if made.error is not None:
            self._ended = True
            raise made.error
        self._start, self._further = made.position, made.place + 1
        if isinstance(made.element, End):
            self._ended, self._further = True, made.place
            return END
        element: Element = made.element
        return element

    def state(self) -> State:
        if self._start is None:
            self._start = self._stage.cursor(self._epoch.below()).state()
        return {"source": self._start, "further": self._further}

    def restore(self, state: State) -> None:
        self._start, self._further = state["source"], int(state["further"])

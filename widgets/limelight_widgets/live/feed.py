"""From events to updates of an open view: gathered while they come, sent at most 20 times a second, the last always.

`Feed` listens only while its view is open. On the engine's thread it does next to nothing: it puts the event into a
queue. A thread of its own folds and sends; it lives only as long as there is something to send. `views.view` describes
the whole way of an event, of which these are the first steps.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from limelight import events, forking
from limelight_widgets.folds.fold import Fold, State

INTERVAL = 0.05  # seconds between two updates
SLOW_INTERVAL = 1.0  # while the front end lags behind
LOOK = 0.1  # seconds between two looks at what sends no events
LINGER = 4  # times that the thread looks in vain for more before it ends

F = TypeVar("F", bound=Fold)


class Pulse:
    """Calls `beat` soon after `wake`, on a thread of its own, at most once per interval.

    Args:
        beat: does the work; returns the seconds to wait before the next beat.
        settle: called when there has been no work for a while, before the thread ends.
        pending: whether there is work.
        stays: whether it goes on, and beats every `LOOK` seconds, although there is none: to look for itself.
    """

    def __init__(
        self,
        beat: Callable[[], float],
        settle: Callable[[], object],
        pending: Callable[[], bool],
        stays: Callable[[], bool] = lambda: False,
    ) -> None:
        self._beat = beat
        self._settle = settle
        self._pending = pending
        self._stays = stays
        self._lock = threading.Lock()
        self._hurried = threading.Event()
        self.running = False

    def wake(self) -> None:
        """There is work. Needs to be called only where `running` is false: a running thread looks for itself."""
        with self._lock:
            if not self.running:
                self.running = True
                threading.Thread(target=self._run, name="limelight-view", daemon=True).start()

    def forked(self) -> None:
        """In a forked process: its thread is not in it, and may have held the lock."""
        self._lock, self._hurried, self.running = threading.Lock(), threading.Event(), False

    def hurry(self) -> None:
        """Cuts the present wait short, so that the thread can end."""
        self._hurried.set()

    def _run(self) -> None:
        idle = 0
        while idle <= LINGER or self._stays():
            looks = idle > LINGER
            wait = self._beat() if looks or self._pending() else INTERVAL
            wait = max(wait, LOOK) if looks else wait
            self._hurried.wait(wait)
            self._hurried.clear()
            idle = 0 if self._pending() else idle + 1
        self._settle()
        self.running = False
        # What came before the line above found the thread running and started no other.
        if self._pending():
            self.wake()


class Feed(Generic[F]):
    """Keeps a fold up to date while it is open, and publishes what changed.

    Args:
        fold: used by one thread at a time.
        publish: called with the fold on the feed's thread (or on that of `flush`); returns the seconds to wait before
            it wants to be called again.
        followed: told when it opens and when it closes.
        looks: whether the fold is to be refreshed all the time, since what it shows sends no events.
        refresh: called before each publication, to compare the fold with the engine's own accounts; its second argument
            says whether there is time for it, because nothing is going on or somebody asked.
    """

    def __init__(
        self,
        fold: F,
        publish: Callable[[F], float],
        refresh: Callable[[F, bool], None] | None = None,
        *,
        looks: bool = False,
        followed: Callable[[bool], None] = lambda on: None,
    ) -> None:
        self.fold = fold
        self._followed = followed
        self._looks = looks
        self._publish = publish
        self._refresh = refresh
        self._queue: deque[events.Event] = deque()
        self._dirty = False
        self._lock = threading.RLock()
        self._subscription: events.Subscription | None = None
        self._pulse = Pulse(self._beat, lambda: self._beat(settled=True), self._has_work, self._goes_on)
        _alive.add(self)

    @property
    def is_open(self) -> bool:
        return self._subscription is not None

    def open(self) -> None:
        """Listens to the fold's events."""
        with self._lock:
            if not self.is_open:
                self._subscription = events.listen(self._on_event, *self.fold.kinds)
                self._followed(True)
                self.fold.catch_up()
                if self._looks:
                    self.poke()

    def close(self) -> None:
        """Stops listening; what has come in is still folded and published."""
        with self._lock:
            if self._subscription is not None:
                self._subscription.close()
                self._subscription = None
                self._followed(False)
                self._pulse.hurry()

    def poke(self) -> None:
        """Publishes soon, whether there were events or not."""
        self._dirty = True
        self._pulse.wake()

    def change(self, action: Callable[[F], object]) -> None:
        """Has `action` change the fold, on any thread, and publishes soon."""
        with self._lock:
            action(self.fold)
        self.poke()

    def read(self, tell: Callable[[F], State] = lambda fold: fold.state()) -> State:
        """The state now, as `tell` reads it from the fold."""
        with self._lock:
            self._fold_queue()
            if not self.is_open:
                self.fold.catch_up()
            if self._refresh is not None:
                self._refresh(self.fold, True)
            return tell(self.fold)

    def snapshot(self, tell: Callable[[F], State] = lambda fold: fold.state()) -> tuple[State, int]:
        """The state now and its mark: what comes after is news to whoever has been given that state."""
        with self._lock:
            return self.read(tell), self.fold.since(0)[1]

    def forked(self) -> None:
        """In a forked process: a thread that has gone may have held the locks."""
        self._lock = threading.RLock()
        self._pulse.forked()

    def _on_event(self, event: events.Event) -> None:
        self._queue.append(event)
        if not self._pulse.running:
            self._pulse.wake()

    def _goes_on(self) -> bool:
        return self._looks and self.is_open

    def _has_work(self) -> bool:
        return self._dirty or bool(self._queue)

    def _beat(self, settled: bool = False) -> float:
        with self._lock:
            self._dirty = False
            try:
                self._fold_queue()
                if self._refresh is not None:
                    self._refresh(self.fold, settled)
                return self._publish(self.fold)
            except Exception as error:  # noqa: BLE001  a view that fails must not fail silently, nor again and again
                self._queue.clear()
                self.close()
                warnings.warn(f"a live view stopped: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)
                return 0.0

    def _fold_queue(self) -> None:
        for _ in range(len(self._queue)):
            self.fold.apply(self._queue.popleft())


_alive: Final[weakref.WeakSet[Feed[Any]]] = weakref.WeakSet()


def _renew_locks() -> None:
    for feed in list(_alive):
        feed.forked()


forking.in_child(_renew_locks)

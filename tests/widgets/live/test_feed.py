from __future__ import annotations

import os
import sys
import threading
import time

import pytest

import limelight_widgets
from harness.waiting import until
from limelight import events
from limelight_widgets.live.feed import INTERVAL, SLOW_INTERVAL, Feed


class CountingFold:
    """Counts events; enough of a fold for a feed."""

    kinds = (events.CacheHit,)

    def __init__(self):
        self.seen = []
        self.threads = set()
        self.caught_up = 0

    def apply(self, event):
        self.threads.add(threading.current_thread())
        self.seen.append(event.entry)
        return True

    def catch_up(self):
        self.caught_up += 1

    def state(self):
        return {"seen": len(self.seen)}

    def since(self, mark):
        return ({} if mark == len(self.seen) else self.state()), len(self.seen)


class Sink:
    """Collects what a feed publishes, and what the clock said then."""

    def __init__(self, wait=INTERVAL):
        self.wait = wait
        self.clock = None
        self.states = []
        self.times = []

    def __call__(self, fold):
        self.states.append(len(fold.seen))
        self.times.append(self.clock.now if self.clock else None)
        return self.wait


class Clock:
    """Time for a feed: it passes where the feed waits, and meanwhile events come, each at its time."""

    def __init__(self, feed, times):
        self.now = 0.0
        self.times = list(times)
        feed._pulse._hurried = feed.sink.clock = self
        feed._pulse.running = True  # here, and not on a thread

    def wait(self, seconds):
        self.now += seconds
        while self.times and self.times[0] <= self.now:
            hit(self.times.pop(0))

    def clear(self):
        pass

    set = clear


def hit(entry):
    events.emit(events.CacheHit("f", 1, entry))


def view_threads():
    return [thread for thread in threading.enumerate() if thread.name == "limelight-view"]


@pytest.fixture
def feed():
    sink = Sink()
    feed = Feed(CountingFold(), sink)
    feed.sink = sink
    yield feed
    feed.close()
    until(lambda: not view_threads())


def test_nothing_is_heard_before_it_is_open_and_after_it_is_closed(feed):
    assert not events.wanted(events.CacheHit)
    feed.open()
    assert events.wanted(events.CacheHit)
    hit(0)
    until(lambda: feed.fold.seen == [0])
    feed.close()
    assert not events.wanted(events.CacheHit)
    hit(1)
    assert feed.read() == {"seen": 1}


def test_a_burst_becomes_few_updates_and_the_last_is_not_lost(feed):
    feed.open()
    clock = Clock(feed, [n * 1e-5 for n in range(5_000)])
    feed._pulse._run()
    assert feed.sink.states == [5_000, 5_000]  # when they had come, and when no more did
    assert len(feed.fold.seen) == 5_000
    assert not clock.times
    assert not feed._pulse.running


@pytest.mark.parametrize("wait", [INTERVAL, SLOW_INTERVAL], ids=["as usual", "while the front end lags"])
def test_updates_come_at_most_so_often_while_events_go_on(feed, wait):
    feed.open()
    feed.sink.wait = wait
    Clock(feed, [n * 0.002 for n in range(2_000)])
    feed._pulse._run()
    gaps = [b - a for a, b in zip(feed.sink.times, feed.sink.times[1:], strict=False)]
    assert min(gaps) == pytest.approx(wait)
    assert len(feed.sink.states) <= 2 + 4.0 / wait
    assert feed.sink.states[-1] == 2_000


@pytest.mark.slow  # waits
def test_folding_happens_on_a_thread_of_its_own_that_ends_when_idle(feed):
    feed.open()
    hit(0)
    until(lambda: feed.fold.seen == [0])
    assert threading.current_thread() not in feed.fold.threads
    until(lambda: not view_threads())
    hit(1)
    until(lambda: feed.sink.states[-1] == 2)


@pytest.mark.slow  # waits between bursts
def test_no_event_is_lost_between_bursts(feed):
    """The moment at which the thread ends is when an event could be forgotten."""
    feed.open()
    for n in range(60):
        hit(n)
        time.sleep(0.255 + (n % 9 - 4) * 0.001 if n % 10 == 0 else 0.003)
    until(lambda: feed.sink.states[-1] == 60)


def test_events_of_many_threads_all_arrive(feed):
    feed.open()
    threads = [threading.Thread(target=lambda: [hit(0) for _ in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: feed.sink.states and feed.sink.states[-1] == 4_000)


def test_reading_needs_no_thread_and_takes_in_what_has_come(feed):
    feed.sink.wait = 1.0  # a publisher that is in no hurry
    feed.open()
    for n in range(10):
        hit(n)
    assert feed.read() == {"seen": 10}


def test_opening_again_catches_up(feed):
    feed.open()
    feed.open()
    feed.close()
    feed.open()
    assert feed.fold.caught_up == 2


def test_the_engines_thread_is_hardly_held_up(feed):
    feed.open()
    feed._pulse.running = True
    called, event = [], events.CacheHit("f", 1, 0)
    sys.setprofile(lambda frame, kind, _: called.append(frame.f_code.co_name) if kind == "call" else None)
    try:
        events.emit(event)
    finally:
        sys.setprofile(None)
    assert called == ["emit", "_deliver", "_on_event"]
    feed._pulse.running = False


def test_a_publisher_that_fails_is_reported_once_and_detached():
    def fail(fold):
        raise RuntimeError("no more")

    feed = Feed(CountingFold(), fail)
    feed.open()
    with pytest.warns(RuntimeWarning, match="a live view stopped: RuntimeError: no more"):
        feed._beat()
    assert not events.wanted(events.CacheHit)
    assert not feed.is_open


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_free_locks_and_starts_a_thread_of_its_own():
    """Another thread holds every lock of a view while the process forks, and the feed's own thread is running."""
    fold = CountingFold()
    feed = Feed(fold, Sink())
    view = limelight_widgets.devices()
    begun, end = threading.Event(), threading.Event()

    def hold():
        with feed._lock, feed._pulse._lock, view._lock, view._feed._lock:
            begun.set()
            end.wait(300)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert begun.wait(300)
    feed._pulse.running = True
    child = os.fork()
    if child == 0:
        free = [lock.acquire(timeout=5) for lock in (feed._lock, feed._pulse._lock, view._lock, view._feed._lock)]
        os._exit(0 if all(free) and not feed._pulse.running else 1)
    end.set()
    holder.join(300)
    feed._pulse.running = False
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

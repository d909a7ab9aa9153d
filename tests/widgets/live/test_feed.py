from __future__ import annotations

import threading
import time

import pytest

from limelight import events
from limelight_widgets.live.feed import INTERVAL, Feed


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
    """Collects what a feed publishes, and when."""

    def __init__(self, wait=INTERVAL):
        self.wait = wait
        self.states = []
        self.times = []

    def __call__(self, fold):
        self.states.append(len(fold.seen))
        self.times.append(time.perf_counter())
        return self.wait


def hit(entry):
    events.emit(events.CacheHit("f", 1, entry))


def until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


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
    start = time.perf_counter()
    for n in range(5_000):
        hit(n)
    until(lambda: feed.sink.states and feed.sink.states[-1] == 5_000)
    seconds = time.perf_counter() - start
    assert len(feed.sink.states) <= 2 + seconds / INTERVAL
    assert feed.fold.seen == list(range(5_000))


@pytest.mark.slow  # goes on for a second
def test_updates_come_at_most_twenty_times_a_second_while_events_go_on(feed):
    feed.open()
    start = time.perf_counter()
    n = 0
    while time.perf_counter() < start + 1.0 or len(feed.sink.states) < 5:  # fewer in a second on a busy machine
        hit(n)
        n += 1
        time.sleep(0.002)
    until(lambda: feed.sink.states[-1] == n)
    gaps = [b - a for a, b in zip(feed.sink.times, feed.sink.times[1:], strict=False)]
    assert min(gaps) >= INTERVAL * 0.95
    assert len(feed.sink.states) <= 3 + (time.perf_counter() - start) / INTERVAL


@pytest.mark.slow  # waits
def test_folding_happens_on_a_thread_of_its_own_that_ends_when_idle(feed):
    feed.open()
    hit(0)
    until(lambda: feed.fold.seen == [0])
    assert threading.current_thread() not in feed.fold.threads
    until(lambda: not view_threads())
    published = len(feed.sink.states)
    time.sleep(0.3)
    assert len(feed.sink.states) == published
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
    event = events.CacheHit("f", 1, 0)
    best = min(_seconds_each(event) for _ in range(5))
    assert best < 20e-6, f"an event cost {best * 1e6:.1f} µs"


def _seconds_each(event, count=2_000):
    """Of this thread alone: what the view's thread and other programs do meanwhile does not count."""
    start = time.thread_time()
    for _ in range(count):
        events.emit(event)
    return (time.thread_time() - start) / count


def test_a_publisher_that_fails_is_reported_once_and_detached():
    def fail(fold):
        raise RuntimeError("no more")

    feed = Feed(CountingFold(), fail)
    feed.open()
    with pytest.warns(RuntimeWarning, match="a live view stopped: RuntimeError: no more"):
        feed._beat()
    assert not events.wanted(events.CacheHit)
    assert not feed.is_open

"""Threads that wait for each other while they trace."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight.errors import RunError
from limelight.staging import trace_lock

HANGS = 300
"""Seconds after which something hangs, however busy the machine is."""

Clean = Any  # the fixture of tests/engine/conftest.py

pytestmark = pytest.mark.usefixtures("retraces_are_meant")

x = ll.constant(3.0)


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_lock, "_PATIENCE", 0.3)


def elsewhere(call: Callable[[], Any]) -> Any:
    """What `call` returns or raises in a thread of its own, for which this one waits."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except Exception as error:  # noqa: BLE001  # told to the thread that waits
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(HANGS)
    assert found, "the thread hangs"
    return found[0]


def test_a_trace_that_waits_for_a_thread_that_traces_goes_on(clean: Clean) -> None:
    inner = ll.function(lambda a: a + 1, name="inner")
    seen: list[Any] = []

    @ll.function
    def outer(a: Any) -> Any:
        seen.append(elsewhere(lambda: inner(x)))
        return a * 2

    with clean():
        assert outer(x).item() == 6.0
    assert isinstance(seen[0], RunError)
    assert "inner has no trace for these arguments" in str(seen[0])
    assert "still tracing outer" in str(seen[0])
    assert "test_trace_lock.py line" in str(seen[0])
    assert inner(x).item() == 4.0


def test_a_function_with_a_trace_is_called_from_a_thread_of_a_trace() -> None:
    inner = ll.function(lambda a: a + 1)
    inner(x)
    seen: list[Any] = []

    @ll.function
    def outer(a: Any) -> Any:
        seen.append(elsewhere(lambda: inner(x)))
        return a * 2

    assert outer(x).item() == 6.0
    assert seen[0].item() == 4.0


def test_threads_wait_longer_while_others_trace_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that goes on in traces only, by two thirds of what a thread waits for one of them."""
    clock = Clock()
    monkeypatch.setattr(trace_lock, "time", clock)

    def slow(a: Any) -> Any:
        time.sleep(0.02)  # the others look meanwhile
        clock.now += trace_lock._PATIENCE * 2 / 3
        time.sleep(0.02)
        return a * 2

    functions = [ll.function(slow) for _ in range(8)]
    results: dict[int, float] = {}

    def run(i: int) -> None:
        results[i] = functions[i](x).item()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS)
    assert results == dict.fromkeys(range(8), 6.0)
    assert clock.now > 5 * trace_lock._PATIENCE


class Clock:
    """Time as the lock asks for it."""

    now = 0.0
    sleep = staticmethod(time.sleep)

    def monotonic(self) -> float:
        return self.now


def test_an_error_in_a_trace_ends_its_turn() -> None:
    def fails(a: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ll.function(fails)(x)
    assert elsewhere(lambda: ll.function(lambda a: a * 2)(x)).item() == 6.0

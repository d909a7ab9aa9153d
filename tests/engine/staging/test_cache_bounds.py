"""What a trace cache remembers to be quick stays small, and goes with the traces."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from typing import Any

import pytest

import limelight as ll
from limelight.staging import trace_cache as cache

pytestmark = pytest.mark.usefixtures("retraces_are_meant")


class Config:
    factor = 2.0


def sizes_of(trace_cache: Any) -> dict[str, int]:
    return {name: len(part) for name, part in vars(trace_cache).items() if isinstance(part, (dict, list))}


@pytest.mark.parametrize("way", ["positional", "keyword"])
def test_one_trace_for_all_sizes_does_not_remember_each_size_for_good(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_MAX_SHORTCUTS", 20)
    f = ll.function(lambda a: a * 2, reduce_retracing=True)
    for n in range(1, 100):
        x = ll.ones((n,))
        assert (f(x) if way == "positional" else f(a=x)).shape == (n,)
    assert f.trace_count == 2
    assert max(sizes_of(f.trace_cache).values()) <= 20
    assert sum(entry.hits for entry in f.trace_cache) == 97


def test_plain_values_do_not_lead_to_what_the_cache_has_forgotten() -> None:
    f = ll.function(lambda a: a * 2, reduce_retracing=True)
    for n in range(1, 6):
        f(ll.ones((n,)))
    f.clear_cache()
    assert set(sizes_of(f.trace_cache).values()) == {0}
    f(ll.ones((3,)))
    assert len(f.trace_cache) == 1


@pytest.mark.slow  # collects garbage again and again
def test_a_trace_for_all_sizes_goes_with_the_object_that_it_was_made_for() -> None:
    f = ll.function(lambda a, c: a * c.factor, reduce_retracing=True)
    config, big = Config(), ll.ones((50,))
    for n in range(1, 6):
        f(ll.ones((n,)), config)
    entry = weakref.ref(f.trace_cache[1])
    del config
    gc.collect()
    f(big, Config())
    assert len(f.trace_cache) == 1
    gc.collect()
    assert entry() is None


def test_looking_up_while_others_trace() -> None:
    f = ll.function(lambda a, c: a * c.factor, reduce_retracing=True)
    config = Config()
    for n in range(1, 4):
        f(ll.ones((n,)), config)
    failures: list[Exception] = []
    done = threading.Event()

    def look() -> None:
        for n in itertools.count(4):
            if done.is_set():
                return
            try:
                f(ll.ones((n % 1000,)), config)
            except Exception as error:  # noqa: BLE001  # told to the thread that waits
                failures.append(error)
                return

    threads = [threading.Thread(target=look, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for n in range(40):
            f(ll.ones((1,) * (n % 5 + 2)), Config())
    finally:
        done.set()
    for thread in threads:
        thread.join(300)
    assert failures == []


def test_a_trace_for_this_very_variable_goes_with_it() -> None:
    held = [ll.Variable(2.0)]

    @ll.function
    def f(v: Any) -> Any:
        return v * held[0]

    assert f(held[0]).item() == 4.0
    held[0] = ll.Variable(3.0)
    gc.collect()
    assert f(held[0]).item() == 9.0
    assert len(f.trace_cache) == 1

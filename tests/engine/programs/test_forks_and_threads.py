"""Processes that are forked, and threads that share variables and generators."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core import dispatch

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def in_child(work: Callable[[], Any]) -> str:
    """What `work` returns, as text, in a process that is forked for it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = repr(work())
        except BaseException as error:  # noqa: BLE001  # told to the parent
            answer = repr(error)
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


@pytest.fixture
def busy() -> Iterator[Callable[[Callable[[threading.Event, threading.Event], Any]], None]]:
    """Has a thread do something, up to a point where it waits for the end of the test."""
    begun, end = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def start(work: Callable[[threading.Event, threading.Event], Any]) -> None:
        threads.append(threading.Thread(target=work, args=(begun, end), daemon=True))
        threads[0].start()
        assert begun.wait(300)

    yield start
    end.set()
    threads[0].join(300)


def test_a_child_that_is_forked_during_a_trace_can_trace(busy: Any) -> None:
    def work(begun: threading.Event, end: threading.Event) -> None:
        def slow(x: Any) -> Any:
            with ll.device("cpu:0"), ll.GradientTape():
                begun.set()
                end.wait(300)
            return x

        ll.function(slow)(ll.constant(1.0))

    def trace() -> Any:
        tripled = ll.function(lambda x: x * 3.0)(ll.constant(2.0))
        return tripled.item(), dispatch.active, dispatch.scopes

    busy(work)
    assert in_child(trace) == "(6.0, [], [])"


@pytest.mark.parametrize(
    "lock",
    ["limelight.events", "limelight.settings", "limelight.core.recursion_limit",
     "limelight.staging.trace_cache", "limelight.staging.run_eagerly", "limelight.autograph.transpiler",
     "limelight.ops.random._draws"],
)  # fmt: skip
def test_a_lock_that_another_thread_holds_is_free_in_a_child(lock: str, busy: Any) -> None:
    module: Any = importlib.import_module(lock)

    def work(begun: threading.Event, end: threading.Event) -> None:
        with module._lock:
            begun.set()
            end.wait(300)

    busy(work)
    assert in_child(lambda: module._lock.acquire(blocking=False)) == "True"


def test_a_generator_that_another_thread_draws_from_is_free_in_a_child(busy: Any) -> None:
    generator = ll.random.Generator(1)
    numpys = generator._data.generator.bit_generator.lock

    def work(begun: threading.Event, end: threading.Event) -> None:
        with numpys:
            begun.set()
            end.wait(300)

    expected = ll.random.Generator(1).uniform((2,)).tolist()
    busy(work)
    assert in_child(lambda: generator.uniform((2,)).tolist()) == str(expected)


def test_the_collector_that_another_thread_has_paused_is_on_in_a_child(busy: Any) -> None:
    from limelight.core.collector import collector_paused

    def work(begun: threading.Event, end: threading.Event) -> None:
        with collector_paused():
            begun.set()
            end.wait(300)

    busy(work)
    assert in_child(gc.isenabled) == "True"


def test_children_draw_different_numbers_that_the_seed_determines() -> None:
    draw = ll.function(lambda: ll.random.uniform((3,)))
    draw()

    def drawn() -> list[str]:
        ll.random.seed(3)
        return [in_child(lambda: draw().tolist()) for _ in range(2)] + [str(draw().tolist())]

    first, again = drawn(), drawn()
    assert len(set(first)) == 3
    assert first == again
    mine = ll.random.Generator(3)
    assert in_child(lambda: mine.uniform((3,)).tolist()) == str(mine.uniform((3,)).tolist())


# --- Threads


def in_threads(work: Callable[[], Any], threads: int = 4, times: int = 500) -> list[Any]:
    """Everything that `work` returns, called so often in so many threads, which take turns as often as Python can."""
    results: list[Any] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        workers = [
            threading.Thread(target=lambda: results.extend([work() for _ in range(times)])) for _ in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    return results


def _set_one(v: ll.Variable) -> Callable[[], Any]:
    places = iter(range(10**9))

    def put() -> None:
        v[next(places)] = 1.0

    return put


UPDATES: dict[str, Callable[[ll.Variable], Callable[[], Any]]] = {
    "assign_add": lambda v: lambda: v.assign_add(1.0),
    "assign_sub": lambda v: lambda: v.assign_sub(-1.0),
    "scatter_add": lambda v: lambda: v.scatter_add(list(range(2000)), ll.ones((2000,))),
    "slice": _set_one,
    "staged": lambda v: ll.function(lambda: v.assign_add(1.0)),
    "descent": lambda v: functools.partial(ll.optim.SGD(1.0).apply, [-ll.ones((2000,))], [v]),
}


@pytest.mark.parametrize("name", UPDATES)
def test_threads_lose_no_update(name: str) -> None:
    v = ll.Variable(np.zeros(2000, np.float32))
    times = 40 if name in ("scatter_add", "descent") else 500
    in_threads(UPDATES[name](v), times=times)
    assert v.numpy().tolist() == [1.0 if name == "slice" else 4.0 * times] * 2000


def test_an_update_is_made_again_where_another_thread_was_quicker() -> None:
    v = ll.Variable(1.0)
    meanwhile = iter([lambda: v.assign(10.0)])

    def change(value: Any) -> Any:
        next(meanwhile, lambda: None)()
        return value + 1

    assert v._data.update(change) == 11.0
    assert v.item() == 11.0


def test_threads_draw_different_numbers() -> None:
    generator = ll.random.Generator(0)
    for draw in (generator.uniform, ll.function(lambda: generator.uniform(()))):
        drawn = in_threads(lambda: float(draw()), times=200)  # noqa: B023  # called at once
        assert len(set(drawn)) > len(drawn) - 10  # of 2**24 numbers, some are drawn twice by chance
    children = in_threads(lambda: repr(generator.split(1)), times=50)
    assert len(set(children)) == len(children)

"""`prefetch`: the thread ends with the iterator, and what it raises reaches whoever asks for the element."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import traceback
from typing import Any

import pytest

import limelight as ll


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "limelight-prefetch"]


def test_elements_are_made_ahead_and_no_further() -> None:
    made: list[int] = []
    ready = threading.Semaphore(0)

    def note(x: Any) -> Any:
        made.append(int(x))
        ready.release()
        return x

    iterator = iter(ll.data.from_sequence(range(100)).map(note).prefetch(3))
    next(iterator)
    for _ in range(5):  # the one that was taken, three that wait, and one that waits for room
        ready.acquire()
    assert not ready.acquire(timeout=0.05)
    assert made == [0, 1, 2, 3, 4]
    del iterator
    gc.collect()
    assert not threads()


@pytest.mark.parametrize("end", ["deleted", "ended", "set back", "broken off", "raised"])
def test_the_thread_ends_with_the_iterator(end: str) -> None:
    def checked(x: Any) -> Any:
        if end == "raised" and x == 5:
            raise ValueError("no such picture")
        return x

    iterator = iter(ll.data.from_sequence(range(10)).map(checked).prefetch(2).batch(1))
    start = iterator.get_state()
    next(iterator)
    assert len(threads()) == 1
    if end == "ended":
        list(iterator)
    elif end == "set back":
        iterator.set_state(start)
    elif end == "raised":
        with pytest.raises(ValueError, match="no such picture"):
            list(iterator)
    elif end == "broken off":
        for _ in iterator:
            break
    if end in ("deleted", "broken off"):
        del iterator
    for thread in threads():
        thread.join(timeout=300)
    assert not threads()


def test_an_error_has_the_users_line_and_that_of_the_function() -> None:
    def broken(x: Any) -> Any:
        raise ValueError("no such picture")

    with pytest.raises(ValueError, match="no such picture") as caught:
        next(iter(ll.data.from_sequence(range(3)).map(broken).prefetch()))  # the line of whoever asks
    lines = [frame.line or "" for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "# the line of whoever asks" in lines[0]
    assert 'raise ValueError("no such picture")' in lines[-1]


SCRIPT = """
import sys, threading, limelight as ll

def forever():
    while True:
        yield 1.0

iterator = iter(ll.data.from_generator(forever).prefetch(2))
next(iterator)
{end}
"""


@pytest.mark.slow  # starts interpreters
@pytest.mark.parametrize("end", ["", "raise KeyboardInterrupt", "sys.exit(0)", "raise ValueError"])
def test_a_program_ends_although_a_thread_is_at_work(end: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(end=end)], capture_output=True, text=True, check=False, timeout=60
    )
    assert "Fatal" not in done.stderr
    assert (done.returncode == 0) == (end in ("", "sys.exit(0)"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the thread that prefetches is one
def test_a_forked_process_goes_on_where_its_parent_was() -> None:
    iterator = iter(ll.data.from_sequence(range(10)).shuffle(seed=1).prefetch(2))
    next(iterator)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, bytes([x.item() for x in iterator]))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert list(os.read(reading, 100)) == [x.item() for x in iterator]
    os.close(reading)
    os.close(writing)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # which it is about
def test_a_forked_process_has_free_locks_although_a_thread_held_them() -> None:
    dataset = ll.data.from_sequence(range(10)).cache().shuffle(seed=1)
    iterator = iter(dataset)
    next(iterator)
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with iterator._lock, dataset._lock, dataset._stage.sources[0].lock:
            holding.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(20)  # it ends, should it wait for a lock that nobody holds
        try:
            os.write(writing, bytes([len(list(iterator)), len(list(dataset))]))
        finally:
            os._exit(0)
    done.set()
    thread.join()
    os.waitpid(child, 0)
    os.close(writing)
    assert list(os.read(reading, 100)) == [9, 10]
    os.close(reading)

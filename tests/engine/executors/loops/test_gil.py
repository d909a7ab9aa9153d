"""Tables and the GIL: short runs keep it, long ones let others have it, and nobody waits for ever."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.executors import base
from limelight.executors.loops.native_loops import copy_loop, native, row_loop, ufunc_loop

FLOAT, FLAG, INDEX = (np.dtype(name).num for name in ("f4", "?", "i8"))
NUMBER = (FLAG, (), ())
LONGEST = 300
"""Seconds for what takes one."""


def row(n: int, dtype: str = "f4") -> Any:
    dt = np.dtype(dtype)
    return (dt.num, (n,), (dt.itemsize,))


def added(n: int, dtype: str = "f4") -> Any:
    size = np.dtype(dtype).itemsize
    return (ufunc_loop(np.add, bytes([np.dtype(dtype).num] * 3)), (0, 0, 0, 0, 1, 0), (n,), (size,) * 3, ())


def sums(n: int, *items: Any, dtype: str = "f4", **more: Any) -> Any:
    return native().Table((row(n, dtype),), (), (row(n, dtype),), 0, list(items or [added(n, dtype)]), print, **more)


def released(table: Any, *arrays: np.ndarray) -> int:
    """In how many of three calls others could have the GIL."""
    before = table.released
    for _ in range(3):
        assert type(table(*arrays)) is tuple
    return int(table.released - before)


def test_short_runs_keep_it_and_long_ones_do_not() -> None:
    assert released(sums(100), np.ones(100, "f4")) == 0
    assert released(sums(100, *[added(100)] * 10), np.ones(100, "f4")) == 0
    assert released(sums(100, *[added(100)] * 1000), np.ones(100, "f4")) == 3
    assert released(sums(10_000), np.ones(10_000, "f4")) == 3


def test_what_may_be_slow_counts_for_more() -> None:
    for dtype, wanted in (("f4", 0), ("f8", 0), ("g", 3)):
        assert released(sums(4000, dtype=dtype), np.ones(4000, dtype)) == wanted


@pytest.mark.parametrize(("width", "wanted"), [(1, 0), (100_000, 3)])
def test_rows_count_by_their_bytes(width: int, wanted: int) -> None:
    rows, places = (FLOAT, (4, width), (4 * width, 4)), (INDEX, (2,), (8,))
    flag = (copy_loop(FLAG, FLAG), (2, 0, 4, 0), (1,), (0, 0), ())
    pick = (row_loop("gather", FLOAT, 4 * width), (0, 0, 1, 0, 4, 0, 3, 0), (2, 4), (0, 8, 0, 4 * width, 4 * width), ())
    table = native().Table(
        (rows, places, NUMBER), (), ((FLOAT, (2, width), (4 * width, 4)),), 64, [flag, pick], lambda *arrays: "refused"
    )
    assert released(table, np.ones((4, width), "f4"), np.array([1, 3]), np.True_) == wanted


@pytest.mark.parametrize(("steps", "wanted"), [(3, 0), (10_000, 3)])
def test_loops_keep_it_as_long_as_they_are_short(steps: int, wanted: int) -> None:
    counted = sums(10, ("begin", 0), added(10), ("again", 0, steps, 1), counters=1)
    assert released(counted, np.ones(10, "f4")) == wanted
    with base.chosen.override("loops"):
        f = ll.function(lambda x, n: ll.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x + 1.0), (0, x))[1])
        assert f(ll.zeros((2,)), ll.constant(steps)).tolist() == [steps, steps]
    names = f.trace_cache[0].function.run.__globals__
    assert {x.released > 0 for x in names.values() if type(x).__name__ == "Table"} == {wanted > 0}


def test_blocks_that_threads_share_let_it_go_however_short() -> None:
    n = 2048
    member = ((ufunc_loop(np.add, bytes([FLOAT] * 3)), (0, 0, 0, 0, 1, 0), (64,), (4, 4, 4), ()), (4, 4, 4), (0, 0, 0))
    assert released(sums(n, (64, n, (member,), 2)), np.ones(n, "f4")) == 3


def test_a_thread_beside_short_runs_has_its_turns() -> None:
    table, x = sums(100), np.ones(100, "f4")
    calls, seen = 0, [0]

    def look() -> None:
        while len(seen) < 10:
            if calls != seen[-1]:
                seen.append(calls)

    thread = threading.Thread(target=look)
    thread.start()
    patience = time.monotonic() + LONGEST
    while thread.is_alive():
        table(x)
        calls += 1
        assert time.monotonic() < patience
    assert table.released == 0


def test_an_interrupt_ends_a_loop_of_short_calls() -> None:
    with base.chosen.override("loops"):
        f, x = ll.function(lambda x: x * 2.0 + 1.0), ll.ones((4,))
        f(x)
        timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
        patience = time.monotonic() + LONGEST
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while time.monotonic() < patience:
                f(x)
        timer.join()


TOGETHER = textwrap.dedent("""
    import threading
    import numpy as np
    from limelight.executors.loops.native_loops import native, ufunc_loop

    FLOAT = np.dtype("f4").num

    def table(n, *items):
        row = (FLOAT, (n,), (4,))
        return native().Table((row,), (), (row,), 0, list(items), print)

    def sine(n):
        return (ufunc_loop(np.sin, bytes([FLOAT] * 2)), (0, 0, 1, 0), (n,), (4, 4), ())

    N = 1 << 20
    short = table(100, sine(100))
    shared = table(2048, (64, 2048, ((sine(64), (4, 4), (0, 0)),), 3))
    long = table(N, *[(1024, N, ((sine(1024), (4, 4), (0, 0)),), 3)] * 3)
    done = []

    def work(table, n, times):
        x = np.ones(n, "f4")
        wanted = table(x)[0].tobytes()
        done.append(all(table(x)[0].tobytes() == wanted for _ in range(times)))

    works = [(short, 100, 20_000), (short, 100, 20_000), (shared, 2048, 500), (long, N, 10), (long, N, 10)]
    threads = [threading.Thread(target=work, args=each) for each in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [True] * 5
    assert (short.released, shared.released, long.released) == (0, 501, 22)
    print("done")
""")


def test_short_and_shared_runs_at_once_come_to_an_end() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", TOGETHER], capture_output=True, text=True, timeout=LONGEST, check=False
    )
    assert ended.stdout == "done\n", ended.stderr

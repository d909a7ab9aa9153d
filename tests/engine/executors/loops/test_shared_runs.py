"""Runs of blocks that threads share: the same numbers on any number of them, errors, interrupts, wrong tables."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.executors import base
from limelight.executors.loops import blocks
from limelight.executors.loops.layout import Buffer
from limelight.executors.loops.native_loops import native, ufunc_loop

N = 100_003
FLOAT = np.dtype("f4").num


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    monkeypatch.setattr(blocks, "WORTH", 1)


def on_threads(count: int, function: Any, *operands: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(blocks, "threads", lambda: count)
    with base.chosen.override("loops"):
        return ll.tree.map(lambda x: x.numpy(), ll.function(function)(*operands))


def a_chain(x, y, number):
    z = ll.tanh(x * y + number)
    return ll.where(z > y, ll.exp(-z), ll.astype(ll.astype(z, "float64") * 3.0, "float32")) / (x + 2.0)


def with_several_results(x, y, number):
    z = ll.sqrt(ll.abs(x)) - y
    return z, ll.maximum(z * z, number), z < x


def of_integers(x, y, number):
    i = ll.astype(x * 100.0, "int32")
    return i * i + 1, ll.astype(i, "float32") * y


@pytest.mark.parametrize("function", [a_chain, with_several_results, of_integers])
@pytest.mark.parametrize("shape", [(N,), (7, 4099)])
def test_the_same_bits_on_any_number_of_threads(function, shape, monkeypatch):
    random = np.random.default_rng(0)
    x, y = (ll.constant(random.normal(size=shape).astype(np.float32)) for _ in range(2))
    number = ll.constant(np.float32(0.25))
    shared_by = []
    threads = blocks.Run.threads
    counted = property(lambda run: shared_by.append(threads.fget(run)) or shared_by[-1])
    monkeypatch.setattr(blocks.Run, "threads", counted)
    found = {k: on_threads(k, function, x, y, number, monkeypatch=monkeypatch) for k in (1, 2, 3, 64)}
    assert {1, 2} <= set(shared_by)
    for count in (2, 3, 64):
        for one, other in zip(np.atleast_1d(found[1]), np.atleast_1d(found[count]), strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_threads_have_tasks_and_room(monkeypatch):
    monkeypatch.setattr(blocks, "threads", lambda: 64)
    scratch = frozenset([Buffer(4 << 20)])
    assert blocks.Run([None] * 64, 8 * blocks.BLOCK, frozenset()).threads == 1
    assert blocks.Run([None] * 64, 1 << 20, scratch).threads == 64
    monkeypatch.setattr(blocks, "MOST_SCRATCH", 3 * 4 * blocks.BLOCK)
    assert blocks.Run([None] * 64, 1 << 20, scratch).threads == 3


def test_variables_are_assigned_on_all_threads(monkeypatch):
    value = np.random.default_rng(1).normal(size=N).astype(np.float32)
    found = []
    for count in (1, 3):
        v = ll.Variable(value)
        monkeypatch.setattr(blocks, "threads", lambda n=count: n)
        with base.chosen.override("loops"):
            ll.function(lambda v=v: v.assign_sub(0.5 * ll.tanh(v) * v))()
        found.append(v.numpy().tobytes())
    assert found[0] == found[1]


def test_floating_point_errors_of_every_thread_are_seen(monkeypatch):
    monkeypatch.setattr(blocks, "threads", lambda: 3)
    inverse = ll.function(lambda x: ll.exp(1.0 / x))
    with base.chosen.override("loops"):
        for i in range(0, N, 4999):
            x = np.ones(N, np.float32)
            x[i] = 0.0
            assert inverse(ll.constant(x)).numpy()[i] == np.inf
            with np.errstate(divide="raise"), pytest.raises(ll.errors.RunError, match="divide by zero"):
                inverse(ll.constant(x))


def member(operands: tuple[int, ...], advances: Any = (4, 4, 4), lanes: Any = (0, 0, 0), ufunc: Any = np.add) -> Any:
    steps = (4,) * len(advances)
    types = bytes([FLOAT] * len(advances))
    return ((ufunc_loop(ufunc, types), operands, (100,), steps, ()), advances, lanes)


def table(members: Any, threads: int, total: int = 10_000, arena: int = 1200) -> Any:
    array = (FLOAT, (total,), (4,))
    return native().Table((array, array), (), (array,), arena, [(100, total, tuple(members), threads)], lambda *x: None)


def in_scratch(lane: int) -> Any:
    first = member((0, 0, 1, 0, 3, 0), (4, 4, 0), (0, 0, lane))
    return [first, member((3, 0, 0, 0, 2, 0), (0, 4, 4), (lane, 0, 0), np.multiply)]


def test_each_thread_has_scratch_of_its_own():
    x, y = np.random.default_rng(2).normal(size=(2, 10_000)).astype(np.float32)
    for threads in (1, 2, 3):
        (found,) = table(in_scratch(400), threads)(x, y)
        np.testing.assert_array_equal(found, (x + y) * x)


@pytest.mark.parametrize(
    ("members", "threads", "error"),
    [
        (in_scratch(400), 4, "leaves the memory"),
        (in_scratch(404), 3, "leaves the memory"),
        (in_scratch(-400), 2, "leaves the memory"),
        (in_scratch(2**62), 2, "leaves the memory"),
        (in_scratch(0), 2, "one memory on all threads"),
        ([member((0, 0, 1, 0, 2, 0), lanes=(0, 0, 4))], 2, "leaves the memory"),
        (in_scratch(400), 0, "1 to 64 threads"),
        (in_scratch(400), 65, "1 to 64 threads"),
        ([member((0, 0, 1, 0, 2, 0), lanes=(0, 0))], 2, "tuple of 3 integers"),
    ],
)
def test_no_thread_leaves_its_memory(members, threads, error):
    with pytest.raises(ValueError, match=error):
        table(members, threads)


def long_run(threads: int) -> Any:
    members = [member((0, 0, 1, 0, 2, 0))]
    members += [member((2, 0, 2, 0), (4, 4), (0, 0), np.tanh) for _ in range(400)]
    return table(members, threads, total=1_000_000)


def test_an_interrupt_ends_a_run_on_all_threads():
    x = np.ones(1_000_000, np.float32)
    run, begun = long_run(3), time.monotonic()
    timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(x, x)
        pytest.fail(f"it was over in {time.monotonic() - begun} s")
    timer.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_run_in_a_forked_process():
    x, y = np.random.default_rng(2).normal(size=(2, 10_000)).astype(np.float32)
    run = table(in_scratch(400), 3)
    wanted = run(x, y)[0].tobytes()
    child = os.fork()
    if child == 0:
        os._exit(0 if run(x, y)[0].tobytes() == wanted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

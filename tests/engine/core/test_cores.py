"""Work that is shared out among cores: every piece once, errors and interrupts, nothing that is left behind."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time

import numpy as np
import pytest

from limelight.core import cores
from limelight.executors.plan import specialised_kernels
from limelight.ops.nn import _columns, standardise


@pytest.fixture(autouse=True)
def three(monkeypatch):
    """As if there were three cores; and no thread is left when a test is over."""
    monkeypatch.setattr(cores, "threads", lambda: 3)
    before, patience = _thread._count(), time.monotonic() + 20
    yield
    while _thread._count() > before and time.monotonic() < patience:
        time.sleep(0.001)
    assert _thread._count() <= before


def meeting(count: int = 3) -> threading.Barrier:
    """Where that many threads wait for one another: a piece that gets behind it has others beside it."""
    return threading.Barrier(count, timeout=20)


def test_every_piece_once_on_all_threads():
    all_here, done, by = meeting(), [], set()

    def work(piece):
        if piece < 3:
            all_here.wait()
        done.append(piece)
        by.add(threading.get_ident())

    cores.for_each(work, range(50), cores.WORTH)
    assert sorted(done) == list(range(50))
    assert len(by) == 3
    assert threading.get_ident() in by


@pytest.mark.parametrize(("pieces", "size"), [(50, cores.WORTH - 1), (1, cores.WORTH), (0, cores.WORTH)])
def test_what_is_not_worth_it_stays_with_the_caller(pieces, size):
    done = []
    cores.for_each(lambda piece: done.append((piece, threading.get_ident())), range(pieces), size)
    assert done == [(piece, threading.get_ident()) for piece in range(pieces)]


def test_settings_of_the_caller_hold_on_every_thread():
    all_here, seen = meeting(), []

    def work(_piece):
        all_here.wait()
        seen.append(np.geterr()["divide"])

    with np.errstate(divide="raise"):
        cores.for_each(work, range(3), cores.WORTH)
    assert seen == ["raise"] * 3


@pytest.mark.parametrize("on_caller", [True, False])
def test_an_error_on_any_thread_is_raised_and_ends_the_work(on_caller):
    all_here, caller, begun = meeting(), threading.get_ident(), []

    def work(piece):
        begun.append(piece)
        if piece < 3:
            all_here.wait()
        if (threading.get_ident() == caller) == on_caller:
            raise ZeroDivisionError(str(piece))
        time.sleep(0.001)

    with pytest.raises(ZeroDivisionError):
        cores.for_each(work, range(10_000), cores.WORTH)
    assert len(begun) < 10_000


def test_an_interrupt_waits_for_what_is_begun_and_begins_no_more():
    all_here, begun, ended = meeting(), [], []

    def work(piece):
        begun.append(piece)
        if piece < 3:
            all_here.wait()
        if piece == 1:
            signal.raise_signal(signal.SIGINT)  # the handler runs on the main thread, which works or waits then
        time.sleep(0.002)
        ended.append(piece)

    with pytest.raises(KeyboardInterrupt):
        cores.for_each(work, range(10_000), cores.WORTH)
    assert len(begun) < 10_000
    assert len(ended) >= len(begun) - 1  # the caller's piece alone was cut off


def test_an_interrupt_while_the_caller_waits_for_the_others():
    all_here, ended = meeting(), []

    def work(piece):
        all_here.wait()
        if threading.current_thread() is threading.main_thread():
            return
        time.sleep(0.02)
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.02)
        ended.append(piece)

    with pytest.raises(KeyboardInterrupt):
        cores.for_each(work, range(3), cores.WORTH)
    assert len(ended) == 2


def test_threads_that_have_not_begun_are_not_waited_for(monkeypatch):
    late = []
    monkeypatch.setattr(_thread, "start_new_thread", lambda function, given: late.append((function, given)))
    done = []
    cores.for_each(done.append, range(10), cores.WORTH)
    assert done == list(range(10))
    for function, given in late:
        function(*given)
    assert (len(late), len(done)) == (2, 10)


def test_where_no_more_threads_can_be_made_the_caller_does_it_all(monkeypatch):
    def refuse(function, given):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    done = []
    cores.for_each(done.append, range(10), cores.WORTH)
    assert done == list(range(10))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_in_a_forked_process():
    cores.for_each(lambda piece: None, range(10), cores.WORTH)
    child = os.fork()
    if child == 0:
        done = []
        cores.for_each(done.append, range(10), cores.WORTH)
        os._exit(0 if sorted(done) == list(range(10)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("native", [True, False], ids=["native", "NumPy"])
@pytest.mark.parametrize("axes", [(0,), (1,)], ids=["columns", "rows"])
@pytest.mark.parametrize("shape", [(9000, 64), (40, 15_000)])
def test_standard_scores_are_the_same_on_any_number_of_threads(shape, axes, native, monkeypatch):

    if not native:
        monkeypatch.setattr(_columns, "_native", lambda x: None)
    x, g = numbers(*shape), numbers(*shape)[::-1]
    found = {}
    for count in (1, 2, 3):
        monkeypatch.setattr(cores, "threads", lambda n=count: n)
        monkeypatch.setattr(_columns, "threads", lambda n=count: n)
        y, mean, variance = standardise._kernel_numpy(np, x, axes, 1e-5)
        found[count] = (y, mean, variance, standardise._backward_numpy(np, g, y, variance, axes, 1e-5))
    for count in (2, 3):
        for mine, theirs in zip(found[1], found[count], strict=True):
            np.testing.assert_array_equal(mine, theirs)
    y, mean, variance = standardise._kernel(np, x.astype(np.float64), axes, 1e-5)
    wanted = (y, mean, variance, standardise._backward_kernel(np, g.astype(np.float64), y, variance, axes, 1e-5))
    for mine, true in zip(found[3], wanted, strict=True):
        np.testing.assert_allclose(mine, true, rtol=2e-6, atol=2e-6)


def test_the_sums_of_wide_columns_take_a_small_part_of_the_memory(monkeypatch):
    shapes, zeros = [], np.zeros
    with monkeypatch.context() as patched:
        patched.setattr(np, "zeros", lambda shape, dtype: shapes.append(shape) or zeros(shape, dtype))
        mean, variance = _columns._mean_and_variance(np.ones((40, 100_000), np.float32))
    assert shapes == [(2, 2, 100_000)] * 2
    np.testing.assert_array_equal((mean, variance), [np.ones(100_000), np.zeros(100_000)])


def test_the_gradient_of_relu_is_the_same_on_any_number_of_threads(monkeypatch):

    g, y, zero = numbers(700, 800), numbers(800, 700).T, np.zeros((), np.float32)
    y[0, :3] = np.nan, 0.0, -0.0
    plain = np.multiply(g, np.greater(y, zero).astype(np.float32))
    for count in (1, 2, 3):
        monkeypatch.setattr(cores, "threads", lambda n=count: n)
        for seen in (y, np.ascontiguousarray(y)):
            found = specialised_kernels._masked_gradient(g, seen, zero, np.dtype(np.float32))
            assert found.tobytes() == plain.tobytes()

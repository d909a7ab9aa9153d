"""Threads of limelight-native: many callers, forks, settings of the caller, none that stays."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from limelight.core import native_package

pytestmark = [
    pytest.mark.skipif(native_package.native_if_usable() is None, reason="limelight-native is not here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
TASKS = Path("/proc/self/task")
UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}.get(os.uname().machine if hasattr(os, "uname") else "")
NUMBERS = np.random.default_rng(0).normal(size=(20_000, 64)).astype(np.float32)


def sums(threads: int) -> bytes:
    """The means of columns, and the variances."""
    _, *moments = native_package.native().normalise_columns(NUMBERS, None, None, 0.0, threads)
    return b"".join(moment.tobytes() for moment in moments)


def test_many_callers_at_once_have_what_one_has():
    wanted, found = sums(1), []

    def call(threads: int) -> None:
        found.extend(sums(threads) for _ in range(20))

    callers = [threading.Thread(target=call, args=(2 + i,)) for i in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [wanted] * 80


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_child_has_threads_of_its_own():
    wanted = sums(3)
    child = os.fork()
    if child == 0:
        alike = sums(3) == sums(1) == wanted
        os._exit(0 if alike and (not TASKS.exists() or len(list(TASKS.iterdir())) >= 3) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sums(3) == wanted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_child_of_a_signal_handler_has_the_numbers_or_an_error(monkeypatch):
    monkeypatch.setitem(globals(), "NUMBERS", np.tile(NUMBERS, (10, 1)))
    wanted, children = sums(1), []
    before = signal.signal(signal.SIGALRM, lambda *_: children.append(os.fork()))
    try:
        for _ in range(6):
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            try:
                answer = 0 if sums(4) == wanted else 1
            except RuntimeError as error:
                answer = 2 if "forked" in str(error) else 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            if 0 in children:
                os._exit(answer)
            assert answer == 0
    finally:
        signal.signal(signal.SIGALRM, before)
    answers = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert set(answers) <= {0, 2}
    assert answers


@pytest.mark.skipif(UPWARD is None, reason="how to round up is not known of this processor")
def test_threads_round_as_their_caller_does():
    nearest = sums(3)
    maths = ctypes.CDLL(ctypes.util.find_library("m"))
    before = maths.fegetround()
    try:
        assert maths.fesetround(UPWARD) == 0
        found = sums(1), sums(3)
    finally:
        maths.fesetround(before)
    assert found[0] == found[1] != nearest
    assert sums(3) == nearest


@pytest.mark.skipif(not TASKS.exists(), reason="threads cannot be counted here")
def test_no_thread_stays():
    before = len(list(TASKS.iterdir()))
    sums(16)
    assert len(list(TASKS.iterdir())) >= before + 10  # others of the suite may end meanwhile
    patience = time.monotonic() + 60
    while len(list(TASKS.iterdir())) >= before + 10:
        assert time.monotonic() < patience
        time.sleep(0.05)

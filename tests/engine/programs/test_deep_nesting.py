"""Functions and branches hundreds of levels deep, within Python's usual recursion limit; endless ones still end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core import recursion_limit

pytestmark = pytest.mark.usefixtures("retraces_are_meant", "usual_limit")
DEEP = 300


@pytest.fixture
def usual_limit() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    after = sys.getrecursionlimit()
    sys.setrecursionlimit(before)
    assert after == 1000, "the limit is as it was"


def functions(levels: int) -> Any:
    f = ll.function(ll.tanh)
    for _ in range(levels):
        f = ll.function(lambda x, inner=f: inner(x) * 1.001)
    return f


def branches(levels: int) -> Any:
    def at(level: int, x: Any) -> Any:
        return ll.cond(x > 0, lambda: at(level - 1, x * 1.001), lambda: -x) if level else ll.tanh(x)

    return ll.function(lambda x: at(levels, x))


def loops(levels: int) -> Any:
    def at(level: int, x: Any) -> Any:
        return ll.scan(lambda c, _: (at(level - 1, c * 1.001), None), x, length=1)[0] if level else ll.tanh(x)

    return ll.function(lambda x: at(levels, x))


@pytest.mark.slow  # thousands of levels
@pytest.mark.parametrize("nest", [functions, branches, loops])
def test_deep_nests(nest: Any) -> None:
    levels = DEEP // 3 if nest is loops else DEEP
    f, x = nest(levels), ll.constant(0.5, dtype="float64")
    grown = 1.001**levels
    wanted = np.tanh(0.5) * grown if nest is functions else np.tanh(0.5 * grown)
    for _ in range(2):
        assert f(x).item() == pytest.approx(wanted)


@pytest.mark.slow  # thousands of levels
@pytest.mark.parametrize("nest", [functions, branches])
def test_their_gradients(nest: Any) -> None:
    levels = DEEP // 5
    x = ll.constant(0.5, dtype="float64")
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = nest(levels)(x)
    slope = 1 - np.tanh(0.5 if nest is functions else 0.5 * 1.001**levels) ** 2
    assert tape.gradient(y, x).item() == pytest.approx(slope * 1.001**levels)


def endless(x: Any) -> Any:
    return ll.cond(x > 0, lambda: endless(x - 1.0), lambda: x)


@pytest.mark.slow  # fills the stack
@pytest.mark.parametrize("in_thread", [False, True])
def test_what_never_ends_is_an_error(in_thread: bool) -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            ll.function(endless)(ll.constant(3.0))
        except RecursionError as error:
            raised.append(error)

    if in_thread:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    else:
        run()
    assert len(raised) == 1


def test_room_is_given_back_whatever_happens() -> None:
    levels = [recursion_limit.Level() for _ in range(recursion_limit.USUAL_LEVELS + 5)]
    assert sys.getrecursionlimit() == 1000 + 5 * recursion_limit.FRAMES_PER_LEVEL
    for level in (*reversed(levels), *levels):
        level.close()
    assert sys.getrecursionlimit() == 1000
    with pytest.raises(ZeroDivisionError):
        recursion_limit.with_recursion_room(lambda x: 1 / x, 100)(0)
    assert (
        recursion_limit.with_recursion_room(sys.getrecursionlimit, 100)()
        == 1000 + 100 * recursion_limit.FRAMES_PER_LEVEL
    )
    assert recursion_limit.with_recursion_room(sys.getrecursionlimit, 10_000)() == 1000 + recursion_limit.MAX_RAISE
    plain = recursion_limit.with_recursion_room(sys.getrecursionlimit, recursion_limit.USUAL_LEVELS)
    assert plain is sys.getrecursionlimit


def test_a_limit_that_somebody_sets_meanwhile_stays() -> None:
    def run() -> None:
        sys.setrecursionlimit(2000)

    recursion_limit.with_recursion_room(run, 100)()
    assert sys.getrecursionlimit() == 2000
    assert (
        recursion_limit.with_recursion_room(sys.getrecursionlimit, 100)()
        == 2000 + 100 * recursion_limit.FRAMES_PER_LEVEL
    )
    assert sys.getrecursionlimit() == 2000
    sys.setrecursionlimit(1000)


def test_a_level_that_an_interrupt_left_open_is_forgotten_by_the_next_trace() -> None:
    recursion_limit.Level()
    assert recursion_limit._thread.levels > 0
    ll.function(ll.tanh)(ll.constant(0.5))
    assert recursion_limit._thread.levels == 0

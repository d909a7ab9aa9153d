"""A leaked symbolic tensor is shown with what keeps it (behaviour 151)."""

from __future__ import annotations

import gc
import queue
import sys
from collections import deque
from functools import lru_cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

import limelight as ll
from limelight.errors import LeakedTensorError
from limelight.user_code import holders

KEPT: Any = None
CACHE: list[Any] = []


class Shelf:
    def __init__(self) -> None:
        self.last: Any = None

    def method(self) -> Any:
        return self.last


SHELF = Shelf()


def global_name(x: Any) -> None:
    global KEPT
    KEPT = x


def global_list(x: Any) -> None:
    CACHE.append((x, "with a mark"))


def attribute(x: Any) -> None:
    SHELF.last = {"y": x}


def exception(x: Any) -> None:
    global KEPT
    try:
        raise ValueError("no", x)
    except ValueError as error:
        KEPT = error.with_traceback(None)


def generator(x: Any) -> None:
    global KEPT
    KEPT = (x + i for i in range(3))
    next(KEPT)


def default(x: Any) -> None:
    global KEPT

    def later(w: Any = x) -> Any:
        return w

    KEPT = later


def closure(x: Any) -> None:
    global KEPT
    KEPT = lambda: x  # noqa: E731  # a function that closes over it


def bound(x: Any) -> None:
    global KEPT
    KEPT = partial(max, deque([x]))


def traceback_of(x: Any) -> None:
    global KEPT
    try:
        raise ValueError("no")
    except ValueError as error:
        KEPT = error


def key(x: Any) -> None:
    CACHE.append({SHELF: x})


def function_attribute(x: Any) -> None:
    key.memo = [x]  # type: ignore[attr-defined]


def layer(x: Any) -> None:
    global KEPT
    KEPT = ll.nn.Dense(1)
    KEPT.last = x


def waiting(x: Any) -> None:
    global KEPT
    KEPT = queue.Queue()
    KEPT.put(x)


def tape(x: Any) -> None:
    global KEPT
    KEPT = ll.GradientTape(persistent=True)
    with KEPT:
        KEPT.watch(x)
        ll.maximum(x, 0.0)


@lru_cache
def known(_: int) -> Any:
    return SHELF.last


def cached(x: Any) -> None:
    SHELF.last = x
    known(1)
    SHELF.last = None


def staged(x: Any) -> None:
    global KEPT
    y = None

    def inner(v: Any) -> Any:
        return v if y is None else y

    y, KEPT = x, ll.function(inner)


WAYS = {
    "traceback": (traceback_of, "KEPT.__traceback__.tb_frame.f_locals['x']"),
    "key": (key, "CACHE[0][<Shelf>]"),
    "attribute of a function": (function_attribute, "key.memo[0]"),
    "attribute of a layer": (layer, "KEPT.last"),
    "queue": (waiting, "KEPT.queue[0]"),
    "tape": (tape, "KEPT._entries[0]"),
    "cache of a function": (cached, "known, in its cache"),
    "closure of a staged function": (staged, "KEPT.python_function.__closure__[0].cell_contents"),
    "name": (global_name, "KEPT"),
    "list": (global_list, "CACHE[0][0]"),
    "attribute": (attribute, "SHELF.last['y']"),
    "exception": (exception, "KEPT.args[1]"),
    "default": (default, "KEPT.__defaults__[0]"),
    "closure": (closure, "KEPT.__closure__[0].cell_contents"),
    "partial": (bound, "KEPT.args[0][0]"),
}


THOROUGH = ("attribute of a layer", "queue", "tape")
"""Where objects of other people's classes must be looked into."""


@pytest.fixture(autouse=True)
def empty() -> Any:
    yield
    global KEPT
    KEPT = SHELF.last = None
    CACHE.clear()
    known.cache_clear()
    vars(key).clear()


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
@pytest.mark.slow  # looks through all objects of the process
@pytest.mark.parametrize("way", WAYS)
def test_151_the_error_says_where_it_is_kept(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leaks = import_module("limelight.explain.leaked_tensors")  # the package has the function by that name
    monkeypatch.setattr(leaks, "_SECONDS", 30.0)  # a process with all tests' modules has many names
    monkeypatch.setattr(leaks, "_IN_ALL", 60.0)
    keep, path = WAYS[way]

    @ll.function
    def leaky(x: Any) -> Any:
        keep(x * 2.0)
        return x

    leaky(ll.constant(1.0))
    (leak,) = [one for one in ll.explain.leaks(leaky).records if one.what == "the result of multiply"]
    assert leak.holder is not None
    assert leak.function == "leaky"
    assert leak.holder.path.startswith(path) if way == "tape" else leak.holder.path == path
    assert __name__.rpartition(".")[2] in leak.holder.where
    monkeypatch.setattr(holders, "SECONDS", 30.0)
    with pytest.raises(LeakedTensorError) as caught:
        SHELF.last["y"] + 1.0 if way == "attribute" else _leaked()
    if way not in THOROUGH:  # an error looks less long than `leaks`
        assert f"It is kept as {path} (a name of module" in str(caught.value)


def test_the_search_of_an_error_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a tenth of a second with each look at it."""
    looks: list[float] = []
    clock = SimpleNamespace(thread_time=lambda: looks.append(0.0) or len(looks) / 10)
    monkeypatch.setattr(holders, "time", clock)
    monkeypatch.setattr(holders, "_LOOK_AT_CLOCK", 1)
    searched = [[object()] for _ in range(100_000)]
    assert holders.first_holder(object()) is None
    assert len(looks) < 5 + len(sys.modules) + 100  # one in each place to look from, and none goes on
    assert len(searched) == 100_000


def _leaked() -> Any:
    alive = (x for x in gc.get_objects() if type(x).__name__ == "SymbolicTensor" and x._tracer.name == "leaky")
    x = next(x for x in alive if x._value.node)  # not the argument, which a traceback's frame may keep as well
    return x + 1.0


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
@pytest.mark.slow  # looks through all objects of the process
def test_151_a_generator_that_waits_keeps_it() -> None:
    @ll.function
    def leaky(x: Any) -> Any:
        generator(x * 2.0)
        return x

    leaky(ll.constant(1.0))
    paths = {leak.holder.path for leak in ll.explain.leaks(leaky).records if leak.holder is not None}
    assert paths == {"KEPT.gi_frame.f_locals['x']"}


@pytest.mark.slow  # looks through all objects of the process
def test_151_out_of_a_loop_body() -> None:
    def body(i: Any) -> Any:
        CACHE.append(i)
        return i + 1

    f = ll.function(lambda n: ll.while_loop(lambda i: i < n, body, [ll.constant(0)]))
    f(ll.constant(3))
    found = ll.explain.leaks(f)
    assert [leak.holder.path for leak in found.records if leak.holder] == ["CACHE[0]"]
    assert found.records[0].line.text.startswith("f = ll.function(lambda n: ll.while_loop(")
    assert str(found).startswith("1 symbolic tensor has outlived its trace:\n  the argument `loop_vars[0]`")
    with pytest.raises(
        LeakedTensorError, match=r"\(test_leaked_tensors.py line \d+: f = ll.function.*kept as CACHE\[0\]"
    ):
        CACHE[0] + 1


@pytest.mark.slow  # looks through all objects of the process
def test_nothing_leaks_from_ordinary_functions() -> None:
    v = ll.Variable(1.0)

    @ll.function
    def inner(x: Any) -> Any:
        return x * v

    @ll.function
    def outer(x: Any) -> Any:
        doubled = x * 2.0
        with ll.GradientTape() as tape:
            y = ll.cond(x > 0.0, lambda: inner(doubled), lambda: doubled)
        return y, tape.gradient(y, v)

    with ll.GradientTape() as tape:
        y, _ = outer(ll.constant(1.0))
    tape.gradient(y, v)
    ll.vectorize(outer)(ll.ones((3,)))
    for f in (inner, outer):
        assert str(ll.explain.leaks(f)) == "no symbolic tensor has outlived its trace"
    with pytest.raises(ll.errors.ArgumentError, match="staged function"):
        ll.explain.leaks(3)

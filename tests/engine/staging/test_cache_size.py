"""`cache_size` and `max_traces` (behaviour 148): the trace not used for longest goes, a spent budget raises."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight.errors import ArgumentError, TraceBudgetError

pytestmark = pytest.mark.usefixtures("retraces_are_meant")


def bounded(size: int | None, **options: Any) -> Any:
    return ll.function(lambda x: x * 2, cache_size=size, name="f", **options)


def ones(*shape: int) -> ll.Tensor:
    return ll.ones(shape)


def kept(f: Any) -> list[str]:
    return [entry.signature for entry in f.trace_cache]


# The bound


def test_the_trace_not_used_for_longest_goes() -> None:
    f = bounded(2)
    for n in (1, 2, 1, 1, 3):  # 2 was used last before 1 was
        f(ones(n))
    assert kept(f) == ["x: f32[1]", "x: f32[3]"]
    f(ones(1))
    f(ones(4))
    assert kept(f) == ["x: f32[1]", "x: f32[4]"]
    assert f.trace_count == 4


@pytest.mark.parametrize("call", [lambda f, x: f(x), lambda f, x: f(x=x)], ids=["shortest path", "keyword"])
def test_every_way_to_a_trace_counts_as_use(call: Callable[[Any, Any], Any]) -> None:
    f = bounded(2)
    for n in (1, 2):
        call(f, ones(n))
        call(f, ones(n))
    call(f, ones(1))
    call(f, ones(3))
    assert kept(f) == ["x: f32[1]", "x: f32[3]"]


def test_counts_stay_right() -> None:
    f = bounded(1)
    for n in (1, 1, 1, 2, 2, 1):
        f(ones(n))
    assert (f.trace_count, len(f.trace_cache), f.trace_cache.history.calls) == (3, 1, 6)
    assert [record.number for record in ll.explain.retrace(f).records] == [1, 2, 3]
    assert [entry.index for entry in f.trace_cache] == [2]


def test_an_evicted_trace_is_freed_and_its_call_may_go_on() -> None:
    f = bounded(1)
    concrete = f.get_concrete_function(ll.TensorSpec((2,)))
    f(ones(3))
    assert concrete(ones(2)).tolist() == [2.0, 2.0]
    gone = weakref.ref(concrete)
    del concrete
    gc.collect()
    assert gone() is None


def test_a_relaxed_trace_is_evicted_with_what_it_covers() -> None:
    f = bounded(1, reduce_retracing=True)
    for n in (1, 2, 3, 4):
        f(ones(n))
    assert kept(f) == ["x: f32[?]"]
    f(ones(1, 1))
    assert kept(f) == ["x: f32[1,1]"]
    before = f.trace_count
    f(ones(3))
    assert f.trace_count == before + 1
    assert "its trace #2 (test_cache_size.py line " in f.trace_cache[0].reason
    assert "was evicted, since the cache holds 1 trace at most" in f.trace_cache[0].reason


def test_each_instance_has_its_own_bound() -> None:
    class Model:
        @ll.function(cache_size=1)
        def step(self, x: Any) -> Any:
            return x

    one, other = Model(), Model()
    for model in (one, other):
        for n in (1, 2):
            model.step(ones(n))
    assert [len(model.step.trace_cache) for model in (one, other)] == [1, 1]


def test_variables_are_made_on_the_first_call_only_even_if_its_trace_has_gone() -> None:
    held: list[ll.Variable] = []

    @ll.function(cache_size=1)
    def f(x: Any) -> Any:
        if not held:
            held.append(ll.Variable(1.0))
        return x * held[0]

    for n in (1, 2, 1):
        f(ones(n))
    assert f.trace_count == 4  # the first call traced twice
    assert len(f.trace_cache) == 1


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
@pytest.mark.parametrize("option", ["cache_size", "max_traces"])
def test_a_bound_is_a_positive_whole_number(option: str, bad: Any) -> None:
    with pytest.raises(ArgumentError, match=f"{option} must be None"):
        ll.function(lambda x: x, **{option: bad})


# The budget


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
def test_a_spent_budget_raises_before_tracing_and_leaves_the_rest_running() -> None:
    ran: list[Any] = []

    @ll.function(max_traces=2)
    def f(x: Any) -> Any:
        ran.append(x)
        return x

    for n in (1, 2, 1, 2):
        f(ones(n))
    with pytest.raises(TraceBudgetError, match=r"`f` has its 2 traces \(max_traces=2\), and the call at") as caught:
        f(ones(3))
    assert "argument `x` f32[2] -> f32[3] (axis 0: 2 -> 3)" in str(caught.value)
    assert caught.value.miss.differences[0].path == "x"
    assert (len(ran), f.trace_count, len(f.trace_cache)) == (2, 2, 2)
    assert f(ones(2)).shape == (2,)
    with pytest.raises(TraceBudgetError):
        f.get_concrete_function(ll.TensorSpec((7,)))


def test_creating_state_is_one_trace_of_the_budget() -> None:
    held: list[ll.Variable] = []

    @ll.function(max_traces=1)
    def f(x: Any) -> Any:
        if not held:
            held.append(ll.Variable(1.0))
        return x * held[0]

    assert f(ones(1)).tolist() == [1.0]
    with pytest.raises(TraceBudgetError):
        f(ones(2))


def test_clearing_starts_the_budget_again() -> None:
    f = ll.function(lambda x: x, max_traces=1)
    for _ in range(3):
        f(ones(1))
        f.clear_cache()
    f(ones(2))
    with pytest.raises(TraceBudgetError):
        f(ones(1))


def test_a_budget_within_a_trace_is_told_with_the_outer_function() -> None:
    inner = ll.function(lambda x: x, max_traces=1, name="inner")
    outer = ll.function(lambda x: inner(x) + 1.0, name="outer")
    outer(ones(1))
    with pytest.raises(TraceBudgetError, match="`inner` has its 1 trace"):
        outer(ones(2))
    assert len(outer.trace_cache) == 1


# Threads


@pytest.mark.slow  # threads
def test_evicting_and_clearing_while_others_call() -> None:
    f = bounded(2)
    inputs = [ones(n) for n in range(1, 6)]
    failures: list[Exception] = []
    done = threading.Event()

    def call(first: int) -> None:
        n = first
        try:
            while not done.wait(0.001):  # or three that trace without a pause leave the fourth no turn
                x = inputs[n % 5]
                assert f(x).shape == x.shape
                n += first
        except Exception as error:  # noqa: BLE001  # told to the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=call, args=(k,), daemon=True) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        f.clear_cache()
        f(inputs[0])
        list(f.trace_cache)
        ll.explain.retrace(f).table()
        f.explain(ones(9))
    done.set()
    for thread in threads:
        thread.join(300)
    assert failures == []
    assert len(f.trace_cache) <= 2
    f.clear_cache()
    assert len(f.trace_cache) == 0


def test_many_threads_on_a_cold_method_trace_once() -> None:
    class Model:
        @ll.function
        def step(self, x: Any) -> Any:
            return x * 2

    model, x = Model(), ones(3)
    gate = threading.Barrier(30)

    def call() -> None:
        gate.wait(300)
        model.step(x)

    threads = [threading.Thread(target=call, daemon=True) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert model.step.trace_count == 1
    assert model.step.trace_cache.history.calls == 30


def test_a_call_under_way_does_not_bring_back_what_was_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    f = ll.function(lambda x: x * 2)
    x = ones(1)
    f(x=x)  # which leaves no short way to the trace
    with monkeypatch.context() as patch:  # cleared between finding the trace and remembering the way to it
        patch.setattr(f, "_note_hit", lambda _: f.clear_cache())
        assert f(x).tolist() == [2.0]
    assert len(f.trace_cache) == len(f.trace_cache.by_types) == 0
    f(x)
    assert f.trace_count == 2

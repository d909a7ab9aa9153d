"""The retracing warning (behaviour 147): when most calls trace, at most twice, with the reason."""

from __future__ import annotations

import contextlib
import warnings

import pytest

import limelight as ll
from limelight.errors import RetracingWarning


def heard(run):
    """The retracing warnings that `run` brings, as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    assert all(one.category is RetracingWarning for one in caught)
    return [str(one.message) for one in caught]


def test_five_of_ten_calls_bring_a_warning_with_argument_and_values():
    f = ll.function(lambda x, step: x, name="train")
    x = ll.ones((2,))
    assert heard(lambda: [f(x, step) for step in (0.0, 1.0, 2.0, 3.0)]) == []
    (message,) = heard(lambda: f(x, 4.0))
    assert message.startswith("`train` traced in 5 of its last 5 calls, which costs more than running. `train` traced")
    assert "argument `step` 3.0 -> 4.0" in message
    assert ", call with f(x, ll.constant(4.0))" in message or "for `step` pass ll.constant(step)" in message


def test_it_warns_at_most_twice():
    f = ll.function(lambda x: x)
    assert len(heard(lambda: [f(ll.ones((n,))) for n in range(14)])) == 1, "what follows at once says nothing new"
    assert len(heard(lambda: [f(ll.ones((n,))) for n in range(14, 40)])) == 1


def test_hits_between_the_traces_count_as_calls():
    f = ll.function(lambda n: 1.0 * n)

    def run():
        for n in range(20):
            for _ in range(3):
                f(n)

    assert heard(run) == []
    often = ll.function(lambda n: 1.0 * n)
    assert len(heard(lambda: [often(n // 2) for n in range(20)])) == 2  # every other call


def test_hits_of_cleared_traces_count_too():
    f = ll.function(lambda n: 1.0 * n)

    def run():
        for _ in range(6):
            for _ in range(10):
                f(1)
            f.clear_cache()

    assert heard(run) == []


def test_traces_that_were_asked_for_by_clearing_do_not_count():
    f = ll.function(lambda x: x + 1)

    def run(*sizes):
        for n in sizes:
            f(ll.ones((n,)))

    def clear():
        for _ in range(6):
            f.clear_cache()
            run(2)

    assert heard(clear) == []
    assert heard(lambda: run(3, 4, 5)) == []
    assert len(heard(lambda: run(6, 7, 8))) == 1


def test_hits_of_traces_whose_objects_died_count_too():
    f = ll.function(lambda x, g: g(x))
    x = ll.ones((2,))

    def run():
        for _ in range(8):

            def g(v):
                return v + 1.0

            for _ in range(10):
                f(x, g)

    assert heard(run) == []
    assert len(f.trace_cache) <= 2


def test_traces_asked_for_by_spec_do_not_count():
    f = ll.function(lambda x: x)
    assert heard(lambda: [f.get_concrete_function(ll.TensorSpec((n,))) for n in range(12)]) == []


def test_a_nested_function_that_retraces_is_named():
    inner = ll.function(lambda x: x * 2.0, name="inner")
    outer = ll.function(lambda x: inner(x) + 1.0, name="outer")
    messages = heard(lambda: [outer(ll.ones((n,))) for n in range(16)])
    assert [m.split("`")[1] for m in messages] == ["inner", "outer", "inner", "outer"]
    assert "while tracing `outer`" in messages[0]


def test_a_function_staged_anew_in_a_loop():
    def run():
        for _ in range(15):
            f = ll.function(lambda x: x + 1.0, name="f")
            f(ll.ones((2,)))

    messages = heard(run)
    assert len(messages) == 2
    assert messages[0].startswith("`f` was staged anew in 5 of its last 10 calls or fewer.")
    assert "Stage the function once, before the loop" in messages[0]


def test_a_function_staged_anew_is_told_so_at_its_first_trace_only():
    def run():
        for _ in range(5):
            f = ll.function(lambda x: x + 2.0)
            f(ll.ones((2,)))
        f(ll.ones((3,)))

    assert len(heard(run)) == 1


def test_a_function_staged_anew_and_used_well_is_nobodys_fault():
    def run():
        for _ in range(12):
            f = ll.function(lambda x: x - 1.0)
            for _ in range(4):
                f(ll.ones((2,)))

    assert heard(run) == []


def test_the_methods_of_many_instances_are_no_retracing():
    class Model:
        @ll.function
        def step(self, x):
            return x

    models = [Model() for _ in range(12)]
    assert heard(lambda: [model.step(ll.ones((2,))) for model in models]) == []


def test_methods_of_objects_that_a_loop_makes_anew_are_told():
    class Model:
        @ll.function
        def step(self, x):
            return x

    def run():
        for _ in range(8):
            model = Model()
            model.step(ll.ones((2,)))

    (message,) = heard(run)
    assert message.startswith("`step` was staged anew in 5 of its last 10 calls or fewer.")
    assert message.endswith("Make the Model object once, before the loop, where one will do.")


def test_the_warning_points_to_the_call():
    f = ll.function(lambda x: x)
    for n in range(4):
        f(ll.ones((n,)))
    with pytest.warns(RetracingWarning) as caught:
        f(ll.ones((4,)))  # here
    assert caught[0].filename == __file__
    with open(__file__) as text:
        assert "# here" in text.read().splitlines()[caught[0].lineno - 1]


def test_a_warning_made_an_error_leaves_the_trace_in_place():
    f = ll.function(lambda n: 1.0 * n)
    with pytest.raises(RetracingWarning):
        for n in range(10):
            f(n)
    assert len(f.trace_cache) == 5
    assert f(4).item() == 4.0
    assert f.trace_count == 5


def test_a_function_made_in_a_long_loop_is_warned_of_twice():
    def loop():
        for _ in range(100):
            ll.function(lambda x: x * 2, name="remade")(ll.ones((2,)))

    assert len(heard(loop)) == 2


def test_a_cache_that_is_too_small_is_warned_of_with_its_cure():
    f = ll.function(lambda x: x, cache_size=2, name="f")
    messages = heard(lambda: [f(ll.ones((n % 3 + 1,))) for n in range(15)])
    assert len(messages) == 2
    assert "was evicted, since the cache holds 2 traces at most" in messages[1]
    assert messages[1].endswith('Fix: ll.function(fn, name="f", cache_size=3)')


def test_nested_functions_that_are_staged_anew_in_a_loop_are_named():
    def run():
        for _ in range(16):
            inner = ll.function(lambda x: x * 2.0, name="inner")
            ll.function(lambda x: inner(x) + 1.0, name="outer")(ll.ones((2,)))  # noqa: B023  # called at once

    messages = heard(run)
    assert [message.split("`")[1] for message in messages] == ["inner", "outer", "inner", "outer"]
    assert "while tracing `outer`" in messages[0]


def test_the_warning_names_every_argument_that_differs():
    f = ll.function(lambda x, n, kind: x, name="f")
    messages = heard(lambda: [f(ll.ones((n + 1,)), n, str(n)) for n in range(5)])
    assert len(messages) == 1
    for said in ("argument `x` f32[4] -> f32[5]", "argument `n` 3 -> 4", "argument `kind` '3' -> '4'"):
        assert said in messages[0]


def test_predictions_and_refused_calls_are_no_calls():
    f = ll.function(lambda x: x, max_traces=1)

    def run():
        for n in range(1, 12):
            f.explain(ll.ones((n,)))
            with contextlib.suppress(ll.errors.TraceBudgetError):
                f(ll.ones((n,)))

    assert heard(run) == []
    assert f.trace_cache.history.calls == 1

"""`F.explain`: what a call would do, of functions with every option, without tracing or running anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import limelight as ll

pytestmark = pytest.mark.usefixtures("retraces_are_meant")
x = ll.ones((2, 3))


def asked(f: Any, *args: Any, **kwargs: Any) -> Any:
    """What `f.explain` answers, once it is sure that nothing ran or was counted for it."""
    before = (f.trace_count, len(f.trace_cache), [e.hits for e in f.trace_cache], f.trace_cache.history.calls)
    ran: list[Any] = []
    with ll.events.listen(ran.append, ll.events.OpRan, ll.events.CacheHit, ll.events.CacheMiss):
        answer = f.explain(*args, **kwargs)
    assert ran == []
    assert before == (f.trace_count, len(f.trace_cache), [e.hits for e in f.trace_cache], f.trace_cache.history.calls)
    assert repr(answer) == str(answer)
    return answer


@pytest.mark.parametrize("given", [x, np.ones((2, 3), np.float32), ll.TensorSpec((2, 3))])
def test_tensors_arrays_and_specs_are_asked_about_alike(given: Any) -> None:
    f = ll.function(lambda v: v * 2)
    assert not asked(f, given)
    f(x)
    assert asked(f, given).entry is f.trace_cache[0]


def test_the_call_is_shown_mended() -> None:
    f = ll.function(lambda v, rate: v * rate, name="f")
    f(x, 0.5)
    assert str(f.explain(x, 0.25)).endswith(" line 38, call with f(x, ll.constant(0.25))")


def test_of_a_method() -> None:
    class Model:
        @ll.function
        def step(self, v: Any) -> Any:
            return v * 2

    model, other = Model(), Model()
    model.step(x)
    assert asked(model.step, x).hit
    assert str(asked(other.step, x)).startswith("`step` would trace: first call for this Model object, since each has ")


def test_with_relaxed_shapes() -> None:
    f = ll.function(lambda v, n: v * n, reduce_retracing=True, name="f")
    f(x, 1)
    answer = asked(f, ll.ones((5, 3)), 1)
    assert str(answer).endswith("The new trace takes any size there: `v` f32[?,3].")
    f(ll.ones((5, 3)), 1)
    assert asked(f, ll.ones((9, 3)), 1).entry is f.trace_cache[1]


def test_with_a_declared_signature() -> None:
    f = ll.function(lambda v: v, input_signature=[ll.TensorSpec((None, 3))], name="f")
    assert "would trace: first call" in str(asked(f, x))
    f(x)
    assert asked(f, [[1.0, 2.0, 3.0]]).hit
    assert asked(f, ll.ones((2, 4))).error.startswith("SignatureError: f: argument `v` must be TensorSpec((None, 3)")


def test_with_a_bound_on_the_cache() -> None:
    f = ll.function(lambda v: v, cache_size=1, name="f")
    assert "take the place" not in str(asked(f, x))
    f(x)
    assert "\nIt would take the place of trace #1 (test_prediction.py line " in str(asked(f, ll.ones((5,))))
    assert asked(f, x).notes == ()


def test_with_a_spent_budget() -> None:
    f = ll.function(lambda v: v, max_traces=1, name="f")
    f(x)
    answer = asked(f, ll.ones((5, 3)))
    assert answer.error.startswith("TraceBudgetError: `f` has its 1 trace (max_traces=1), and the call at")
    assert answer.miss.differences[0].path == "v"
    assert asked(f, x).hit


def test_while_functions_run_eagerly() -> None:
    f = ll.function(lambda v: v, name="f")
    f(x)
    with ll.config.run_functions_eagerly():
        answer = asked(f, x)
    assert not answer.hit
    assert str(answer) == ("`f` would run its Python code, and trace nothing.\nll.config.run_functions_eagerly is on.")
    assert asked(f, x).hit


def test_of_a_sparse_gradient_nothing_is_made_dense() -> None:
    table = ll.Variable(ll.ones((4, 2)))
    with ll.GradientTape() as tape:
        y = ll.sum(ll.nn.embedding(table, ll.constant([1, 2])))
    gradient = tape.gradient(y, table)
    f = ll.function(lambda g: g * 2)
    assert asked(f, gradient).miss is not None
    f(gradient)
    assert asked(f, gradient).hit


def test_arguments_that_do_not_fit_are_predicted_too() -> None:
    f = ll.function(lambda v, n=1: v, name="f")
    assert str(asked(f)) == "`f` would raise TypeError: f() missing 1 required positional argument: 'v'"
    assert "SignatureError: f: argument `n`: a set cannot be part of a cache key" in str(asked(f, x, {1}))


def test_what_has_changed_since_the_trace_is_named() -> None:
    settings = {f"s{i}": i / 2 for i in range(5)}

    @ll.function
    def f(v: Any) -> Any:
        return v * settings["s0"] * settings["s1"] * settings["s2"] * settings["s3"] * settings["s4"]

    f(x)
    assert asked(f, x).notes == ()
    for name in settings:
        settings[name] += 1.0
    notes = asked(f, x).notes
    assert len(notes) == 4
    assert notes[0] == "It would not see that `settings['s0']` (item) was 0.0 then and is 1.0 now."
    assert notes[-1] == "And 2 more: ll.explain.baked."


def test_what_cannot_be_read_is_named() -> None:
    names: dict[str, Any] = {"S": 2.0}
    exec("def helper(v):\n    return v * S", names)
    helper = names["helper"]
    f = ll.function(lambda v: helper(v) + 0.0, name="f")
    assert asked(f, x).notes == ()  # it would trace
    f(x)
    names["S"] = 3.0
    changed, unknown = asked(f, x).notes
    assert changed == "It would not see that `S` (global) was 2.0 then and is 3.0 now."  # which its instructions tell
    assert unknown == "What `helper` (<string> line 1) reads is not known: its source cannot be read."

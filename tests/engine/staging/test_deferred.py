"""Deferred captures: looked up at each call, and checked (behaviour 150)."""

from __future__ import annotations

from typing import Any

import pytest

import limelight as ll

VALUE: Any = ll.constant([1.0, 2.0])


@pytest.fixture(autouse=True)
def put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "VALUE", VALUE)
    monkeypatch.setitem(globals(), "scaled", ll.function(scaled.python_function))


@ll.function
def scaled(x: Any) -> Any:
    return x * ll.deferred(lambda: VALUE, ll.TensorSpec((None,), "float32"))


def test_150_a_deferred_capture_is_looked_up_at_each_call() -> None:
    global VALUE
    assert scaled(ll.constant(2.0)).tolist() == [2.0, 4.0]
    VALUE = ll.constant([3.0, 4.0, 5.0])
    assert scaled(ll.constant(2.0)).tolist() == [6.0, 8.0, 10.0]
    assert scaled.trace_count == 1
    assert "f32[?]" in scaled.trace_cache[0].graph.text()
    assert not ll.explain.baked(scaled).changed


def test_150_values_are_checked_at_the_call() -> None:
    global VALUE
    scaled(ll.constant(2.0))
    VALUE = ll.constant([1, 2])
    with pytest.raises(ll.errors.DTypeError, match=r"is i32\[2\], the trace needs f32\[\?\] .*test_deferred.py line"):
        scaled(ll.constant(2.0))
    VALUE = ll.constant(1.0)
    with pytest.raises(ll.errors.ShapeError, match=r"is f32\[\], the trace needs"):
        scaled(ll.constant(2.0))
    VALUE = [7.0]
    assert scaled(ll.constant(2.0)).tolist() == [14.0]


def test_150_through_an_outer_function_branches_and_loops() -> None:
    global VALUE

    @ll.function
    def outer(x: Any) -> Any:
        y = ll.cond(ll.sum(x) > 0.0, lambda: scaled(x), lambda: x)
        return ll.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s + scaled(x)), (ll.constant(0), y))[1]

    x = ll.ones((2,))
    assert outer(x).tolist() == [3.0, 6.0]
    VALUE = ll.constant([10.0, 20.0])
    assert outer(x).tolist() == [30.0, 60.0]
    assert outer.trace_count == 1


def test_150_gradients_reach_the_tensor_that_was_looked_up() -> None:
    global VALUE
    scaled(ll.constant(3.0))
    VALUE = ll.constant([5.0, 6.0])
    with ll.GradientTape() as tape:
        tape.watch(VALUE)
        y = ll.sum(scaled(ll.constant(3.0)))
    assert tape.gradient(y, VALUE).tolist() == [3.0, 3.0]


def test_150_a_variable_a_number_and_a_spec_from_now() -> None:
    v, rate = ll.Variable(2.0), [0.5]
    f = ll.function(lambda x: x * ll.deferred(lambda: v) + ll.deferred(lambda: rate[0]))
    assert f(ll.constant(1.0)).item() == 2.5
    v.assign(3.0)
    rate[0] = 1.5
    assert f(ll.constant(1.0)).item() == 4.5
    assert f.trace_count == 1


def test_150_outside_a_trace_and_with_bad_arguments() -> None:
    assert ll.deferred(lambda: VALUE) is VALUE
    with pytest.raises(ll.errors.ArgumentError, match="lambda: value"):
        ll.deferred(VALUE)
    with pytest.raises(ll.errors.ArgumentError, match=r"ll\.TensorSpec"):
        ll.deferred(lambda: VALUE, "float32")  # type: ignore[arg-type]


def test_150_on_a_hunt_for_nan() -> None:
    global VALUE
    f = ll.function(lambda x: ll.log(x * ll.deferred(lambda: VALUE)))
    f(ll.constant(1.0))
    VALUE = ll.constant([0.0, 1.0])
    assert ll.explain.nan(f, ll.constant(1.0)).op == "log"

"""Section 4.1, item 25: the switch that makes staged functions run their Python code on every call."""

from __future__ import annotations

import bdb
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import SignatureError, StateCreationError

x2 = ll.constant(2.0)


def both_ways(function: ll.function) -> list[Callable[..., Any]]:
    """Calls with the global switch on, and with the function's own."""

    def globally(*args: Any) -> Any:
        with ll.config.run_functions_eagerly():
            return function(*args)

    def by_itself(*args: Any) -> Any:
        function.run_eagerly = True
        try:
            return function(*args)
        finally:
            function.run_eagerly = False

    return [globally, by_itself]


@pytest.mark.parametrize("way", [0, 1])
def test_025_the_body_runs_on_every_call_with_values(way: int) -> None:
    seen: list[float] = []

    @ll.function
    def f(x: Any) -> Any:
        seen.append(x.item())
        return {"twice": x * 2, "three": 3, "none": None}

    call = both_ways(f)[way]
    found = [call(x2), call(ll.constant(5.0))]
    assert seen == [2.0, 5.0]
    assert [y["twice"].item() for y in found] == [4.0, 10.0]
    assert isinstance(found[0]["three"], ll.Tensor)  # as from a graph
    assert found[0]["none"] is None
    assert f.trace_count == 0
    assert len(f.trace_cache) == 0


@pytest.mark.parametrize("way", [0, 1])
def test_025_a_function_that_was_traced_runs_eagerly_and_goes_back(way: int) -> None:
    ran: list[int] = []

    @ll.function
    def f(x: Any) -> Any:
        ran.append(1)
        return x + 1

    for _ in range(3):
        f(x2)  # by now on the shortest path
    assert len(ran) == 1
    both_ways(f)[way](x2)
    assert len(ran) == 2
    assert f(x2).item() == 3.0
    assert len(ran) == 2
    assert f.trace_count == 1


def test_025_the_switch_as_an_option_and_for_methods() -> None:
    class Model:
        def __init__(self) -> None:
            self.calls = 0

        @ll.function(run_eagerly=True)
        def step(self, x: Any) -> Any:
            self.calls += 1
            return x * 2

        @ll.function
        def other(self, x: Any) -> Any:
            self.calls += 1
            return x * 2

    model = Model()
    assert [model.step(x2).item(), model.step(x2).item()] == [4.0, 4.0]
    assert model.calls == 2
    model.other(x2)
    Model.other.run_eagerly = True
    model.other(x2)
    model.other(x2)
    assert model.calls == 5


def test_025_the_debugger_stops_in_the_body() -> None:
    @ll.function
    def f(x: Any) -> Any:
        y = x * 2
        return y + 1

    f(x2)
    stopped: list[tuple[str, float]] = []

    class Debugger(bdb.Bdb):
        def user_line(self, frame: Any) -> None:
            if frame.f_code.co_name == "f" and "y" in frame.f_locals:
                stopped.append((frame.f_code.co_name, frame.f_locals["y"].item()))

    before = sys.gettrace()
    debugger = Debugger()
    try:
        with ll.config.run_functions_eagerly():
            debugger.runcall(f, x2)
    finally:
        sys.settrace(before)
    assert stopped == [("f", 4.0)]


@pytest.mark.parametrize("way", [0, 1])
def test_025_arguments_are_cast_by_the_input_signature(way: int) -> None:
    seen: list[Any] = []

    @ll.function(input_signature=[ll.TensorSpec((None,), "float32")])
    def f(x: Any) -> Any:
        seen.append(x)
        return x

    call = both_ways(f)[way]
    assert call([1, 2]).dtype == ll.float32
    assert isinstance(seen[0], ll.Tensor)
    with pytest.raises(SignatureError, match="argument `x` must be"):
        call(np.zeros((2, 2), np.float32))
    assert len(seen) == 1


@pytest.mark.parametrize("way", [0, 1])
def test_025_arrays_arrive_as_tensors_and_results_must_be_returnable(way: int) -> None:
    @ll.function
    def f(x: Any) -> Any:
        return type(x).__name__ if x.shape == (1,) else x

    call = both_ways(f)[way]
    assert call(np.zeros(2, np.float32)).shape == (2,)
    with pytest.raises(SignatureError, match="returns a str at `result`"):
        call(np.zeros(1, np.float32))


@pytest.mark.parametrize("way", [0, 1])
def test_025_variables_may_be_created_on_the_first_call_only(way: int) -> None:
    made: list[Any] = []

    @ll.function
    def once(x: Any) -> Any:
        if not made:
            made.append(ll.Variable(1.0))
        return x + made[0]

    @ll.function
    def always(x: Any) -> Any:
        return x + ll.Variable(1.0)

    call = both_ways(once)[way]
    assert [call(x2).item(), call(x2).item()] == [3.0, 3.0]
    bad = both_ways(always)[way]
    bad(x2)
    with pytest.raises(StateCreationError, match="first call only"):
        bad(x2)


def test_025_gradients_and_nested_functions() -> None:
    v = ll.Variable(3.0)

    @ll.function
    def inner(x: Any) -> Any:
        return x * v

    @ll.function
    def outer(x: Any) -> Any:
        return inner(x) * x

    with ll.config.run_functions_eagerly(), ll.GradientTape() as tape:
        y = outer(x2)
    assert tape.gradient(y, v).item() == 4.0
    assert (outer.trace_count, inner.trace_count) == (0, 0)


def test_025_the_switch_is_put_back_after_an_error() -> None:
    @ll.function
    def f(x: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), ll.config.run_functions_eagerly():
        f(x2)
    ll.config.run_functions_eagerly(True)
    ll.config.run_functions_eagerly(True)
    ll.config.run_functions_eagerly(False)
    ran: list[int] = []
    g = ll.function(lambda x: ran.append(1) or x)
    g(x2)
    g(x2)
    assert len(ran) == 1


def test_025_bodies_of_control_flow_run_eagerly_too_at_their_own_lines() -> None:
    seen: list[tuple[str, float, int]] = []

    def note(where: str, v: Any) -> Any:
        frame = sys._getframe(1)
        seen.append((where, v.item(), frame.f_lineno - frame.f_code.co_firstlineno))
        return v

    def f(x: Any) -> Any:
        while x < 3:
            x = note("while", x) + 1
        y = ll.cond(x > 0, lambda: note("cond", x), lambda: x)
        y = ll.switch(1, [lambda: x, lambda: note("switch", y)])
        y = ll.while_loop(lambda i, s: i < 1, lambda i, s: (i + 1, note("while_loop", s)), (0, y))[1]
        return ll.scan(lambda s, v: (note("scan", s + v), None), y, ll.arange(2.0))[0]

    staged = ll.function(autograph=True)(f)
    expected = f(x2).item()
    lines, seen[:] = list(seen), []
    for call in both_ways(staged):
        assert call(x2).item() == expected
        assert seen == lines
        seen.clear()
    assert [where for where, _, _ in lines] == ["while", "cond", "switch", "while_loop", "scan", "scan"]
    assert staged.trace_count == 0

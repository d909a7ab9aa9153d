"""Tapes and accumulators asked for what they cannot have seen: refused, at the user's line, with nothing changed."""

from __future__ import annotations

from typing import Any

import pytest

import limelight as ll
from limelight.errors import TapeError

X = ll.constant([1.0, 2.0])


def recorded() -> tuple[ll.GradientTape, ll.Tensor]:
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = X * X
    return tape, y


ASKED: dict[str, Any] = {
    "gradient": lambda tape, y, x: tape.gradient(y, x),
    "zeros": lambda tape, y, x: tape.gradient(y, x, unconnected_gradients="zero"),
    "nest": lambda tape, y, x: tape.gradient({"y": y}, [None, x]),
    "jacobian": lambda tape, y, x: tape.jacobian(y, x),
    "row by row": lambda tape, y, x: tape.jacobian(y, x, vectorized=False),
    "batch": lambda tape, y, x: tape.batch_jacobian(y.reshape((2, 1)), x.reshape((2, 1))),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_tape_that_was_never_entered_is_refused(ask: Any) -> None:
    tape = ll.GradientTape(persistent=True)
    tape.watch(X)
    with pytest.raises(TapeError, match=r"never entered.*with ll.GradientTape\(\) as tape"):
        ask(tape, X * X, X)
    with tape:  # and may be entered still
        y = X * X
    assert tape.gradient(y, X).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("within", [ll.function, ll.vectorize], ids=["staged", "vectorized"])
def test_a_tape_from_outside_does_not_know_arguments(ask: Any, within: Any) -> None:
    tape, y = recorded()
    asked = within(lambda y, x: ask(tape, y, x))
    args = (ll.stack([y, y]), ll.stack([X, X])) if within is ll.vectorize else (y, X)
    with pytest.raises(TapeError, match=r"was outside of .* has never seen"):
        asked(*args)
    assert tape.gradient(y, X).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("known", ["target", "source"])
def test_one_of_both_is_not_enough(known: str) -> None:
    tape, y = recorded()
    ask = (lambda a: tape.gradient(y, a)) if known == "target" else (lambda a: tape.gradient(a, X))
    with pytest.raises(TapeError, match="has never seen the argument `a`"):
        ll.function(ask)(X if known == "target" else y)


def test_what_is_closed_over_is_known() -> None:
    tape, y = recorded()
    v = ll.Variable(3.0)
    with ll.GradientTape() as of_v:
        z = v * v
    assert ll.function(lambda: tape.gradient(y, X))().tolist() == [2.0, 4.0]
    assert ll.function(lambda: of_v.gradient(z, v))().item() == 6.0
    assert ll.function(lambda x: x * tape.gradient(y, X))(X).tolist() == [2.0, 8.0]


def test_a_tape_of_the_trace_around_is_known_in_branches_loops_and_functions_within() -> None:
    @ll.function
    def outer(x: Any) -> Any:
        with ll.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
            unused = ll.ones(2)
        g = ll.cond(ll.sum(x) > 0.0, lambda: tape.gradient(y, x), lambda: x)
        h = ll.function(lambda: tape.gradient(y, x))()
        assert tape.gradient(y, unused) is None
        assert tape.gradient(unused, x) is None
        return g + h

    assert outer(X).tolist() == [4.0, 8.0]


def test_a_tape_of_the_trace_around_does_not_know_arguments_of_a_function_within() -> None:
    @ll.function
    def outer(x: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            return ll.function(tape.gradient)(y, x)

    with pytest.raises(TapeError, match="outside of the trace of"):
        outer(X)


@pytest.mark.parametrize("staged", [False, True])
def test_a_tape_of_a_trace_that_is_over_does_not_know_results(staged: bool) -> None:
    kept: list[Any] = []

    @ll.function
    def f(x: Any) -> Any:
        with ll.GradientTape(persistent=True) as tape:
            y = x * x
        kept.append(tape)
        return y

    y = f(X)

    def ask() -> Any:
        return kept[0].gradient(y, X)

    with pytest.raises(TapeError, match="is over"):
        ll.function(ask)() if staged else ask()


def test_an_accumulator_is_told_of_the_same_ways() -> None:
    accumulator = ll.ForwardAccumulator(X, ll.ones(2))
    with pytest.raises(TapeError, match="never entered"):
        accumulator.jvp(X * X)
    with accumulator:
        y = X * X
    assert accumulator.jvp(y).tolist() == [2.0, 4.0]
    assert accumulator.jvp(ll.ones(2)) is None
    for within in (ll.function, ll.vectorize):
        with pytest.raises(TapeError, match="was outside of"):
            within(lambda y: accumulator.jvp(y, unconnected_gradients="zero"))(y)

"""Section 4.1, what tracing means: behaviours 9 to 14."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import Here, ops_of

import limelight as ll
from limelight.core import dispatch
from limelight.errors import SymbolicValueError

x3 = ll.constant(3.0)


# 9 Randomness


def test_009_foreign_randomness_is_frozen_and_ours_is_not() -> None:
    foreign = ll.function(lambda: ll.zeros(()) + float(np.random.rand()))
    with pytest.warns(ll.errors.HostRandomnessWarning, match=r"np\.random\.rand"):
        first = foreign().item()
    assert foreign().item() == first
    ours = ll.function(lambda: ll.random.normal((4,)))
    outer = ll.function(lambda: ours() + 0)
    for f in (ours, outer):
        assert f().tolist() != f().tolist()
        assert f.trace_count == 1


def test_009_each_iteration_of_a_loop_draws_anew() -> None:
    @ll.function
    def f() -> Any:
        body = lambda i, last, now: (i + 1, now, ll.random.uniform(()))  # noqa: E731
        return ll.while_loop(lambda i, *_: i < 3, body, (0, ll.zeros(()), ll.zeros(())))[1:]

    last, now = f()
    assert last.item() != now.item()


def test_009_a_seed_set_after_tracing_is_honoured() -> None:
    f = ll.function(lambda: ll.random.normal((3,)))
    f()
    ll.random.seed(7)
    first = f().tolist()
    ll.random.seed(7)
    assert f().tolist() == first
    ll.random.seed(7)
    assert ll.random.normal((3,)).tolist() == first


# 10 Python's side effects


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
def test_010_python_effects_happen_once_for_each_trace() -> None:
    calls: list[Any] = []

    @ll.function
    def f(a: Any) -> Any:
        calls.append(a)
        return a + 1

    for _ in range(3):
        f(x3)
    assert len(calls) == 1
    f(ll.ones((2,)))
    assert len(calls) == f.trace_count == 2
    f.python_function(x3)
    assert len(calls) == 3
    assert calls[-1] is x3


def test_010_creating_state_runs_the_body_twice_and_a_failing_trace_ran_it_too() -> None:
    calls: list[int] = []
    state: list[Any] = []

    @ll.function
    def f(a: Any) -> Any:
        calls.append(1)
        if not state:
            state.append(ll.Variable(1.0))
        return a * state[0]

    f(x3)
    assert len(calls) == f.trace_count == 2
    f(x3)
    assert len(calls) == 2

    @ll.function
    def fails(a: Any) -> Any:
        calls.append(1)
        raise ValueError("no")

    with pytest.raises(ValueError, match=r"^no$"):
        fails(x3)
    assert len(calls) == 3
    assert (fails.trace_count, len(fails.trace_cache)) == (1, 0)


# 11 Loops unroll


def test_011_python_loops_unroll_and_staged_loops_do_not() -> None:
    def unrolled(a: Any, n: int) -> Any:
        for _ in range(n):
            a = a + 1.0
        return a

    f = ll.function(unrolled)
    sizes = []
    for i, n in enumerate((10, 20)):
        assert f(x3, n).item() == 3.0 + n
        sizes.append(ops_of(f, i).count("add"))
    assert sizes == [10, 20]

    g = ll.function(lambda a, n: ll.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v + 1.0), (0, a))[1])
    assert g(x3, ll.constant(10)).item() == 13.0
    assert g(x3, ll.constant(20)).item() == 23.0
    assert (ops_of(g).count("while_loop"), g.trace_count) == (1, 1)


@pytest.mark.slow  # ten thousand ops
def test_011_ten_thousand_ops_meet_no_recursion_limit() -> None:
    @ll.function
    def deep(a: Any) -> Any:
        for _ in range(10_000):
            a = a * 1.0001
        return a

    x = ll.constant(1.0, dtype="float64")
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = deep(x)
    assert y.item() == pytest.approx(1.0001**10_000)
    assert tape.gradient(y, x).item() == pytest.approx(1.0001**10_000)
    graph = deep.trace_cache[0].graph
    assert ops_of(deep).count("multiply") == 10_000
    assert graph.text().count("\n") > 10_000
    assert graph.to_dot().count("multiply") >= 10_000


# 12 Python's `if` is baked in


def test_012_only_the_branch_taken_is_in_the_graph() -> None:
    f = ll.function(lambda a, wide: ll.exp(a) if wide else ll.tanh(a))
    f(x3, True)
    f(x3, False)
    assert ops_of(f, 0) == ["exp"]
    assert ops_of(f, 1) == ["tanh"]


# 13 Truth values


def _if(t: Any) -> Any:
    return t if t else -t


def _while(t: Any) -> Any:
    while t:
        t = t - 1
    return t


def _assert(t: Any) -> Any:
    assert t
    return t


@pytest.mark.parametrize(
    "ask",
    [
        _if,
        _while,
        _assert,
        lambda t: t and 1.0,
        lambda t: t or 1.0,
        lambda t: not t,
        lambda t: 0 < t < 3,
        lambda t: min(t, t + 1),
        lambda t: max([t, t + 1]),
        lambda t: sorted([t, t + 1])[0],
        lambda t: 1 if t in [t + 1, t + 2] else 0,
        lambda t: any([t > 0, t > 1]),
    ],
)
def test_013_a_symbolic_truth_value_is_refused_with_guidance(ask: Callable[..., Any]) -> None:
    with pytest.raises(SymbolicValueError, match=r"^bool\(\)") as caught:
        ll.function(ask)(x3)
    message = str(caught.value)
    assert (
        f"test_4_1_tracing.py line {ask.__code__.co_firstlineno + (ask.__name__ in ('_if', '_while', '_assert'))}"
        in message
    )
    for way in ("ll.cond", "ll.while_loop", "ll.py_func", "ll.where") if ask is not _assert else ("ll.debug.check",):
        assert way in message
    assert dispatch.stack() == dispatch.stack()[:1]


# 14 No value


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.numpy(),
        lambda t: t.item(),
        lambda t: t.tolist(),
        lambda t: np.asarray(t) + 1,
        lambda t: float(t) + 1,
        lambda t: int(t) + 1,
        lambda t: complex(t) + 1,
        lambda t: f"{t:.3f}",
        lambda t: range(t, 9),
    ],
)
def test_014_symbolic_tensors_refuse_to_give_values(ask: Callable[..., Any], here: Here) -> None:
    @ll.function
    def f(a: Any) -> Any:
        made = ll.astype(a + 1, "int32")
        ask(made)
        return a

    with pytest.raises(SymbolicValueError, match="has a value only when the graph of 'f' runs") as caught:
        f(x3)
    assert f"the result of astype, i32[] ({here(-6)}" in str(caught.value)  # where it was made
    assert f"(test_4_1_tracing.py line {ask.__code__.co_firstlineno}" in str(caught.value)  # where it was asked


def test_014_static_facts_stay_readable() -> None:
    facts: list[Any] = []

    @ll.function(input_signature=[ll.TensorSpec((None, 3), "float64")])
    def f(a: Any) -> Any:
        facts.extend([a.shape, a.dtype, a.ndim, a.size, a.T.shape])
        return a

    f(ll.ones((2, 3), dtype="float64"))
    assert facts == [(None, 3), np.dtype("float64"), 2, None, (3, None)]

"""Staged code goes over the passes that plain code would go over: tracing is no pass, and moves no iterator."""

from __future__ import annotations

from typing import Any

import pytest

import limelight as ll
from limelight.errors import ArgumentError, SymbolicValueError


def shuffled(seed: int | None) -> ll.data.Dataset:
    return ll.data.from_arrays(ll.arange(8)).shuffle(seed=seed).batch(4)


@pytest.mark.parametrize("seed", [3, None])
@pytest.mark.parametrize("autograph", [False, True])
def test_each_run_is_a_pass(seed: int | None, autograph: bool) -> None:
    def total(data: Any) -> Any:
        s = ll.zeros(4, dtype=ll.int32)
        for x in data:
            s = s * 10 + x
        return s

    ll.random.seed(1)
    plain = [total(data).tolist() for data in [shuffled(seed)] * 3]
    ll.random.seed(1)
    data = shuffled(seed)
    staged = ll.function(total, autograph=autograph)
    assert [staged(data).tolist() for _ in range(3)] == plain


def test_a_key_is_drawn_when_the_run_gets_there() -> None:
    def body(data: Any) -> Any:
        first = ll.random.normal((2,))
        return first, list(data), ll.random.normal((2,))

    def run(f: Any) -> Any:
        ll.random.seed(2)
        data = shuffled(None)
        return [ll.tree.map(lambda x: x.tolist(), f(data)) for _ in range(2)]

    assert run(ll.function(body)) == run(body)


def test_a_trace_that_fails_begins_no_pass() -> None:
    def body(data: Any, fails: bool) -> Any:
        items = list(data)
        if fails:
            raise RuntimeError
        return items

    data, other = shuffled(5), shuffled(5)
    f = ll.function(body)
    with pytest.raises(RuntimeError):
        f(data, True)
    assert [x.tolist() for x in f(data, False)] == [x.tolist() for x in other]


def test_what_tracing_alone_would_do_is_refused() -> None:
    iterator = iter(ll.data.from_arrays([1.0, 2.0]))
    state = iterator.get_state()
    for ask in (lambda x: iterator.get_state(), lambda x: iterator.set_state(state)):
        with pytest.raises(ArgumentError, match="staged code would be done once, while tracing"):
            ll.function(ask)(ll.ones(1))
    with pytest.raises(SymbolicValueError, match="make the dataset outside"):
        ll.function(lambda x: list(ll.data.from_arrays({"x": x})))(ll.ones(2))
    assert next(iterator).item() == 1.0

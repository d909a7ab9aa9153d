"""A Python function whose `__code__` is exchanged, as IPython's autoreload does, is traced anew."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll

X = ll.constant([1.0, 2.0])


class Scaled:
    def times(self, x: Any) -> Any:
        return x * 2.0


def doubled(x: Any) -> Any:
    return x * 2.0


def with_branch(x: Any) -> Any:
    return x * 2.0


def tripled(self: Any, x: Any) -> Any:
    return x * 3.0


STAGED: dict[str, tuple[Any, Callable[[], Any]]] = {
    "function": (doubled, lambda: ll.function(doubled)),
    "partial": (doubled, lambda: ll.function(functools.partial(doubled))),
    "bound method": (Scaled.times, lambda: ll.function(Scaled().times)),
    "autograph": (with_branch, lambda: ll.function(with_branch, autograph=True)),
}


@pytest.mark.parametrize("name", STAGED)
def test_the_next_call_runs_the_new_code(name: str) -> None:
    function, stage = STAGED[name]
    f, old = stage(), function.__code__
    try:
        for _ in range(3):
            assert f(X).tolist() == [2.0, 4.0]
        function.__code__ = tripled.__code__ if "method" in name else (lambda x: x * 3.0).__code__
        assert not f.explain(X).hit
        for _ in range(3):
            assert f(X).tolist() == [3.0, 6.0]
        assert len(f.trace_cache) == 1
    finally:
        function.__code__ = old
    assert f(X).tolist() == [2.0, 4.0]


def test_parameters_may_be_others() -> None:
    def f(x: Any) -> Any:
        return x + 1.0

    staged = ll.function(f)
    staged(X)
    f.__code__ = (lambda x, y: x + y).__code__
    assert staged(X, X).tolist() == [2.0, 4.0]

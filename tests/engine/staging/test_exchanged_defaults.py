"""A function among the arguments is another one when its code or its defaults have been exchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll


def applied_in_turn(fs: list[Callable[..., Any]], x: ll.Tensor) -> Any:
    for f in fs:
        x = f(x)
    return x


def scaled(k: float = 2.0) -> Any:
    def f(x: Any, k: Any = k, *, added: Any = 1.0) -> Any:
        return x * k + added

    return f


def other(x: Any, k: Any = 2.0, *, added: Any = 1.0) -> Any:
    return x - k - added


class Scaling:
    def scale(self, x: Any, k: float = 2.0) -> Any:
        return x * k


@pytest.fixture
def applied() -> Any:
    return ll.function(lambda f, x: f(x))


@pytest.mark.parametrize("in_list", [False, True])
@pytest.mark.parametrize(
    ("part", "new", "expected"),
    [
        ("__defaults__", (5.0,), 11.0),
        ("__defaults__", (ll.constant(4.0),), 9.0),
        ("__kwdefaults__", {"added": 3.0}, 7.0),
        ("__code__", other.__code__, -1.0),
    ],
)
def test_another_part_is_another_trace(applied: Any, in_list: bool, part: str, new: object, expected: float) -> None:
    f, x = scaled(), ll.constant(2.0)
    call, given = (ll.function(applied_in_turn), [f]) if in_list else (applied, f)
    for _ in range(6):  # until calls are found by guards
        assert call(given, x).item() == 5.0
    setattr(f, part, new)
    for _ in range(6):
        assert call(given, x).item() == expected


def test_what_they_were_finds_its_trace(applied: Any) -> None:
    f, x = scaled(), ll.constant(2.0)
    applied(f, x)
    traces = applied.trace_count
    f.__defaults__ = (3.0,)
    applied(f, x)
    f.__defaults__ = (2.0,)
    assert applied(f, x).item() == 5.0
    assert applied.trace_count == traces + 1


def test_keyword_defaults_changed_in_place(applied: Any) -> None:
    f, x = scaled(), ll.constant(2.0)
    assert applied(f, x).item() == 5.0
    f.__kwdefaults__["added"] = 0.0
    assert applied(f, x).item() == 4.0


def test_defaults_of_a_method(applied: Any) -> None:
    one, x = Scaling(), ll.constant(2.0)
    assert applied(one.scale, x).item() == 4.0
    try:
        Scaling.scale.__defaults__ = (7.0,)
        assert applied(one.scale, x).item() == 14.0
    finally:
        Scaling.scale.__defaults__ = (2.0,)


def test_the_reason_says_so(applied: Any) -> None:
    f, x = scaled(), ll.constant(2.0)
    applied(f, x)
    f.__defaults__ = (8.0,)
    assert "the same function, with other code or defaults" in str(applied.explain(f, x).miss)

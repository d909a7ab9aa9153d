"""Gradients through loops are None where they are None when the loop runs eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import limelight as ll

Function = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("retraces_are_meant")
parts = st.lists(st.sampled_from(["a", "b", "c", "row", "u", "v"]), max_size=2)


def product(names: list[str], values: dict[str, Any]) -> Any:
    result = ll.constant(0.5, "float64")
    for name in names:
        result = result * values[name] + ll.cos(values[name])
    return result


def gradients(loss: Function, stage: Function) -> list[Any]:
    u, v = ll.Variable(np.float64(0.3)), ll.Variable(np.float64(-0.4))
    given = [ll.constant(x, "float64") for x in (0.1, 0.2, 0.6)]
    xs = ll.constant([0.7, -0.3, 0.9], "float64")
    with ll.GradientTape() as tape:
        tape.watch([*given, xs])
        y = stage(lambda *given: loss(*given, u, v))(*given, xs)
    return [None if g is None else g.tolist() for g in tape.gradient(y, [*given, xs, u, v])]


def same(f: Function) -> Function:
    return f


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    nexts=st.tuples(parts, parts, parts),
    shows=parts,
    used=st.sets(st.integers(0, 3), min_size=1),
    steps=st.integers(1, 3),
)
def test_of_a_scan(nexts: Any, shows: list[str], used: set[int], steps: int) -> None:
    def loss(a: Any, b: Any, c: Any, xs: Any, u: Any, v: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            values = dict(zip(("a", "b", "c", "row", "u", "v"), (*carry, row, u, v), strict=True))
            return tuple(product(names, values) for names in nexts), product(shows, values)

        carry, y = ll.scan(step, (a, b, c), xs[:steps])
        return [ll.sum(x) for i, x in enumerate((*carry, y)) if i in used]

    for a, b in zip(gradients(loss, ll.function), gradients(loss, same), strict=True):
        assert (a is None) == (b is None)
        assert a is None or a == pytest.approx(b)


def test_of_a_while_loop() -> None:
    def loss(a: Any, b: Any, c: Any, xs: Any, u: Any, v: Any) -> Any:
        step = lambda i, a, b, c: (i + 1, a * u, b * ll.stop_gradient(c), c * v)  # noqa: E731
        return ll.while_loop(lambda i, *_: i < 2, step, (0, a, b, c))[1:3]

    found = gradients(loss, ll.function)
    assert found == gradients(loss, same)
    assert [g is None for g in found] == [False, False, True, True, False, True]


def test_of_a_loop_for_many_examples() -> None:
    def loss(a: Any, b: Any, c: Any, xs: Any, u: Any, v: Any) -> Any:
        def power(x: Any) -> Any:
            step = lambda i, p, q: (i + 1, p + x * u, q * v)  # noqa: E731
            return ll.while_loop(lambda i, p, q: p < 2.0, step, (0, b, c))[1]

        return ll.sum(ll.vectorize(power)(xs + 0.5))

    found, wanted = gradients(loss, ll.function), gradients(loss, same)
    assert found == wanted
    assert [g is None for g in found] == [True, False, True, False, False, True]

"""Two traces of one call are compared (behaviour 168)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import limelight as ll

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.HostRandomnessWarning")

STATE = {"calls": 0}
V = ll.Variable(2.0)


def counting(x: Any) -> Any:
    STATE["calls"] += 1
    return ll.exp(x) if STATE["calls"] % 2 else ll.log(x)


def growing(x: Any) -> Any:
    STATE["calls"] += 1
    for _ in range(STATE["calls"]):
        x = x + 1.0
    return x


def inside(x: Any) -> Any:
    return ll.cond(x > 0.0, lambda: x * np.random.normal(), lambda: x)


CASES = {
    "random": (lambda x: x + np.random.normal(), "constant"),
    "time": (lambda x: x * (time.perf_counter_ns() % 1_000_003), "constant"),
    "branch": (counting, "op"),
    "length": (growing, "length"),
    "inside": (inside, "constant"),
}


@pytest.mark.parametrize("name", CASES)
def test_168_what_differs_is_named_with_its_line(name: str) -> None:
    body, kind = CASES[name]
    f = ll.function(body)
    found = ll.explain.purity(f, ll.constant(1.0))
    assert not found
    assert found.records[0].kind == kind
    assert found.records[0].line is not None
    assert found.records[0].line.file == __file__
    assert "did not trace twice alike" in str(found)
    assert found.effects.records


def test_168_state_that_tracing_changes_is_named() -> None:
    found = ll.explain.purity(ll.function(counting), ll.constant(1.0))
    assert "STATE['calls']" in "".join(record.first for record in found.records if record.kind == "state")


def test_168_pure_functions_are_and_nothing_is_counted() -> None:
    @ll.function
    def f(x: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = ll.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * x * V), (ll.constant(0), x))[1]
        return tape.gradient(y, x) + ll.random.normal(())

    f(ll.constant(1.0))
    for _ in range(2):
        assert ll.explain.purity(f, ll.constant(1.0))
    assert str(ll.explain.purity(f, ll.constant(1.0))) == "`f` traced twice alike."
    assert (f.trace_count, len(f.trace_cache), f.trace_cache[0].hits) == (1, 1, 0)
    assert not ll.explain.purity(counting, ll.constant(1.0))  # staged for the question
    with pytest.raises(ll.errors.ArgumentError, match="a function or a module"):
        ll.explain.purity(3, ll.constant(1.0))  # type: ignore[arg-type]

"""What the executor of a trace gains over the plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError
from limelight.executors import base
from limelight.explain import tier_gain
from limelight.staging.function import Function
from limelight_widgets.folds.trace_cache import tier_text

TIER = "step"  # which is always there; the others are measured alike


@pytest.fixture(autouse=True)
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tier_gain, "_MOST", 3)


def staged(function: Any, *args: Any, executor: str = TIER) -> Function:
    with ll.config.executor(executor):
        run: Function = ll.function(function)
        run(*args)
    return run


def test_it_is_measured_on_copies_and_shown_beside_the_executor() -> None:
    v = ll.Variable(ll.ones(3))

    def update(x: Any) -> Any:
        v.assign_add(x + ll.random.normal((3,)))
        return v * 2.0

    x = ll.ones(3)
    run = staged(update, x)
    before, state = v.numpy().copy(), ll.random.default_generator().state.numpy().copy()
    (entry,) = run.trace_cache
    assert tier_text(entry) == TIER
    found = ll.explain.gain(run, x)
    assert (found.entry, found.tier) == (entry, TIER)
    assert found.ratio == found.seconds_of_plan / found.seconds
    assert tier_text(entry) == f"{TIER}, {found.words}"
    assert str(found).startswith("Trace #1 of `update` takes ")
    assert found.words in str(found)
    np.testing.assert_array_equal(v.numpy(), before)
    np.testing.assert_array_equal(ll.random.default_generator().state.numpy(), state)
    assert entry.hits == 0


def test_tables_run_on_the_copies_themselves() -> None:
    if "loops" not in base.names():
        pytest.skip("limelight-native is not installed")
    v = ll.Variable(ll.ones(3))

    def update(x: Any) -> Any:
        return v.assign_add(ll.tanh(x * 2.0) * v)

    x = ll.ones(3)
    run = staged(update, x, executor="loops")
    copies: dict[int, Any] = {}
    assert type(tier_gain._copied(v._data, copies)) is type(v._data)
    assert ll.explain.gain(run, x).tier == "loops"


@pytest.mark.parametrize(
    ("seconds", "of_plan", "words"),
    [
        (1e-5, 6.9e-5, "6.9 times as fast as plan"),
        (1e-5, 2.5e-4, "25 times as fast as plan"),
        (3e-5, 1e-5, "3.0 times as slow as plan"),
        (1e-5, 1.02e-5, "as fast as plan"),
    ],
)
def test_words(seconds: float, of_plan: float, words: str) -> None:
    function: Any = None
    assert tier_gain.Gain(function, function, "loops", seconds, of_plan).words == words


def test_what_cannot_be_compared_is_refused() -> None:
    x = ll.ones(3)
    with pytest.raises(ArgumentError, match="runs on plan"):
        ll.explain.gain(staged(lambda x: x + 1.0, x, executor="plan"), x)

    def prints(x: Any) -> Any:
        ll.debug.print("{}", x)
        return x + 1.0

    with pytest.raises(ArgumentError, match="would do again"):
        ll.explain.gain(staged(prints, x), x)

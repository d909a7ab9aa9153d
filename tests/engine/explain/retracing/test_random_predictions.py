"""Predictions of random calls of functions of all kinds come true, and asking leaves no trace of any kind."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import limelight as ll
from limelight import events

pytestmark = pytest.mark.usefixtures("retraces_are_meant")


class Thing:
    """Something that is keyed by identity."""


class Model:
    rate = 2.0

    @ll.function
    def step(self, *args: Any, **options: Any) -> Any:
        return self.rate

    def plain(self, *args: Any, **options: Any) -> Any:
        return self.rate


KINDS = [kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)]
KINDS = [
    kind for kind in KINDS if kind not in (events.Allocated, events.Freed)
]  # what an argument is cast to, for a moment
CLOSED_OVER = ll.Variable(5.0)
LEAVES: list[Any] = [
    *(0, 1, -1, -2, True, 1.0, 0.0, -0.0, float("nan"), None, "a", "b", 1j, ..., range(2), slice(0, 1)),
    *(CLOSED_OVER, ll.Variable(1.0), ll.Variable(2.0), ll.Variable([1.0]), ll.Variable(1.0, trainable=False)),
    *(Thing(), Thing(), len, ll.tanh, Model().plain, {1}, bytearray(b"x"), object()),
]


def leaf(draws: random.Random) -> Any:
    shape = tuple(draws.randrange(3) for _ in range(draws.randrange(3)))
    kind = draws.randrange(8)
    if kind < 2:
        return ll.ones(shape, dtype=draws.choice(["float32", "int32"]))
    if kind == 2:
        return ll.ones((2,)).to(draws.choice(["CPU:0", "CPU:1"]))
    if kind == 3:
        return np.ones(shape, draws.choice(["f4", "i8", "?"]))
    return Thing() if kind == 4 else draws.choice(LEAVES)


def tree(draws: random.Random, depth: int = 0) -> Any:
    if depth > 2 or draws.random() < 0.6:
        return leaf(draws)
    kind, inner = draws.randrange(3), [tree(draws, depth + 1) for _ in range(draws.randrange(3))]
    return dict(zip(["a", "b"], inner, strict=False)) if kind == 0 else inner if kind == 1 else tuple(inner)


def options(draws: random.Random) -> dict[str, Any]:
    choices: dict[str, Any] = {"reduce_retracing": True, "cache_size": draws.randrange(1, 4), "run_eagerly": True}
    choices |= {"max_traces": draws.randrange(1, 4), "autograph": True}
    return {name: value for name, value in choices.items() if draws.random() < 0.2}


def function(draws: random.Random) -> Any:
    made: list[Any] = []
    state = {"rate": 1.0}
    inner = ll.function(lambda n: 2.0)

    def creates(*args: Any, **more: Any) -> Any:
        if not made:
            made.append(ll.Variable(1.0))
        return made[0] + 1.0

    def nests(a: Any = 1, b: Any = 2, *rest: Any, c: Any = 3, **more: Any) -> Any:
        return inner(len(rest)) + inner(len(more))

    def plain(x: Any, y: Any = 2.0, *, z: Any = "a") -> Any:
        state["rate"] += 1.0
        return state["rate"]

    if draws.random() < 0.2:
        return Model().step
    if draws.random() < 0.2:
        return ll.function(lambda x, n=1: x, input_signature=[ll.TensorSpec((None,), "float32")])
    closing = lambda *args, **more: CLOSED_OVER + 1.0  # noqa: E731  # no body to speak of
    return ll.function(draws.choice([creates, nests, plain, closing, Model().plain]), **options(draws))


def state_of(f: Any) -> Any:
    cache, history = f.trace_cache, f.trace_cache.history
    hits = [entry.hits for entry in cache]
    return f.trace_count, hits, len(history.misses), len(history.ghosts), history.calls, cache.by_types


def asked(f: Any, args: Any, given: dict[str, Any]) -> Any:
    """The prediction, which changes nothing and sends no event."""
    before, seen = state_of(f), []
    with events.listen(seen.append, *KINDS):
        answer = f.explain(*args, **given)
    assert str(answer)
    assert state_of(f) == before
    assert not seen
    return answer


@pytest.mark.slow  # hundreds of random calls
@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(st.integers(0, 2**32))
def test_predictions_come_true(seed: int) -> None:
    draws = random.Random(seed)
    ll.config.set_virtual_devices(CPU=2)
    f = function(draws)
    known = [([tree(draws) for _ in range(draws.randrange(3))], {}) for _ in range(3)]
    known += [([], {name: tree(draws)}) for name in ("x", "c")]
    for _ in range(8):
        args, given = draws.choice(known)
        if draws.random() < 0.1:
            f.clear_cache()
        with contextlib.ExitStack() as scopes:
            if draws.random() < 0.2:
                scopes.enter_context(ll.device("CPU:1"))
            if draws.random() < 0.05:
                scopes.enter_context(ll.config.run_functions_eagerly())
            answer = asked(f, args, given)
            made, count, error = f.trace_cache.history.made, f.trace_count, ""
            try:
                f(*args, **given)
            except (TypeError, ll.errors.LimelightError) as raised:
                error = type(raised).__name__
        made = f.trace_cache.history.made - made
        assert answer.error.partition(":")[0] == error, answer
        assert made == (answer.miss is not None and not error), answer
        assert made or f.trace_count == count
        if made:
            assert ll.explain.retrace(f).records[-1].reason == answer.miss.reason

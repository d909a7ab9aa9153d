"""Section 4.2, differentiation: behaviours 36 and 67, higher orders from one persistent tape through staged code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import GradientError

ASKED_INSIDE = "ignore:gradient.. of a persistent tape inside its own block:UserWarning"


def wave(x: Any) -> Any:
    return ll.sin(ll.tanh(x * x)) * x


def looped(x: Any) -> Any:
    return ll.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, ll.sin(a * a) * x), (0, x))[1]


WAYS: dict[str, Callable[[Any], Any]] = {
    "call": ll.function(wave),
    "call of a call": ll.function(ll.function(wave)),
    "cond": ll.function(lambda x: ll.cond(x > 0, lambda: wave(x), lambda: x)),
    "py_func": ll.function(lambda x: ll.py_func(wave, [x], ll.TensorSpec((), "float64"))),
    "while_loop": ll.function(looped),
}


def orders(f: Callable[[Any], Any]) -> list[float]:
    """The first three derivatives at 0.5, from one tape."""
    y = x = ll.constant(0.5, "float64")
    found = []
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        for _ in range(3):
            y = tape.gradient(y, x)
            found.append(y.item())
    return found


@pytest.mark.filterwarnings(ASKED_INSIDE)
@pytest.mark.parametrize("way", WAYS)
def test_036_orders_from_one_persistent_tape_through_staged_code(way: str) -> None:
    np.testing.assert_allclose(orders(WAYS[way]), orders(looped if way == "while_loop" else wave), rtol=1e-12)


@pytest.mark.filterwarnings(ASKED_INSIDE)
def test_036_what_cannot_run_again_is_refused() -> None:
    x = ll.constant(0.5)

    @ll.function
    def noisy(x: Any) -> Any:
        return ll.exp(x * ll.random.uniform(()) * 2.0) * x

    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = noisy(x)
        slope = tape.gradient(y, x)
    with pytest.raises(GradientError, match="use a tape inside another one"):
        tape.gradient(slope, x)
    with ll.GradientTape() as outer:
        outer.watch(x)
        with ll.GradientTape() as inner:
            inner.watch(x)
            y = noisy(x)
        slope = inner.gradient(y, x)
    r = np.log(y.item() / 0.5) / 0.5  # y = x exp(r x)
    assert slope.item() == pytest.approx(np.exp(0.5 * r) * (1 + 0.5 * r), rel=1e-5)
    assert outer.gradient(slope, x).item() == pytest.approx(np.exp(0.5 * r) * (2 * r + 0.5 * r * r), rel=1e-5)

"""Code that is run later, for a gradient or by a graph, sees the names that it would have seen at once."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll

Function = Callable[..., Any]
again = ll.recompute_grad
weight: Any = None  # a global name that tests bind anew
shelf = SimpleNamespace(weight=None)


class Scaled:
    """Callable, with state in an attribute, a slot's way, a class, a list and a dictionary."""

    shared: ClassVar[Any] = None

    def __init__(self) -> None:
        self.own: Any = None
        self.listed: list[Any] = [None]
        self.keyed: dict[str, Any] = {}

    def __call__(self, v: Any) -> Any:
        return self.by_attribute(v)

    def by_attribute(self, v: Any) -> Any:
        return ll.sin(v) * self.own

    def by_class(self, v: Any) -> Any:
        return ll.sin(v) * self.shared

    def by_list(self, v: Any) -> Any:
        return ll.sin(v) * self.listed[0]

    def by_key(self, v: Any) -> Any:
        return ll.sin(v) * self.keyed["w"]


def by_global(v: Any) -> Any:
    return ll.sin(v) * weight


def by_helper(v: Any) -> Any:
    return by_global(v) * 1.0


def by_namespace(v: Any) -> Any:
    return ll.sin(v) * shelf.weight


def chained(x: Any, weights: list[Any], wrap: Function, way: str) -> Any:
    """sin(v) * w for each w, by functions that find w in one way or another."""
    global weight  # what is tested
    scaled = Scaled()
    holder = [None]
    for w in weights:
        weight = shelf.weight = scaled.own = Scaled.shared = scaled.listed[0] = scaled.keyed["w"] = holder[0] = w

        def nested(v: Any) -> Any:
            return ll.sin(v) * w  # noqa: B023  # what is tested

        ways: dict[str, Function] = {
            "closure": lambda v: ll.sin(v) * w,  # noqa: B023  # the same
            "nested": lambda v: nested(v) * 1.0,
            "partial": functools.partial(lambda v, factor: nested(v) * factor, factor=1.0),
            "list": lambda v: ll.sin(v) * holder[0],
            "global": by_global,
            "helper": by_helper,
            "namespace": by_namespace,
            "object": scaled,
            "method": scaled.by_attribute,
            "class": scaled.by_class,
            "its list": scaled.by_list,
            "its key": scaled.by_key,
        }
        x = wrap(ways[way])(x)
    return x


WAYS = [
    *["closure", "nested", "partial", "list", "global", "helper", "namespace"],
    *["object", "method", "class", "its list", "its key"],
]


def slopes(f: Function, x: Any, weights: list[Any]) -> list[Any]:
    with ll.GradientTape(persistent=True) as outer:
        outer.watch([x, *weights])
        with ll.GradientTape(persistent=True) as tape:
            tape.watch([x, *weights])
            y = f(x, weights)
        found = tape.gradient(y, [x, *weights], unconnected_gradients="zero")
    return [*found, outer.gradient(found[0], x)]


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=3)
@given(weights=st.lists(st.floats(0.5, 2.0), min_size=1, max_size=4), kind=st.sampled_from(["tensor", "number"]))
def test_what_is_run_again_finds_names_as_they_were(way: str, weights: list[float], kind: str) -> None:
    ws = [ll.constant(w, "float64") if kind == "tensor" else w for w in weights]
    tensors = [w for w in ws if kind == "tensor"]
    x = ll.constant(0.7, "float64")
    wraps: list[Function] = [lambda f: f, again, lambda f: again(again(f))]
    results = [slopes(lambda x, _, wrap=wrap: chained(x, ws, wrap, way), x, tensors) for wrap in wraps]
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    assert (weight, shelf.weight, Scaled.shared) == (ws[-1], ws[-1], ws[-1])  # and puts them back


def test_changes_of_plain_python_happen_once() -> None:
    seen, counts = [], {"n": 0}
    total = 0

    @again
    def f(v: Any) -> Any:
        nonlocal total
        total += 1
        seen.append(v)
        counts["n"] += 1
        return ll.sin(v) * total

    x = ll.constant(0.5)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(f(x))
    tape.gradient(y, x)
    assert (total, len(seen), counts["n"]) == (2, 2, 2)


def test_what_a_first_run_makes_is_there_in_the_second() -> None:
    class Lazy:
        def __init__(self) -> None:
            self.built, self.w = False, None
            self.cache: dict[str, Any] = {}
            self.made: list[Any] = []

        def __call__(self, v: Any) -> Any:
            if not self.built:
                self.w, self.built = ll.Variable(2.0), True
                self.made.append(ll.Variable(3.0))
            self.cache.setdefault("w", ll.Variable(5.0))
            return ll.sin(v) * self.w * self.made[0] * self.cache["w"]

    block, x = Lazy(), ll.constant(0.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = again(block)(x)
    g, *of_variables = tape.gradient(y, [x, block.w, block.made[0], block.cache["w"]])
    assert g.item() == 30.0
    assert [v.item() for v in of_variables] == [0.0, 0.0, 0.0]


def _drawn(v: Any) -> Any:
    return v * random.random()


def _stepped(v: Any, numbers: Any = itertools.count(1)) -> Any:  # noqa: B008  # what is tested
    return v * float(next(numbers))


def _from_a_buffer(v: Any, buffer: Any = np.ones(3, np.float32)) -> Any:  # noqa: B008
    buffer += 1.0
    return v * ll.constant(buffer)


def _other_ops(v: Any, numbers: Any = itertools.count()) -> Any:  # noqa: B008
    return ll.sin(v) if next(numbers) % 2 else ll.cos(v)


@pytest.mark.parametrize("fn", [_drawn, _stepped, _from_a_buffer, _other_ops])
def test_what_cannot_be_set_back_is_refused(fn: Function) -> None:
    x = ll.ones(3)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = again(fn)(x)
    with pytest.raises(ll.errors.GradientError, match="computes something else than in its first run"):
        tape.gradient(y, x)


def test_the_second_run_of_a_py_func_is_compared_too() -> None:
    x = ll.constant(2.0)
    F = ll.function(lambda x: ll.py_func(lambda t: t * t * random.random(), [x], "float32"))
    with ll.GradientTape() as outer, pytest.raises(ll.errors.GradientError, match="something else than in its first"):
        outer.watch(x)
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = F(x)
        outer.gradient(tape.gradient(y, x), x)


@pytest.mark.parametrize("stage", [lambda f: f, ll.function])
def test_the_rule_of_a_custom_gradient_finds_names_as_they_were_and_keeps_what_it_changes(stage: Function) -> None:
    calls, seen = 0, []

    def chain(x: Any, weights: Any) -> Any:
        for w in weights:

            @ll.custom_gradient
            def scaled(v: Any) -> Any:
                def grad(dy: Any) -> Any:
                    nonlocal calls
                    calls += 1
                    seen.append(1)
                    return dy * w  # noqa: B023  # what is tested

                return v * w, grad  # noqa: B023

            x = scaled(x)
        return x

    x = ll.constant(1.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = stage(chain)(x, (2.0, 3.0, 5.0))
    assert tape.gradient(y, x).item() == 30.0
    assert (calls, len(seen)) == (3, 3)


@pytest.mark.parametrize("stage", [lambda f: f, ll.function])
@pytest.mark.parametrize("helper", [False, True])
def test_a_py_func_finds_a_loops_variable_as_it_was_when_it_was_traced(stage: Function, helper: bool) -> None:
    @stage
    def f(x: Any) -> Any:
        for w in (2.0, 3.0, 5.0):

            def scaled(t: Any) -> Any:
                return t * w  # noqa: B023  # what is tested

            x = ll.py_func((lambda t: scaled(t)) if helper else scaled, [x], "float32")  # noqa: PLW0108
        return x

    assert f(ll.constant(1.0)).item() == 30.0


def test_a_py_func_sees_what_others_bind_anew() -> None:
    rate, calls = 2.0, 0

    def host(t: Any) -> Any:
        nonlocal calls
        calls += 1
        return t * rate

    F = ll.function(lambda x: ll.py_func(host, [x], "float32"))
    first = F(ll.constant(1.0)).item()
    rate = 3.0
    assert (first, F(ll.constant(1.0)).item(), calls) == (2.0, 3.0, 2)

"""Section 4.2, automatic differentiation: behaviours 28 to 36."""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import both, item

import limelight as ll
from limelight.core import dispatch
from limelight.errors import ArgumentError, DTypeError, ShapeError, TapeError

# 28 Watch, then record


def test_028_watched_tensors_have_gradients_and_others_none() -> None:
    x, c = ll.constant(3.0), ll.constant(2.0)
    with ll.GradientTape(persistent=True) as tape:
        early = c * x
        tape.watch(x)
        y = x * x + c
    assert tape.gradient(y, x).item() == 6.0
    assert tape.gradient(y, c) is None
    assert tape.gradient(early, x) is None


def test_028_every_leaf_of_a_nest_is_watched() -> None:
    nest = {"a": ll.constant(1.0), "b": [ll.constant(2.0), (ll.constant(3.0),)]}
    with ll.GradientTape() as tape:
        tape.watch(nest)
        y = nest["a"] * nest["b"][0] * nest["b"][1][0]
    g = tape.gradient(y, nest)
    assert [g["a"].item(), g["b"][0].item(), g["b"][1][0].item()] == [6.0, 3.0, 2.0]


# 29 Variables are watched when read


def test_029_trainable_variables_are_watched_when_read() -> None:
    v, frozen, unread = ll.Variable(3.0), ll.Variable(2.0, trainable=False), ll.Variable(1.0)
    with ll.GradientTape() as tape:
        y = v * v * frozen
    assert tape.watched_variables() == (v,) or [w is v for w in tape.watched_variables()] == [True]
    assert [item(g) for g in tape.gradient(y, [v, frozen, unread])] == [12.0, None, None]


def test_029_watching_of_accessed_variables_can_be_switched_off() -> None:
    v, w = ll.Variable(3.0), ll.Variable(2.0)
    with ll.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = v * w
    assert [item(g) for g in tape.gradient(y, [v, w])] == [None, 3.0]
    assert [x is w for x in tape.watched_variables()] == [True]


def test_029_watched_variables_come_in_order_and_survive_gradient() -> None:
    a, b, c = (ll.Variable(float(i), name=name) for i, name in enumerate("abc"))
    with ll.GradientTape() as tape:
        y = c * a * b * c
    names = lambda: [v.name for v in tape.watched_variables()]  # noqa: E731
    assert names() == ["c", "a", "b"]
    tape.gradient(y, a)
    assert names() == ["c", "a", "b"]
    tape.reset()
    assert names() == []


def test_029_a_read_two_calls_deep_is_reported() -> None:
    v, frozen = ll.Variable(3.0), ll.Variable(2.0, trainable=False)
    inner = ll.function(lambda a: a * v * frozen)
    outer = ll.function(lambda a: inner(a) + 1)
    for _ in range(2):  # tracing, and from the cache
        with ll.GradientTape() as tape:
            y = outer(ll.constant(5.0))
        assert [w is v for w in tape.watched_variables()] == [True]
        assert tape.gradient(y, v).item() == 10.0


# 30 Watching is local to a tape


def test_030_what_one_tape_watches_another_does_not() -> None:
    x = ll.constant(3.0)
    with ll.GradientTape() as outer:
        with ll.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        dy = inner.gradient(y, x)
    assert dy.item() == 27.0
    assert outer.gradient(dy, x) is None


# 31 What cannot be watched


@pytest.mark.parametrize("thing", [np.ones(3), 3.0, "x", None, object()])
def test_031_only_tensors_and_variables_can_be_watched(thing: Any) -> None:
    tape = ll.GradientTape()
    with pytest.raises(ArgumentError, match=f"got {type(thing).__name__}") as caught:
        tape.watch(thing)
    assert isinstance(caught.value, ValueError)
    assert "test_4_2.py line" in str(caught.value)


def test_031_watching_integers_warns_and_gives_none() -> None:
    i, x = ll.constant(3), ll.constant(2.0)
    with ll.GradientTape() as tape:
        with pytest.warns(UserWarning, match="int32 tensor has no effect") as caught:
            tape.watch([i, x])
        assert caught[0].filename == __file__
        y = x * x * ll.astype(i, "float32")
    assert [item(g) for g in tape.gradient(y, [i, x])] == [None, 12.0]


def test_031_targets_and_sources_that_are_strings_or_none_give_none_alone() -> None:
    x = ll.constant(3.0)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient("y", x) is None
    assert [item(g) for g in tape.gradient(["y", y], ["x", x, None])] == [None, 6.0, None]


@pytest.mark.parametrize("thing", [np.ones(3), np.float32(2), 2.0, object()])
def test_031_targets_and_sources_that_no_tape_knows_are_refused(thing: Any) -> None:
    x = ll.constant(3.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(ArgumentError, match=f"a source must be a tensor .*, got .*{type(thing).__name__}"):
        tape.gradient(y, [x, thing])
    with pytest.raises(ArgumentError, match=f"a target must be a tensor .*, got .*{type(thing).__name__}"):
        tape.gradient({"loss": thing}, x)
    assert tape.gradient(y, x).item() == 6.0, "a mistake does not use the tape up"


# 32 Identity


@both
def test_032_identity_corner_cases(stage: Callable[..., Any]) -> None:
    @stage
    def grads(x: Any) -> Any:
        with ll.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
        return [
            tape.gradient(x, x),
            tape.gradient([x, y], x),
            tape.gradient(y, [x, x]),
            tape.gradient([y, y], x),
            tape.gradient(y, [y, x]),
            tape.gradient([y, x], [y, x]),
        ]

    found = ll.nest.map_structure(lambda g: g.item(), grads(ll.constant(3.0)))
    assert found == [1.0, 7.0, [6.0, 6.0], 12.0, [1.0, 6.0], [1.0, 7.0]]


# 33 Structure


def test_033_gradients_have_the_structure_of_the_sources() -> None:
    Pair = namedtuple("Pair", "left right")
    x, unused = ll.constant(3.0), ll.constant(1.0)
    with ll.GradientTape() as tape:
        tape.watch((x, unused))
        y = x * x
    g = tape.gradient(y, {"p": Pair(x, [unused, x]), "t": (x,)})
    assert isinstance(g["p"], Pair)
    assert isinstance(g["p"].right, list)
    assert isinstance(g["t"], tuple)
    assert [item(h) for h in ll.nest.leaves_of(g)] == [6.0, None, 6.0, 6.0]


# 34 output_gradients


def test_034_output_gradients_are_weights() -> None:
    x, y = ll.constant(2.0), ll.constant(3.0)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        loss = x * y
        vector = ll.stack([x, x * x])
    assert tape.gradient([loss, x], x, output_gradients=[1.0, 2.0]).item() == 5.0
    assert tape.gradient([loss, x], x, output_gradients=[None, 1.0]).item() == 4.0
    assert tape.gradient([loss, vector], x, output_gradients=[None, [10.0, 100.0]]).item() == 3 + 10 + 400


def test_034_the_item_of_the_list() -> None:
    """For the loss x y, targets [loss, x] and weights [1, 2]: y + 2, which is 4 for y = 2."""
    x, y = ll.constant(3.0), ll.constant(2.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        loss = x * y
    assert tape.gradient([loss, x], x, output_gradients=[1.0, 2.0]).item() == 4.0


@both
@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (np.ones(2, "float32"), ShapeError, r"shape \(2,\) for a target of shape \(3,\)"),
        (np.ones((1, 3), "float32"), ShapeError, r"shape \(1, 3\)"),
        (1.0, ShapeError, r"shape \(\)"),
        (np.ones(3), DTypeError, "float64 for a target of float32"),
        ([np.ones(3, "float32")], ShapeError, r"shape \(1, 3\)"),
    ],
)
def test_034_output_gradients_never_broadcast(
    stage: Callable[..., Any], weights: Any, error: type[Exception], message: str
) -> None:
    @stage
    def f(x: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.gradient(y, x, output_gradients=weights)

    with pytest.raises(error, match=message) as caught:
        f(ll.ones((3,)))
    assert "test_4_2.py line" in str(caught.value)
    assert dispatch.active == []


def test_034_output_gradients_have_the_structure_of_the_target() -> None:
    x = ll.constant(2.0)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = {"a": x * 2, "b": [x * 3]}
    assert tape.gradient(y, x, output_gradients={"a": 1.0, "b": [10.0]}).item() == 32.0
    for wrong in ([1.0, 2.0], {"a": 1.0}, {"a": 1.0, "b": 1.0}):
        with pytest.raises(ArgumentError, match=r"`output_gradients.*structure"):
            tape.gradient(y, x, output_gradients=wrong)


# 35 One-shot and persistent


def test_035_a_tape_answers_once_unless_persistent() -> None:
    x = ll.constant(3.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).item() == 6.0
    with pytest.raises(TapeError, match="persistent=True") as caught:
        tape.gradient(y, x)
    assert isinstance(caught.value, RuntimeError)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert [tape.gradient(y, x).item() for _ in range(3)] == [6.0] * 3


def test_035_gradient_inside_its_own_block_stops_a_tape_that_answers_once() -> None:
    x = ll.constant(3.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        g = tape.gradient(y, x)
        assert not tape.active
        y * y
    assert g.item() == 6.0
    assert tape.entries == ()


def test_035_gradient_inside_a_persistent_tape_is_recorded_and_warns_once() -> None:
    x = ll.constant(3.0)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with pytest.warns(UserWarning, match="inside its own block") as caught:
            g = tape.gradient(y, x)
        assert caught[0].filename == __file__
        tape.gradient(y, x)  # warnings are errors here: this one is silent
    assert tape.gradient(g, x).item() == 2.0


# 36 Higher orders


@both
def test_036_tapes_nest(stage: Callable[..., Any]) -> None:
    @stage
    def orders(x: Any) -> Any:
        with ll.GradientTape() as t1:
            t1.watch(x)
            with ll.GradientTape() as t2:
                t2.watch(x)
                y = x * x
            dy = t2.gradient(y, x)
            used = y + dy  # an inner gradient as a value of the outer computation
        return dy, t1.gradient([dy, used], x)

    assert [t.item() for t in orders(ll.constant(3.0))] == [6.0, 2.0 + (6.0 + 2.0)]


def test_036_third_derivative_from_one_persistent_tape() -> None:
    x = ll.constant(2.0)
    with warnings.catch_warnings(), ll.GradientTape(persistent=True) as tape:
        warnings.simplefilter("ignore")
        tape.watch(x)
        y = x * x * x * x
        for _ in range(3):
            y = tape.gradient(y, x)
    assert y.item() == 48.0

"""Section 4.2, automatic differentiation: behaviours 28 to 47 and 60 to 78, as far as the engine goes today."""

from __future__ import annotations

import gc
import itertools
import warnings
import weakref
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight import dispatch
from limelight.errors import ArgumentError, DTypeError, GradientError, ShapeError, TapeError

both = pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])


def gradient(f: Callable[..., Any], *xs: Any, **options: Any) -> Any:
    """The gradients of f(*xs) for all of `xs`."""
    with ll.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return tape.gradient(y, xs, **options)


def slope_of(f: Callable[..., Any]) -> Callable[[Any], Any]:
    """The derivative of a function of one tensor."""
    return lambda x: gradient(f, x)[0]


def item(x: Any) -> Any:
    return None if x is None else x.item()


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


def test_031_targets_and_sources_that_are_no_tensors_give_none_alone() -> None:
    x = ll.constant(3.0)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient("y", x) is None
    assert [item(g) for g in tape.gradient(["y", y], ["x", x, np.ones(2)])] == [None, 6.0, None]


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
        ([np.ones(3, "float32")], ArgumentError, "structure"),
    ],
)
def test_034_output_gradients_never_broadcast(
    stage: Callable[..., Any], weights: Any, error: type[Exception], message: str
) -> None:
    @stage
    def f(x: Any) -> Any:
        return gradient(lambda v: v * v, x, output_gradients=weights)

    with pytest.raises(error, match=message) as caught:
        f(ll.ones((3,)))
    assert "test_4_2.py line" in str(caught.value)
    assert dispatch.active == []


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


# 37 The block of a tape


def test_037_reentering_appends_and_reset_forgets() -> None:
    x = ll.constant(3.0)
    tape = ll.GradientTape(persistent=True)
    with tape:
        tape.watch(x)
        y = x * x
    z = y * 10.0  # not recorded
    with tape:
        w = y * x
    assert tape.gradient(w, x).item() == 27.0
    assert tape.gradient(z, x) is None
    tape.reset()
    assert tape.gradient(w, x) is None
    with tape:
        tape.watch(x)
        w = x * 5.0
    assert tape.gradient(w, x).item() == 5.0


def test_037_an_active_tape_cannot_be_entered() -> None:
    with ll.GradientTape() as tape:
        with pytest.raises(TapeError, match="recording already") as caught, tape:
            pass
        assert tape.active
    assert isinstance(caught.value, ValueError)
    assert dispatch.active == []


def test_037_leaving_pops_even_if_an_exception_flies() -> None:
    with pytest.raises(KeyError), ll.GradientTape(), ll.GradientTape():
        raise KeyError
    assert dispatch.active == []


def test_037_tapes_left_in_the_wrong_order_do_not_disturb_one_another() -> None:
    x = ll.constant(3.0)
    first, second = ll.GradientTape(), ll.GradientTape()
    for tape in (first, second):
        tape.__enter__()
        tape.watch(x)
    y = x * x
    first.__exit__(None, None, None)
    z = y * x
    assert dispatch.stack()[1:] == (second,)
    second.__exit__(None, None, None)
    assert dispatch.active == []
    assert first.gradient([y, z], x).item() == 6.0
    assert second.gradient(z, x).item() == 27.0


# 38 stop_recording


def test_038_ops_in_a_pause_are_constants() -> None:
    x = ll.constant(3.0)
    with ll.GradientTape() as outer, ll.GradientTape(persistent=True) as tape:
        outer.watch(x)
        tape.watch(x)
        with tape.stop_recording():
            hidden = x * x
        y = hidden * x
    assert tape.gradient(y, x).item() == 9.0
    assert tape.gradient(hidden, x) is None
    assert outer.gradient(y, x).item() == 27.0


def test_038_ops_after_a_pause_chain_through_earlier_ones() -> None:
    x = ll.constant(1.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        x2 = 2.0 * x
        with tape.stop_recording():
            ll.tanh(x2)
        z = x2 * x2
    assert tape.gradient(z, x2).item() == 4.0


def test_038_an_exception_ends_the_pause() -> None:
    x = ll.constant(3.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(KeyError), tape.stop_recording():
            raise KeyError
        y = x * x
    assert tape.gradient(y, x).item() == 6.0


# 39 None and zero


@both
def test_039_unconnected_sources_give_none_or_zeros(stage: Callable[..., Any]) -> None:
    x, unused = ll.ones((2,)), ll.ones((3, 1), dtype="float64")
    inner = ll.function(lambda a, b: (a * 2, b * 2, ll.stop_gradient(a) * 3))
    f = stage(lambda a, b: inner(a, b)[::1])
    for option, none in (("none", True), ("zero", False)):
        with ll.GradientTape(persistent=True) as tape:
            tape.watch([x, unused])
            y, _, stopped = f(x, unused)
        g = tape.gradient(y, unused, unconnected_gradients=option)
        assert (g is None) == none
        assert none or (g.shape, g.dtype, g.tolist()) == ((3, 1), np.dtype("float64"), [[0.0]] * 3)
        g = tape.gradient(stopped, x, unconnected_gradients=option)
        assert (g is None) == none
        assert none or g.tolist() == [0.0, 0.0]


def test_039_a_variable_read_but_unused_in_a_function_gives_none() -> None:
    v, w = ll.Variable(3.0), ll.Variable(2.0)

    @ll.function
    def f(a: Any) -> Any:
        w.read_value()
        return a * v

    outer = ll.function(lambda a: f(a * 1))
    for run in (f, outer, f.python_function):
        with ll.GradientTape() as tape:
            y = run(ll.constant(5.0))
        assert [item(g) for g in tape.gradient(y, [v, w])] == [5.0, None]


def test_039_a_bad_option_is_quoted() -> None:
    with pytest.raises(ArgumentError, match="'zeros'"):
        ll.GradientTape().gradient(ll.constant(1.0), [], unconnected_gradients="zeros")


# 40 Variables as targets


def test_040_a_variable_can_be_a_target() -> None:
    v, w = ll.Variable(3.0), ll.Variable(2.0)
    with ll.GradientTape(persistent=True) as tape:
        v * w
    assert tape.gradient(v, v).item() == 1.0
    assert tape.gradient(v, w) is None


# 41, 42 Identity is not value


def test_041_equal_constants_are_two() -> None:
    x1, x2 = ll.constant(3.0), ll.constant(3.0)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch([x1, x2])
        y = x1 + x2
    assert tape.gradient(y, x1).item() == 1.0
    assert [g.item() for g in tape.gradient(y, [x1, x2])] == [1.0, 1.0]

    @ll.function
    def staged() -> Any:
        a, b = ll.constant(3.0), ll.constant(3.0)
        with ll.GradientTape() as tape:
            tape.watch([a, b])
            y = a * 2 + b
        return tape.gradient(y, [a, b])

    assert [g.item() for g in staged()] == [2.0, 1.0]


@both
def test_042_what_changes_nothing_is_still_a_tensor_of_its_own(stage: Callable[..., Any]) -> None:
    @stage
    def grads(x: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            same = [ll.identity(x), x + 0, x - 0, x * 1]
            tape.watch(same)
            y = x * 2.0
            for one in same:
                y = y + one * 3.0
        return tape.gradient(y, [x, *same])

    assert [g.item() for g in grads(ll.constant(1.0))] == [14.0, 3.0, 3.0, 3.0, 3.0]


def test_042_as_the_list_has_it() -> None:
    @ll.function
    def grads(x: Any) -> Any:
        with ll.GradientTape() as tape:
            x1, x2, x3, x4 = ll.identity(x), x + 0, x - 0, x * 1
            tape.watch([x, x1, x2, x3, x4])
            y = 2.0 * x + 3.0 * x1 + 3.0 * x2 + 3.0 * x3 + 3.0 * x4
        return tape.gradient(y, [x, x1, x2, x3, x4])

    assert [g.item() for g in grads(ll.constant(1.0))] == [2.0, 3.0, 3.0, 3.0, 3.0]


# 43 Partly differentiable ops


@both
def test_043_only_floating_inputs_have_gradients(stage: Callable[..., Any]) -> None:
    x, i = ll.constant([1.0, -2.0, 3.0]), ll.constant([2, 2])

    def take(a: Any, j: Any) -> Any:
        return ll.take(a, j, axis=0)

    def where(a: Any, j: Any) -> Any:
        return ll.where(a > 0, a, 0.0) * ll.astype(ll.argmax(a), "float32")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # watching integers has no effect
        assert [None if g is None else g.tolist() for g in gradient(stage(take), x, i)] == [[0.0, 0.0, 2.0], None]
        assert [None if g is None else g.tolist() for g in gradient(stage(where), x, i)] == [[2.0, 0.0, 2.0], None]
        assert gradient(stage(lambda a: ll.argmax(a, axis=0)), x) == (None,)
        assert gradient(stage(lambda a: ll.astype(ll.astype(a, "int32"), "float32")), x) == (None,)
        assert gradient(stage(lambda a: a > 0), x) == (None,)


@both
def test_043_unused_outputs_count_as_zeros(stage: Callable[..., Any]) -> None:
    x = ll.constant([1.0, 2.0, 3.0, 4.0])
    (g,) = gradient(stage(lambda a: ll.split(a, 2)[1] ** 2), x)
    assert g.tolist() == [0.0, 0.0, 6.0, 8.0]
    inner = ll.function(lambda a: (a * 2, ll.argmax(a), a * 3))
    (g,) = gradient(stage(lambda a: inner(a)[2]), x)
    assert g.tolist() == [3.0] * 4


# 44 Broadcasting


SHAPES = [(), (1,), (3,), (1, 1), (2, 1), (1, 3), (2, 3), (0,), (2, 0), (0, 1)]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SHAPES, repeat=2)), ids=str)
def test_044_gradients_of_broadcasting_have_the_shape_of_their_source(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        result = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            ll.zeros(a) + ll.zeros(b)
        return
    x, v = ll.ones(a, dtype="float64"), ll.Variable(np.ones(b))
    size = int(np.prod(result))
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.sum(x + v)
    for g, shape in zip(tape.gradient(y, [x, v]), (a, b), strict=True):
        assert (g.shape, g.dtype) == (shape, np.dtype("float64"))
        n = int(np.prod(shape))
        assert np.array_equal(g.numpy(), np.full(shape, size / n if n else 0.0))


def test_044_gradients_have_the_dtype_of_their_source() -> None:
    x, y = ll.constant([1.0, 2.0]), ll.constant(3.0, dtype="float64")
    g = gradient(lambda a, b: ll.sum(a * b), x, y)
    assert [(h.dtype.name, h.shape) for h in g] == [("float32", (2,)), ("float64", ())]
    v1, v0 = ll.Variable([2.0]), ll.Variable(2.0)
    with ll.GradientTape() as tape:
        z = v1 * v0
    assert [g.shape for g in tape.gradient(z, [v1, v0])] == [(1,), ()]


# 45 Repeated indices (dense)


def test_045_repeated_indices_add() -> None:
    table = ll.Variable(np.zeros((4, 2)))
    with ll.GradientTape() as tape:
        y = ll.sum(ll.take(table, ll.constant([1, 1, 3]), axis=0)) + ll.sum(ll.take(table, ll.constant([1]), axis=0))
        y = y + ll.sum(table * 10.0)
    assert tape.gradient(y, table).tolist() == [[10.0] * 2, [13.0] * 2, [10.0] * 2, [11.0] * 2]


# 46 Missing rules


def test_046_an_op_without_a_rule_raises_and_one_that_is_no_function_of_it_gives_none() -> None:
    from limelight.eager import entry
    from limelight.registry import Op

    infer = lambda x, y: x  # noqa: E731
    half = entry(
        Op("half_made", inputs="x y", infer=infer, kernel=lambda xp, x, y: x * y, vjp={"x": lambda g, y: g * y})
    )
    cut = entry(Op("cut", inputs="x y", infer=infer, kernel=lambda xp, x, y: x * y, why_no_gradient="by decree"))
    x = ll.constant(3.0)
    for stage in (lambda f: f, ll.function):
        with pytest.raises(GradientError, match="op half_made has no gradient rule for its input 'y'"):
            gradient(stage(lambda a: half(ll.constant(2.0), a)), x)
        assert gradient(stage(lambda a: half(a, ll.constant(2.0))), x)[0].item() == 2.0
        assert gradient(stage(lambda a: cut(a, a)), x) == (None,)
    assert dispatch.active == []


# 47 Exceptions


def test_047_an_exception_under_a_tape_leaves_none_active() -> None:
    from limelight.eager import entry
    from limelight.registry import Op

    def rule(g: Any) -> Any:
        raise RuntimeError("the rule fails")

    broken = entry(Op("broken", inputs="x", infer=lambda x: x, kernel=lambda xp, x: x + 0, vjp={"x": rule}))
    x = ll.constant(3.0)
    for stage in (lambda f: f, ll.function):
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            gradient(stage(lambda a: a * (1 / 0)), x)
        with pytest.raises(RuntimeError, match=r"^the rule fails$"):
            gradient(stage(lambda a: broken(a) * 2), x)
        assert dispatch.active == []
        assert gradient(stage(lambda a: a * a), x)[0].item() == 6.0


# 60 cond


@both
def test_060_gradients_flow_through_the_branch_taken(stage: Callable[..., Any]) -> None:
    captured = ll.constant(2.0)

    @stage
    def f(x: Any, c: Any) -> Any:
        return ll.cond(x > 0, lambda: x * x * c, lambda: ll.cond(x < -5, lambda: x * 100.0, lambda: x * x * x))

    for value, expected, of_c in ((3.0, 12.0, 9.0), (-2.0, 12.0, None), (-6.0, 100.0, None)):
        found = gradient(f, ll.constant(value), captured)
        assert found[0].item() == expected
        assert item(found[1]) in ((of_c,) if of_c else (None, 0.0))


@both
def test_060_second_order_through_cond(stage: Callable[..., Any]) -> None:
    @stage
    def f(x: Any) -> Any:
        return ll.cond(x > 0, lambda: x * x * x, lambda: x * x)

    for value, expected in ((2.0, 12.0), (-2.0, 2.0)):
        (g,) = gradient(lambda x: gradient(f, x)[0], ll.constant(value))
        assert g.item() == expected


# 61 while_loop


@both
def test_061_gradients_through_loops_of_any_length(stage: Callable[..., Any]) -> None:
    v = ll.Variable(2.0)

    @stage
    def power(x: Any, n: Any, scale: Any) -> Any:
        body = lambda i, y: (i + 1, y * x * v + scale)  # noqa: E731
        return ll.while_loop(lambda i, y: i < n, body, (0, ll.constant(1.0)))[1]

    x, scale = ll.constant(0.5), ll.constant(0.25)
    for n in (0, 1, 4):
        with ll.GradientTape() as tape:
            tape.watch([x, scale])
            y = power(x, ll.constant(n), scale)
        found = [item(g) for g in tape.gradient(y, [x, v, scale], unconnected_gradients="zero")]
        a = np.float64(0.5 * 2)  # y = a**n + scale * (1 + a + ... + a**(n-1)), at a = 1
        by_a = n * a ** (n - 1) + 0.25 * sum(k * a ** (k - 1) for k in range(n)) if n else 0.0
        assert found == pytest.approx([by_a * 2, by_a * 0.5, float(n)])


@both
def test_061_several_variables_nested_loops_and_second_order(stage: Callable[..., Any]) -> None:
    @stage
    def f(x: Any) -> Any:
        def outer(i: Any, a: Any, b: Any) -> Any:
            inner = ll.while_loop(lambda j, c: j < 2, lambda j, c: (j + 1, c * x), (0, a))
            return i + 1, inner[1], b + a

        return ll.while_loop(lambda i, *_: i < 2, outer, (0, x, x * 0.0))[1:]

    # a = x, x**3, x**5; b = x + x**3
    x = ll.constant(2.0, dtype="float64")
    (first,) = gradient(f, x)
    assert first.item() == pytest.approx(5 * 16 + 1 + 3 * 4)
    (second,) = gradient(lambda v: gradient(f, v)[0], x)
    assert second.item() == pytest.approx(20 * 8 + 6 * 2)


# 62 What a loop keeps


def test_062_loops_keep_what_their_backward_needs() -> None:
    @ll.function
    def f(x: Any, n: Any) -> Any:
        return ll.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, ll.tanh(y) + x), (0, x * 1.0))[1]

    x = ll.ones((100,))
    sizes = []
    for n in (0, 10, 20):
        with ll.GradientTape() as tape:
            tape.watch(x)
            f(x, ll.constant(n))
        sizes.append(tape.saved_bytes)
    row = 100 * 4
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] == 10 * row  # tanh keeps its output, addition nothing


# 63, 64 The pair


def test_063_no_pair_is_built_until_a_tape_watches_an_input() -> None:
    v = ll.Variable(2.0)
    f = ll.function(lambda a: ll.tanh(a * v))
    x, other = ll.constant(1.0), ll.constant(5.0)
    pairs = lambda: len(f.trace_cache[0].function.pairs)  # noqa: E731
    f(x)
    with ll.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(other)
        f(x)
    assert pairs() == 0
    assert tape.entries == ()
    assert len(f.trace_cache[0].graph.outputs) == 1
    with ll.GradientTape() as tape:
        f(x)  # reads v
    assert pairs() == 1
    assert len(tape.entries) == 1
    (pair,) = f.trace_cache[0].function.pairs.values()
    assert len(pair.forward.graph.outputs) > 1
    assert len(f.trace_cache[0].graph.outputs) == 1


def test_064_the_pair_is_built_once_and_the_body_is_not_traced_again() -> None:
    traced: list[int] = []

    @ll.function
    def f(a: Any) -> Any:
        traced.append(1)
        return ll.tanh(a) * a

    x = ll.constant(0.5)
    for _ in range(3):
        f(x)
        gradient(f, x)
    function = f.trace_cache[0].function
    (pair,) = function.pairs.values()
    assert (len(traced), f.trace_count, len(f.trace_cache)) == (1, 1, 1)
    assert pair.forward.name == f"forward_{function.name}"
    assert len(pair._backward) == 1
    (backward, _), *_ = pair._backward.values()
    assert backward.name == f"backward_{function.name}"
    built = (pair, backward, len(function.pairs))
    gradient(f, x)
    assert built == (*function.pairs.values(), next(iter(pair._backward.values()))[0], len(function.pairs))


# 65 No recomputation


def test_065_staged_forward_and_backward_launch_no_more_than_eager() -> None:
    launched: list[str] = []

    def counted(a: Any) -> Any:
        launched.append("forward")
        return np.tanh(a)

    from limelight.eager import entry
    from limelight.registry import Op

    op = Op(
        "counted",
        inputs="x",
        infer=lambda x: x,
        kernel=lambda xp, x: counted(x),
        vjp={"x": lambda g, out: g * (1 - out * out)},
    )
    run = entry(op)
    x = ll.constant([0.5, 1.0])
    expected = gradient(lambda a: run(a) * 2, x)[0].tolist()
    assert launched == ["forward"]
    f = ll.function(lambda a: run(a) * 2)
    f(x)
    launched.clear()
    assert gradient(f, x)[0].tolist() == expected
    assert launched == ["forward"]


def test_065_what_is_an_input_or_output_anyway_is_not_returned_twice() -> None:
    f = ll.function(lambda a, b: (ll.exp(a), a * b))
    gradient(f, ll.constant(0.5), ll.constant(2.0))
    (pair,) = f.trace_cache[0].function.pairs.values()
    assert len(pair.forward.graph.outputs) == 2  # exp needs its output, multiply its inputs


# 66 Backward is staged


def test_066_going_back_is_one_call_for_each_call() -> None:
    @ll.function
    def f(a: Any) -> Any:
        for _ in range(20):
            a = ll.tanh(a) * 1.5
        return a

    x = ll.constant(0.5)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(f(x))
    seen: list[Any] = []
    with ll.events.listen(seen.append, ll.events.OpRan):
        tape.gradient(y, x)
    assert [event.op for event in seen].count("call") == 2
    assert len(seen) <= 4  # and the ones to start from


@both
def test_066_backward_can_be_differentiated_and_traced(stage: Callable[..., Any]) -> None:
    f = ll.function(lambda a: a * a * a)
    slope = stage(lambda a: gradient(f, a)[0])
    curvature = stage(lambda a: gradient(slope, a)[0])
    assert slope(ll.constant(2.0)).item() == 12.0
    assert curvature(ll.constant(2.0)).item() == 12.0
    assert gradient(curvature, ll.constant(2.0))[0].item() == 6.0


# 67 Staging and differentiation in any order


@pytest.mark.parametrize("staged", list(itertools.product([False, True], repeat=5)), ids=str)
def test_067_alternating_staging_and_differentiation(staged: tuple[bool, ...]) -> None:
    x = ll.constant(0.7, dtype="float64")
    f: Any = ll.cos
    expected = [np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v), np.sin, np.cos]
    for order, stage in enumerate(staged):
        f = ll.function(f) if stage else f
        assert f(x).item() == pytest.approx(expected[order](0.7)), f"order {order}"
        f = slope_of(f)


def test_067_persistent_tapes_outside_functions_that_hold_tapes() -> None:
    cos = ll.function(lambda v: gradient(ll.function(ll.sin), v)[0])
    x = ll.constant(0.7, dtype="float64")
    with ll.GradientTape(persistent=True) as t2:
        t2.watch(x)
        with ll.GradientTape(persistent=True) as t1:
            t1.watch(x)
            y = cos(x)
        dy = t1.gradient(y, x)
    found = [y.item(), dy.item(), t2.gradient(y, x).item(), t2.gradient(dy, x).item()]
    assert found == pytest.approx([np.cos(0.7), -np.sin(0.7), -np.sin(0.7), -np.cos(0.7)])


# 68 The incoming gradient


@both
def test_068_gradients_with_respect_to_the_incoming_gradient(stage: Callable[..., Any]) -> None:
    @stage
    def f(a: Any) -> Any:
        return a * a

    x, g = ll.constant([1.0, 2.0]), ll.constant([5.0, 7.0])
    with ll.GradientTape() as outer:
        outer.watch(g)
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        pulled = tape.gradient(y, x, output_gradients=g)
    assert pulled.tolist() == [10.0, 28.0]
    assert outer.gradient(pulled, g).tolist() == [2.0, 4.0]


# 69 Awkward outputs


def test_069_functions_with_awkward_outputs() -> None:
    captured = ll.constant(2.0)
    x = ll.constant(3.0)

    @ll.function
    def awkward(a: Any) -> Any:
        return None, ll.constant(7), a, captured, {"y": a * captured, "again": (a,)}, 5

    with ll.GradientTape(persistent=True) as tape:
        tape.watch([x, captured])
        none, seven, same, kept, rest, five = awkward(x)
        nothing = ll.function(lambda a: None)(x)
    assert (none, seven.item(), same.item(), kept.item(), five.item(), nothing) == (None, 7, 3.0, 2.0, 5, None)
    assert tape.gradient(rest["y"], x).item() == 2.0
    assert tape.gradient(rest["y"], captured).item() == 3.0
    assert tape.gradient(same, x).item() == 1.0
    assert tape.gradient(rest["again"], x).item() == 1.0
    assert tape.gradient(kept, captured).item() == 1.0
    assert tape.gradient(seven, x) is None


# 70 Nesting and mixing


def test_070_three_functions_deep_with_direct_calls_between() -> None:
    a = ll.function(lambda v: v * v)
    b = ll.function(lambda v: a(v) * v)
    c = ll.function(lambda v: b(v) + a(v))
    x = ll.constant(2.0)
    for _ in range(2):
        assert a(x).item() == 4.0
        assert gradient(c, x)[0].item() == 16.0
        assert b(x).item() == 8.0
        assert gradient(a, x)[0].item() == 4.0
        assert gradient(lambda v: c(v) * a(v) * v, x)[0].item() == pytest.approx(6 * 32 + 5 * 16)
        assert gradient(b, x)[0].item() == 12.0
        assert c(x).item() == 12.0
    assert [f.trace_count for f in (a, b, c)] == [1, 1, 1]


# 71 Recursion


def test_071_recursive_functions_differentiate() -> None:
    @ll.function
    def factorial(n: int, v: Any) -> Any:
        return v if n <= 1 else n * factorial(n - 1, v)

    x = ll.constant(1.0)
    assert factorial(5, x).item() == 120.0
    assert gradient(lambda v: factorial(5, v), x)[0].item() == 120.0

    @ll.function
    def even(n: int, v: Any) -> Any:
        return v * 2 if n == 0 else odd(n - 1, v)

    @ll.function
    def odd(n: int, v: Any) -> Any:
        return v * 3 if n == 0 else even(n - 1, v) * v

    x = ll.constant(2.0)
    assert even(4, x).item() == 16.0
    assert gradient(lambda v: even(4, v), x)[0].item() == 24.0


# 72 Memory


def test_072_a_used_tape_lets_go_of_everything() -> None:
    x = ll.ones((10,))
    for f in (lambda v: ll.sum(ll.tanh(v * 2) * ll.exp(v)), ll.function(lambda v: ll.sum(ll.tanh(v * 2) * ll.exp(v)))):
        for persistent in (False, True):
            with ll.GradientTape(persistent=persistent) as tape:
                tape.watch(x)
                hidden = ll.exp(x * 1)
                y = f(hidden)
            dead = weakref.ref(hidden)
            gc.disable()
            try:
                del hidden
                assert dead() is not None
                assert tape.saved_bytes > 0
                tape.gradient(y, x)
                assert (dead() is None) is (not persistent)
                assert (tape.saved_bytes == 0) is (not persistent)
                del tape, y
                assert dead() is None
            finally:
                gc.enable()


def test_072_training_does_not_grow() -> None:
    v = ll.Variable(np.ones((20, 20), "float32"))

    @ll.function
    def loss(x: Any) -> Any:
        return ll.sum(ll.tanh(x @ v))

    def step() -> None:
        with ll.GradientTape() as tape:
            y = loss(ll.ones((5, 20))) + ll.sum(v * v)
        v.assign_sub(0.001 * tape.gradient(y, v))

    for _ in range(10):
        step()
    gc.collect()
    before = len(gc.get_objects()), ll.memory_info().current
    for _ in range(1000):
        step()
    gc.collect()
    assert len(gc.get_objects()) - before[0] < 100
    assert ll.memory_info().current == before[1]


# 73 What a tape saves


def test_073_tapes_save_only_what_rules_need() -> None:
    x, y = ll.ones((10, 10)), ll.ones((10, 10))
    saved = {}
    for op, f in {
        "add": lambda: x + y,
        "relu": lambda: ll.nn.relu(x),
        "matmul": lambda: x @ y,
        "exp": lambda: ll.exp(x),
    }.items():
        with ll.GradientTape() as tape:
            tape.watch([x, y])
            f()
        saved[op] = tape.saved_bytes
    assert saved == {"add": 0, "relu": 400, "matmul": 800, "exp": 400}
    with ll.GradientTape() as tape:
        tape.watch(x)
        x @ y
    assert tape.saved_bytes == 400  # the gradient of x needs y alone


# 74 Assignment


@both
def test_074_assignment_is_not_differentiable(stage: Callable[..., Any]) -> None:
    v, x = ll.Variable(3.0), ll.constant(2.0)

    @stage
    def f(a: Any) -> Any:
        before = v.read_value()
        v.assign(a * a)
        return before, v.read_value()

    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        before, after = f(x)
    assert (before.item(), after.item()) == (3.0, 4.0)
    assert tape.gradient(after, x) is None
    assert tape.gradient(before, v).item() == 1.0


def test_074_the_reason_is_known() -> None:
    from limelight.registry import get

    for name in ("assign", "assign_add", "assign_sub"):
        assert "the connection is cut here" in get(name).why_no_gradient


# 75 Copies between devices


@both
def test_075_copies_are_on_the_tape(stage: Callable[..., Any], cpus: list[Any]) -> None:
    @stage
    def f(a: Any) -> Any:
        moved = a.to("cpu:1") * 3.0
        with ll.device("cpu:2"):
            implicit = a * a
        return moved.to("cpu:0") + implicit.cpu()

    x = ll.constant(2.0)
    (g,) = gradient(f, x)
    assert g.item() == 7.0
    assert g.device == "cpu:0"
    far = ll.constant(2.0).to("cpu:3")
    (g,) = gradient(f, far)
    assert g.item() == 7.0
    assert g.device == "cpu:3"


# 76 Complex numbers


@both
def test_076_complex_gradients_follow_the_conjugate_convention(stage: Callable[..., Any]) -> None:
    z = ll.constant(2 + 3j)
    assert gradient(stage(lambda a: a * a), z)[0].item() == (2 * (2 + 3j)).conjugate()
    spec = ll.TensorSpec((), "complex64")
    assert gradient(stage(lambda a: ll.py_func(lambda t: t * t, [a], spec)), z)[0].item() == (2 * (2 + 3j)).conjugate()


# 77 Names


def test_077_gradient_ops_say_whose_they_are() -> None:
    f = ll.function(lambda a: ll.tanh(a) * a)
    gradient(f, ll.constant(0.5))
    (pair,) = f.trace_cache[0].function.pairs.values()
    (backward, _), *_ = pair._backward.values()
    assert {node.scope for node in backward.graph.nodes if node.op != "constant"} == {"gradient/"}
    assert all("test_4_2.py" in str(node.source) for node in backward.graph.nodes)


# 78 Repeated inputs (every op is checked against finite differences by its case)


@both
def test_078_repeated_inputs(stage: Callable[..., Any]) -> None:
    x = ll.constant([[1.0, 2.0], [3.0, 4.0]], dtype="float64")
    array = x.numpy()
    (g,) = gradient(stage(lambda a: ll.sum(ll.matmul(a, a))), x)
    ones = np.ones((2, 2))
    assert np.allclose(g.numpy(), ones @ array.T + array.T @ ones)
    (g,) = gradient(stage(lambda a: ll.sum(ll.concat([a, a, a * a], axis=0))), x)
    assert np.allclose(g.numpy(), 2 + 2 * array)
    left, right = gradient(stage(lambda a, b: ll.sum(a * b * b)), x, x)
    assert np.allclose(left.numpy(), 3 * array**2)  # one tensor twice: one source, all its uses
    assert np.allclose(right.numpy(), 3 * array**2)

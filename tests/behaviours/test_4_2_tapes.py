"""Section 4.2, what a tape records: behaviours 37 to 47."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import both, gradient, item

import limelight as ll
from limelight.core import dispatch
from limelight.errors import ArgumentError, GradientError, ShapeError, TapeError

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


@pytest.mark.parametrize("a", SHAPES, ids=str)
def test_044_gradients_of_broadcasting_have_the_shape_of_their_source(a: tuple[int, ...]) -> None:
    for b in SHAPES:
        gradients_have_the_shape_of_their_source(a, b)


def gradients_have_the_shape_of_their_source(a: tuple[int, ...], b: tuple[int, ...]) -> None:
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
    from limelight.core.eager import entry_point
    from limelight.core.op import Op

    infer = lambda x, y: x  # noqa: E731
    half = entry_point(
        Op("half_made", inputs="x y", infer=infer, kernel=lambda xp, x, y: x * y, vjp={"x": lambda g, y: g * y})
    )
    cut = entry_point(Op("cut", inputs="x y", infer=infer, kernel=lambda xp, x, y: x * y, why_no_gradient="by decree"))
    x = ll.constant(3.0)
    for stage in (lambda f: f, ll.function):
        with pytest.raises(GradientError, match="op half_made has no gradient rule for its input 'y'"):
            gradient(stage(lambda a: half(ll.constant(2.0), a)), x)
        assert gradient(stage(lambda a: half(a, ll.constant(2.0))), x)[0].item() == 2.0
        assert gradient(stage(lambda a: cut(a, a)), x) == (None,)
    assert dispatch.active == []


# 47 Exceptions


def test_047_an_exception_under_a_tape_leaves_none_active() -> None:
    from limelight.core.eager import entry_point
    from limelight.core.op import Op

    def rule(g: Any) -> Any:
        raise RuntimeError("the rule fails")

    broken = entry_point(Op("broken", inputs="x", infer=lambda x: x, kernel=lambda xp, x: x + 0, vjp={"x": rule}))
    x = ll.constant(3.0)
    for stage in (lambda f: f, ll.function):
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            gradient(stage(lambda a: a * (1 / 0)), x)
        with pytest.raises(RuntimeError, match=r"^the rule fails$"):
            gradient(stage(lambda a: broken(a) * 2), x)
        assert dispatch.active == []
        assert gradient(stage(lambda a: a * a), x)[0].item() == 6.0

"""Section 4.2, forward mode: behaviours 56 to 59, and what 38, 67, 68 and 78 say of it."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import both, gradient

import limelight as ll
from limelight.core import dispatch
from limelight.errors import ArgumentError, DTypeError, ShapeError, TapeError

# 38 Pauses


def test_038_a_pause_of_a_tape_is_no_pause_of_an_accumulator() -> None:
    x = ll.constant(3.0)
    with ll.ForwardAccumulator(x, 1.0) as forward, ll.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            y = x * x
    assert forward.jvp(y).item() == 6.0
    assert tape.gradient(y, x) is None


# 56 Forward-mode accumulators


@both
def test_056_the_product_of_the_jacobian_with_a_direction(stage: Callable[..., Any]) -> None:
    x, v = ll.constant([1.0, 2.0, 3.0]), ll.constant([1.0, 0.0, -1.0])
    with ll.ForwardAccumulator(x, v) as forward:
        y = stage(lambda a: ll.stack([ll.sum(a * a), ll.prod(a)]))(x)
    assert forward.jvp(y).tolist() == [2.0 - 6.0, 6.0 - 2.0]
    assert forward.jvp({"all": [y, x]})["all"][1] is forward.jvp(x)


@both
def test_056_several_primals_variables_among_them(stage: Callable[..., Any]) -> None:
    x, v = ll.constant(2.0), ll.Variable(3.0)
    with ll.ForwardAccumulator({"x": x, "v": v}, {"x": 1.0, "v": ll.constant(10.0)}) as forward:
        y = stage(lambda a: a * v + v)(x)
    assert forward.jvp(y).item() == 3.0 + 10.0 * (2.0 + 1.0)
    assert forward.jvp(v).item() == 10.0


def test_056_what_is_refused() -> None:
    x = ll.constant([1.0, 2.0])
    with pytest.raises(ArgumentError, match=r"`primals\[1\]` is given twice"):
        ll.ForwardAccumulator([x, x], [x, x])
    with pytest.raises(ArgumentError, match="must be a tensor or a variable, got float"):
        ll.ForwardAccumulator(3.0, 1.0)
    with pytest.raises(DTypeError, match="is int32 and cannot move"):
        ll.ForwardAccumulator(ll.constant(1), ll.constant(1))
    with pytest.raises(ShapeError, match=r"a tangent of shape \(\) for `primals` of shape \(2,\)"):
        ll.ForwardAccumulator(x, 1.0)
    with pytest.raises(DTypeError, match="a tangent of dtype float64 for `primals` of float32"):
        ll.ForwardAccumulator(x, ll.ones(2, dtype="float64"))
    with pytest.raises(ArgumentError, match="must have the structure"):
        ll.ForwardAccumulator([x], x)
    accumulator = ll.ForwardAccumulator(x, x)
    with pytest.raises(ArgumentError, match="a target must be a tensor"):
        accumulator.jvp(3.0)
    with pytest.raises(ArgumentError, match='"none" or "zero"'):
        accumulator.jvp(x, unconnected_gradients="nought")


def test_056_an_active_accumulator_cannot_be_entered() -> None:
    x = ll.constant(1.0)
    with ll.ForwardAccumulator(x, 1.0) as forward:
        with pytest.raises(TapeError, match="active already") as caught, forward:
            pass
        y = x * 2.0
    assert isinstance(caught.value, ValueError)
    assert forward.jvp(y).item() == 2.0
    assert dispatch.active == []


def test_056_ops_outside_the_block_give_none() -> None:
    x = ll.constant(3.0)
    forward = ll.ForwardAccumulator(x, 1.0)
    before = x * x
    with forward:
        y = x * x
        unrelated = ll.constant(2.0) * 2.0
    after = y * 2.0
    assert [forward.jvp(t) for t in (before, after, unrelated)] == [None, None, None]
    assert forward.jvp(after, unconnected_gradients="zero").item() == 0.0
    with forward:
        again = y * 2.0
    assert forward.jvp(again).item() == 12.0  # entered again it goes on with the tangents that it has


def test_056_a_primal_that_was_computed_before() -> None:
    x = ll.constant(2.0) * ll.constant(3.0)
    y = x + 1.0
    with ll.ForwardAccumulator([y, x], [1.0, 100.0]) as forward:
        z = x * y
    assert forward.jvp(z).item() == 6.0 + 700.0


def test_056_tangents_go_with_their_tensors() -> None:
    x = ll.constant(np.ones(3))
    gc.disable()
    try:
        with ll.ForwardAccumulator(x, ll.constant(np.ones(3))) as forward:
            y = ll.sin(x)
            tangent = weakref.ref(forward.jvp(y))
            for _ in range(10):
                z = ll.cos(x) * x
            assert len(forward._tangents) == 3  # of x, y and the last z
            del y, z
            assert tangent() is None
            assert len(forward._tangents) == 1
        gone = weakref.ref(forward)
        del forward
        assert gone() is None
    finally:
        gc.enable()


def test_056_an_error_leaves_nothing_active() -> None:
    x = ll.constant(3.0)
    with pytest.raises(ShapeError), ll.ForwardAccumulator(x, 1.0):
        ll.zeros((2,)) + ll.zeros((3,))
    with pytest.raises(KeyError), ll.ForwardAccumulator(x, 1.0), ll.GradientTape():
        raise KeyError
    assert dispatch.active == []


def test_056_integers_and_what_does_not_move() -> None:
    x = ll.constant([3.0, 1.0])
    with ll.ForwardAccumulator(x, ll.constant([1.0, 1.0])) as forward:
        results = [ll.argmax(x), x > 2.0, ll.astype(x, "int32"), ll.stop_gradient(x), ll.floor(x), x.shape]
    assert [forward.jvp(t) for t in results[:-1]] == [None] * 5


# 57 Perturbation confusion


@both
def test_057_nested_accumulators_keep_their_tangents_apart(stage: Callable[..., Any]) -> None:
    x = ll.constant(2.0, dtype="float64")
    f = stage(lambda a: a**3.5)
    with ll.ForwardAccumulator(x, 1.0) as outer, ll.ForwardAccumulator(x, 1.0) as inner:
        y = f(x)
    first, second = 3.5 * 2**2.5, 3.5 * 2.5 * 2**1.5
    assert inner.jvp(y).item() == pytest.approx(first)
    assert outer.jvp(y).item() == pytest.approx(first)
    assert outer.jvp(inner.jvp(y)).item() == pytest.approx(second)
    assert inner.jvp(outer.jvp(y)) is None


@both
def test_057_the_classic(stage: Callable[..., Any]) -> None:
    """d/dx [x · d/dy (x + y)] is 1; where the tangents are mixed up it is 2."""
    found = ll.jvp(stage(lambda x: x * ll.jvp(stage(lambda y: x + y), (1.0,), (1.0,))[1]), (3.0,), (1.0,))[1]
    assert found.item() == 1.0
    assert ll.grad(lambda x: x * ll.grad(lambda y: x + y)(1.0))(3.0).item() == 1.0
    assert ll.grad(lambda x: x * ll.jvp(lambda y: x + y, (1.0,), (1.0,))[1])(3.0).item() == 1.0
    assert ll.jvp(lambda x: x * ll.grad(lambda y: x + y)(1.0), (3.0,), (1.0,))[1].item() == 1.0


def test_057_the_same_tensor_closed_over_and_given() -> None:
    x = ll.constant(3.0)
    assert ll.grad(lambda y: x * y)(x).item() == 3.0
    assert ll.jvp(lambda y: x * y, (x,), (1.0,))[1].item() == 3.0
    assert ll.jacobian(lambda y: x * y)(x).item() == 3.0


def test_057_three_deep() -> None:
    x = ll.constant(2.0, dtype="float64")
    with (
        ll.ForwardAccumulator(x, 1.0) as a,
        ll.ForwardAccumulator(x, 1.0) as b,
        ll.ForwardAccumulator(x, 1.0) as c,
    ):
        y = ll.sin(x)
    third = a.jvp(b.jvp(c.jvp(y)))
    assert third.item() == pytest.approx(-np.cos(2.0))


# 58 Products with the Hessian


def quartic(x: Any) -> Any:
    return ll.sum(x * x * x) * ll.sum(x)


def product(x: Any, v: Any) -> Any:
    """The Hessian of `quartic` times v, by mathematics."""
    h = np.diag(6 * x) * x.sum() + 3 * np.add.outer(x**2, x**2)
    return h @ v


@both
def test_058_forward_over_reverse_and_reverse_over_reverse(stage: Callable[..., Any]) -> None:
    x, v = ll.constant(np.array([1.0, -2.0, 0.5])), ll.constant(np.array([0.3, 1.0, -1.0]))

    def forward_over_reverse(x: Any) -> Any:
        with ll.ForwardAccumulator(x, v) as forward:
            (g,) = gradient(quartic, x)
        return forward.jvp(g)

    def reverse_over_reverse(x: Any) -> Any:
        return gradient(lambda a: ll.sum(gradient(quartic, a)[0] * v), x)[0]

    def reverse_over_forward(x: Any) -> Any:
        def slope(a: Any) -> Any:
            with ll.ForwardAccumulator(a, v) as forward:
                y = quartic(a)
            return forward.jvp(y)

        return gradient(slope, x)[0]

    for way in (forward_over_reverse, reverse_over_reverse, reverse_over_forward):
        np.testing.assert_allclose(stage(way)(x).numpy(), product(x.numpy(), v.numpy()), rtol=1e-12)


@both
def test_058_variables_that_only_the_tape_watches(stage: Callable[..., Any]) -> None:
    """Variables are read under the tape, the accumulator is outside."""
    v = ll.Variable(np.array([1.0, -2.0, 0.5]))
    direction = np.array([0.3, 1.0, -1.0])

    @stage
    def slope() -> Any:
        with ll.GradientTape() as tape:
            y = quartic(v * 1.0)
        return tape.gradient(y, v)

    with ll.ForwardAccumulator(v, ll.constant(direction)) as forward:
        g = slope()
    np.testing.assert_allclose(forward.jvp(g).numpy(), product(v.numpy(), direction), rtol=1e-12)


# 59 Cached graph functions


def test_059_each_call_has_its_own_tangents() -> None:
    F = ll.function(lambda a, b: ll.sin(a) * b)
    a, b = ll.constant(0.5), ll.constant(2.0)
    for va, vb in ((1.0, 0.0), (0.0, 1.0), (2.0, -3.0)):
        with ll.ForwardAccumulator([a, b], [va, vb]) as forward:
            y = F(a, b)
        assert forward.jvp(y).item() == pytest.approx(np.cos(0.5) * 2 * va + np.sin(0.5) * vb, rel=1e-6)
    with ll.ForwardAccumulator(b, 1.0) as forward:
        y = F(a, b)
    assert forward.jvp(y).item() == pytest.approx(np.sin(0.5), rel=1e-6)
    with ll.ForwardAccumulator([a, b], [1.0, 1.0]) as forward:
        swapped = F(b, a)
    assert forward.jvp(swapped).item() == pytest.approx(np.cos(2.0) * 0.5 + np.sin(2.0), rel=1e-5)
    assert F.trace_count == 1


def test_059_calls_with_and_without_an_accumulator_interleaved() -> None:
    F = ll.function(lambda a: a * a * a)
    x, z = ll.constant(2.0), ll.constant(5.0)
    for _ in range(3):
        assert F(x).item() == 8.0
        with ll.ForwardAccumulator(x, 1.0) as forward:
            unmoved, y = F(z), F(x)
        assert forward.jvp(y).item() == 12.0
        assert forward.jvp(unmoved) is None
        assert gradient(F, x)[0].item() == 12.0
        with ll.ForwardAccumulator(z, 2.0) as forward:
            y = F(z)
        assert forward.jvp(y).item() == 150.0
    assert F.trace_count == 1


def test_059_an_accumulator_inside_a_staged_function() -> None:
    @ll.function
    def slope(x: Any, v: Any) -> Any:
        with ll.ForwardAccumulator(x, v) as forward:
            y = ll.cond(x > 0, lambda: x * x, lambda: -x)
        return forward.jvp(y)

    assert slope(ll.constant(3.0), ll.constant(1.0)).item() == 6.0
    assert slope(ll.constant(-3.0), ll.constant(2.0)).item() == -2.0
    assert slope.trace_count == 1


# 67, 68, 78 With derivatives as functions


@pytest.mark.parametrize("modes", list(itertools.product("rf", repeat=3)), ids="".join)
@pytest.mark.parametrize("staged", [(False,) * 4, (True,) * 4, (True, False, True, False)], ids=str)
def test_067_staging_and_both_modes_in_any_order(modes: tuple[str, ...], staged: tuple[bool, ...]) -> None:
    def slope(f: Any, mode: str) -> Any:
        return ll.grad(f) if mode == "r" else lambda x: ll.jvp(f, (x,), (1.0,))[1]

    x = ll.constant(0.7, dtype="float64")
    f: Any = ll.function(ll.cos) if staged[0] else ll.cos
    expected = [lambda v: -np.sin(v), lambda v: -np.cos(v), np.sin]
    for mode, stage, wanted in zip(modes, staged[1:], expected, strict=True):
        f = slope(f, mode)
        f = ll.function(f) if stage else f
        assert f(x).item() == pytest.approx(wanted(0.7))


@both
def test_068_the_gradient_of_a_pulled_back_gradient_is_a_product(stage: Callable[..., Any]) -> None:
    x, g = ll.constant([1.0, 2.0]), ll.constant([5.0, 7.0])
    _, pull = ll.vjp(stage(lambda a: a * a), x)
    assert pull(g)[0].tolist() == [10.0, 28.0]
    assert gradient(lambda g: pull(g)[0], g)[0].tolist() == [2.0, 4.0]
    assert ll.jvp(lambda g: pull(g)[0], (g,), (ll.ones_like(g),))[1].tolist() == [2.0, 4.0]


@both
def test_078_one_object_as_two_arguments_has_two_gradients(stage: Callable[..., Any]) -> None:
    x = ll.constant([1.0, 2.0])
    f = stage(lambda a, b: ll.sum(a * b * b))
    left, right = ll.grad(f, argnums=(0, 1))(x, x)
    assert (left.tolist(), right.tolist()) == ([1.0, 4.0], [2.0, 8.0])
    both_moved = ll.jvp(f, (x, x), (ll.constant([1.0, 0.0]), ll.constant([0.0, 0.0])))[1]
    assert both_moved.item() == 1.0
    pair = ll.grad(lambda p: ll.sum(p["a"] * p["b"] * p["b"]))({"a": x, "b": x})
    assert (pair["a"].tolist(), pair["b"].tolist()) == ([1.0, 4.0], [2.0, 8.0])

"""Section 4.2, differentiation: behaviour 52, which is about recompute_grad."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import both, gradient, item, slope_of

import limelight as ll
from limelight.errors import ArgumentError

Function = Callable[..., Any]


def deep(x: Any) -> Any:
    for _ in range(4):
        x = ll.tanh(x * 1.5)
    return x


# 52 Recomputing instead of remembering


@both
def test_052_same_gradients_to_third_order(stage: Function) -> None:
    x = ll.constant([0.3, -0.7], "float64")
    plain, again = deep, stage(ll.recompute_grad(deep))
    for _ in range(3):
        plain, again = slope_of(plain), stage(slope_of(again))
        np.testing.assert_allclose(again(x).numpy(), plain(x).numpy(), rtol=1e-12)


def test_052_only_the_arguments_are_kept() -> None:
    x = ll.ones((1000,))
    kept = {}
    for name, f in (("plain", deep), ("again", ll.recompute_grad(deep))):
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = f(f(x))
        kept[name] = tape.saved_bytes
        tape.gradient(y, x)
    assert kept == {"plain": 8 * 4000, "again": 2 * 4000}


def test_052_a_staged_function_hands_less_to_its_backward_half() -> None:
    def extra(f: Function) -> int:
        F = ll.function(lambda x: f(f(x)))
        with ll.GradientTape() as tape:
            tape.watch(x := ll.ones((1000,)))
            F(x)
        return tape.saved_bytes

    assert extra(deep) >= 8 * 4000
    assert extra(ll.recompute_grad(deep)) == 2 * 4000


@both
def test_052_kernels_run_twice_and_the_intermediates_are_gone_between(stage: Function) -> None:
    ran: list[str] = []
    f = stage(ll.recompute_grad(lambda x: ll.sum(ll.exp(ll.sin(x)))))
    x = ll.ones((3,))
    gradient(f, x)  # traces, where staged
    if stage is ll.function:
        return
    with ll.events.listen(lambda event: ran.append(event.op), ll.events.OpRan):
        gradient(f, x)
    assert ran.count("exp") == 2


@both
def test_052_variables_nests_and_keywords(stage: Function) -> None:
    v, frozen = ll.Variable(2.0), ll.Variable(3.0, trainable=False)

    @ll.recompute_grad
    def block(pair: Any, *, scale: Any, label: str = "x") -> Any:
        a, b = pair["a"], pair["b"]
        return {label: a * b * v * frozen * scale, "count": ll.constant(3), "none": None}

    def loss(a: Any, b: Any, s: Any) -> Any:
        out = block({"a": a, "b": b}, scale=s, label="y")
        assert out["none"] is None
        return out["y"]

    a, b, s = ll.constant(5.0), ll.constant(7.0), ll.constant(11.0)
    with ll.GradientTape() as tape:
        tape.watch([a, b, s])
        y = stage(loss)(a, b, s)
    found = [item(g) for g in tape.gradient(y, [a, b, s, v, frozen])]
    assert found == [7 * 6 * 11, 5 * 6 * 11, 35 * 6, 35 * 3 * 11, None]


@both
def test_052_tensors_that_are_closed_over(stage: Function) -> None:
    def loss(x: Any, c: Any) -> Any:
        hidden = c * 2.0
        product = ll.recompute_grad(lambda x: ll.tanh(x * hidden) * hidden)(x)
        return product + ll.recompute_grad(lambda: c)()

    def plain(x: Any, c: Any) -> Any:
        return ll.tanh(x * (c * 2.0)) * (c * 2.0) + c

    x, c = ll.constant(0.3, "float64"), ll.constant(0.7, "float64")
    for order in (1, 2):
        wanted = ll.gradcheck(stage(loss), x, c, order=order)
        assert wanted.ok
    assert [g.item() for g in gradient(stage(loss), x, c)] == pytest.approx([g.item() for g in gradient(plain, x, c)])


@both
def test_052_nested_functions_with_loops(stage: Function) -> None:
    v = ll.Variable(0.5)

    @ll.function
    def inner(x: Any) -> Any:
        return ll.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, ll.sin(a) * v), (0, x))[1]

    f = stage(ll.recompute_grad(lambda x: inner(x) + ll.recompute_grad(inner)(x * 2.0)))
    x = ll.constant(1.0)
    found = []
    for g in (lambda x: inner(x) + inner(x * 2.0), f):
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = g(x)
        found.append([h.item() for h in tape.gradient(y, [x, v])])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


@both
def test_052_random_numbers_are_the_same_again(stage: Function) -> None:
    """And the stream goes on as if they had been drawn once."""
    f = ll.recompute_grad(lambda x: x * ll.random.uniform((4,)) * x)
    x = ll.constant([1.0, 2.0, 3.0, 4.0])

    @stage
    def step(x: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
            z = f(y)
        return y, z, *tape.gradient(z, [x, y]), ll.random.uniform(())

    for _ in range(2):
        ll.random.seed(3)
        y, z, dx, dy, after = [t.numpy() for t in step(x)]
    r, s = y / x.numpy() ** 2, z / y**2
    np.testing.assert_allclose(dy, 2 * y * s, rtol=1e-5)
    np.testing.assert_allclose(dx, 2 * y * s * 2 * x.numpy() * r, rtol=1e-5)
    ll.random.seed(3)
    ll.random.uniform((4,))
    ll.random.uniform((4,))
    assert ll.random.uniform(()).item() == after


def test_052_random_numbers_in_a_staged_function_differentiated_from_outside() -> None:
    f = ll.function(ll.recompute_grad(lambda x: x * x * ll.random.uniform(())))
    x = ll.constant(2.0)
    for _ in range(3):
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        other = ll.random.uniform(())
        assert tape.gradient(y, x).item() == pytest.approx(y.item())
        assert other.item() != ll.random.uniform(()).item()


@both
def test_052_variables_are_read_as_they_were(stage: Function) -> None:
    v, x = ll.Variable(2.0), ll.constant(3.0)
    f = stage(ll.recompute_grad(lambda x: x * x * v))
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    v.assign(100.0)
    assert [g.item() for g in tape.gradient(y, [x, v])] == [12.0, 9.0]


@both
def test_052_effects_that_happen_twice_are_reported(stage: Function) -> None:
    printed: list[float] = []
    x = ll.constant(3.0)

    def shown(x: Any) -> Any:
        ll.py_func(lambda t: printed.append(t.item()), [x], None)
        return x * x

    f = ll.function(ll.recompute_grad(shown)) if stage is ll.function else ll.recompute_grad(ll.function(shown))
    with pytest.warns(RuntimeWarning, match=r"shown does input or output, and does so again") as caught:
        assert gradient(f, x)[0].item() == 6.0
    assert stage is not ll.function or {w.filename for w in caught} == {__file__}
    assert printed == [3.0, 3.0]


@both
def test_052_assignments_happen_once_and_what_was_read_before_them_is_read_again(stage: Function) -> None:
    v, steps, x = ll.Variable(2.0), ll.Variable(1, trainable=False), ll.constant(3.0)

    def counted(x: Any) -> Any:
        before = x * v
        v.assign_add(1.0)
        steps.assign(steps * 2)
        return before * v * ll.astype(steps, ll.float32)

    f = stage(ll.recompute_grad(counted))
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    v.assign(50.0)
    steps.assign(70)
    assert [g.item() for g in tape.gradient(y, [x, v])] == [2 * 3 * 2, 3 * 3 * 2 + 3 * 2 * 2]
    assert (y.item(), v.item(), steps.item()) == (36.0, 50.0, 70)


@pytest.mark.slow  # hundreds of calls, and garbage collected between
def test_052_repeated_calls_do_not_grow() -> None:
    f, x = ll.recompute_grad(deep), ll.constant([1.0, 2.0])
    counts = []
    for _ in range(3):
        for _ in range(30):
            gradient(f, x)
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert counts[2] - counts[1] < 30


def test_052_without_a_tape_it_is_the_function() -> None:
    assert ll.recompute_grad(deep)(ll.constant(0.3)).item() == deep(ll.constant(0.3)).item()
    with pytest.raises(ArgumentError, match="decorator"):
        ll.recompute_grad(3)  # type: ignore[arg-type]


@both
def test_052_forward_mode(stage: Function) -> None:
    x = ll.constant([0.3, -0.7])
    with ll.ForwardAccumulator(x, ll.constant([1.0, 2.0])) as forward:
        y = stage(ll.recompute_grad(deep))(x)
    assert gradient(deep, x)[0].numpy() * [1.0, 2.0] == pytest.approx(forward.jvp(y).numpy(), rel=1e-5)

"""What loops keep for their gradients: counted in bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll

STEPS, ROW = 50, 8 * 100 * 8
x0 = ll.constant(np.linspace(-1.0, 1.0, 800).reshape(8, 100))


def saved(F: Callable[..., Any], *xs: Any) -> int:
    with ll.GradientTape() as tape:
        tape.watch(xs)
        F(*xs)
    return tape.saved_bytes


def scan_of(step: Callable[[Any], Any], shows: bool = False) -> Any:
    def run(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            c = step(c)
            return c, c if shows else None

        return ll.scan(body, x, length=STEPS)

    return ll.function(run)


def loop_of(step: Callable[[Any], Any]) -> Any:
    return ll.function(lambda x: ll.while_loop(lambda i, c: i < STEPS, lambda i, c: (i + 1, step(c)), (0, x))[1])


@pytest.mark.parametrize("repeat", [scan_of, loop_of])
def test_weights_are_kept_once_however_long_the_loop(repeat: Callable[..., Any]) -> None:
    v = ll.Variable(np.eye(100) * 0.5)
    mask = ll.constant(np.eye(100) + 0.01)
    stacks = STEPS * ROW  # a step begins with what the last one returned
    weights = 2 * v.numpy().nbytes
    for step in (lambda c: ll.tanh(c @ (v * mask)), lambda c: ll.tanh(c @ ll.exp(v * mask))):
        assert stacks <= saved(repeat(step), x0) <= stacks + weights + 2 * ROW
    F = repeat(lambda c: ll.tanh(c @ (v * mask)))
    with ll.GradientTape() as tape:
        y = ll.sum(F(x0)[0] if repeat is scan_of else F(x0))
    given = tape.gradient(y, v).numpy()
    with ll.GradientTape() as tape:
        c = x0
        for _ in range(STEPS):
            c = ll.tanh(c @ (v * mask))
        y = ll.sum(c)
    np.testing.assert_allclose(given, tape.gradient(y, v).numpy(), rtol=1e-9, atol=1e-12)


def test_what_backward_does_not_need_is_not_stacked() -> None:
    assert saved(scan_of(lambda c: c + 1.0), x0) < ROW
    assert saved(loop_of(lambda c: (c * 3.0).reshape((-1,)).reshape((8, 100)) - 1.0), x0) < ROW
    tanh = saved(scan_of(lambda c: ll.tanh(c + 1.0)), x0)
    assert STEPS * ROW <= tanh < STEPS * ROW + 3 * ROW, "tanh keeps its result, nothing else does"


def test_what_a_scan_returns_is_not_kept_a_second_time() -> None:
    F = scan_of(lambda c: ll.sin(c) * ll.tanh(c), shows=True)
    with ll.GradientTape() as tape:
        tape.watch(x0)
        _, all_ = F(x0)
    shown = all_.numpy().nbytes
    assert shown == STEPS * ROW
    # of each step its sine and tanh, and what it returns, which is also what the next one begins with
    assert tape.saved_bytes <= 3 * shown + 3 * ROW
    wanted = ll.GradientTape()
    with wanted:
        wanted.watch(x0)
        c, total = x0, 0.0
        for _ in range(STEPS):
            c = ll.sin(c) * ll.tanh(c)
            total = total + ll.sum(c)
    np.testing.assert_allclose(
        tape.gradient(all_, x0).numpy(), wanted.gradient(total, x0).numpy(), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_stacks_shared_between_steps_give_the_right_gradient(reverse: bool) -> None:
    w, xs = ll.constant([0.7, -1.2]), ll.constant(np.linspace(-1, 1, 10).reshape(5, 2).astype("f"))

    def f(w: Any, xs: Any, shows: bool) -> Any:
        def step(c: Any, r: Any) -> Any:
            after = ll.sin(c * w) * c + r
            return after, after if shows else None

        last, all_ = ll.scan(step, w, xs, reverse=reverse)
        return ll.sum(last**2) + (ll.sum(all_**3) if shows else 0.0)

    for shows in (False, True):
        plain = ll.grad(lambda w, shows=shows: f(w, xs, shows))(w)
        staged = ll.grad(ll.function(lambda w, shows=shows: f(w, xs, shows)))(w)
        np.testing.assert_allclose(staged.numpy(), plain.numpy(), rtol=1e-5)


def test_a_variable_that_the_loop_writes_is_read_in_every_step() -> None:
    v = ll.Variable(1.0)

    @ll.function
    def f(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            y = c * v
            v.assign_add(1.0)
            return y, v.read_value()

        return ll.scan(step, x, length=3)

    last, all_ = f(ll.constant(1.0))
    assert (last.item(), all_.tolist()) == (6.0, [2.0, 3.0, 4.0])
    assert not any(node.op == "read_variable" for node in f.trace_cache[0].graph.nodes)


def test_a_python_function_may_write_what_the_loop_reads() -> None:
    v = ll.Variable(1.0)

    @ll.function
    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            ll.py_func(lambda: v.assign_add(1.0), [], None)
            return i + 1, c + v

        return ll.while_loop(lambda i, c: i < 3, body, (0, x))[1]

    assert f(ll.constant(0.0)).item() == 2.0 + 3.0 + 4.0


def test_a_variable_may_change_between_a_loop_and_its_gradient() -> None:
    v = ll.Variable(2.0)
    loops = [
        ll.function(lambda x: ll.while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, c * v), (0, x))[1]),
        ll.function(lambda x: ll.scan(lambda c, _: (c * v, None), x, length=3)[0]),
    ]
    for F in loops:
        v.assign(2.0)
        x = ll.constant(1.0)
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = F(x)
        v.assign(100.0)
        dx, dv = tape.gradient(y, [x, v])
        assert (dx.item(), dv.item()) == (8.0, 12.0)


@pytest.mark.parametrize(("watched", "stacks"), [("x", 0), ("xm", 1)])
def test_nothing_is_stacked_for_the_gradient_of_what_is_not_watched(watched: str, stacks: int) -> None:
    masks = ll.constant(np.linspace(0.0, 1.0, 3 * 800).reshape(3, 8, 100))

    @ll.function
    def slopes(x: Any, m: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch({"x": x, "xm": (x, m)}[watched])
            y = ll.scan(lambda c, r: (c * r, None), x, m)[0]
        return tape.gradient(y, x)

    np.testing.assert_allclose(slopes(x0, masks).numpy(), np.prod(masks.numpy(), axis=0), rtol=1e-12)
    (forward,) = [node for node in slopes.trace_cache[0].graph.nodes if node.op == "scan_forward"]
    assert len(forward.outputs) == 1 + stacks, "the last carry; and for the masks' gradient what each step begins with"

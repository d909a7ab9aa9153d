"""Forward mode through staged functions and control flow: first, second and mixed orders agree with reverse mode."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll

inner = ll.function(lambda a, b: ll.exp(a * b) / b)


def loop(until, body):
    def run(x, y):
        start = (ll.constant(0), y, ll.zeros(3, dtype=ll.float64))
        return ll.while_loop(until, lambda i, a, c: body(i, a, c, x), start)[2]

    return run


PROGRAMS = {
    "ops": lambda x, y: ll.sin(x * y),
    "calls": lambda x, y: inner(x, y) * inner(y, x) + inner(x, x),
    "cond, true": lambda x, y: ll.cond(ll.sum(x) > 0, lambda: x * x * y, lambda: ll.sin(y)),
    "cond, false": lambda x, y: ll.cond(ll.sum(x) < 0, lambda: x * x * y, lambda: ll.sin(y)),
    "while, counted": loop(lambda i, a, c: i < 3, lambda i, a, c, x: (i + 1, a * x + ll.sin(a), c + a)),
    "while, by value": loop(
        lambda i, a, c: ll.sum(a) < 50, lambda i, a, c, x: (i + 1, a * (x + 1) + ll.sin(a) + 1, c + a)
    ),
    "while, never": loop(lambda i, a, c: i < 0, lambda i, a, c, x: (i + 1, a * x, c + a * x)),
    "py_func": lambda x, y: ll.py_func(lambda a, b: a * ll.sin(b) * a, [x, y], ll.TensorSpec((3,), "float64")) * x,
}


def draw(seed):
    rng = np.random.Generator(np.random.Philox(seed))
    return tuple(ll.constant(rng.uniform(0.5, 1.5, 3)) for _ in range(2))


def dot(xs, ys):
    return sum(ll.sum(x * y) for x, y in zip(xs, ys, strict=True)).item()


@pytest.fixture(params=PROGRAMS.values(), ids=PROGRAMS)
def F(request):
    return ll.function(request.param)


def test_first_order(F):
    xs, ts, (w, _) = draw(1), draw(2), draw(3)
    y, t = ll.jvp(F, xs, ts)
    again, pull = ll.vjp(F, *xs)
    np.testing.assert_allclose(y.numpy(), again.numpy())
    np.testing.assert_allclose(dot([w], [t]), dot(pull(w), ts), rtol=1e-12)
    assert F.trace_count == 1


def squared(F):
    return ll.grad(lambda x, y: ll.sum(F(x, y) * F(x, y)), argnums=(0, 1))


def test_forward_over_reverse(F):
    xs, ts, us = draw(1), draw(2), draw(3)
    gradient = squared(F)
    moved = ll.jvp(gradient, xs, ts)[1]
    twice = ll.grad(lambda *a: sum(ll.sum(g * u) for g, u in zip(gradient(*a), us, strict=True)), argnums=(0, 1))(*xs)
    np.testing.assert_allclose(dot(moved, us), dot(twice, ts), rtol=1e-10)
    staged = ll.function(lambda *a: ll.jvp(gradient, a, ts)[1])(*xs)
    for found, wanted in zip(staged, moved, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-10)
    assert F.trace_count == 1


def test_reverse_over_forward(F):
    xs, ts, (w, _) = draw(1), draw(2), draw(3)
    found = ll.grad(lambda *a: ll.sum(ll.jvp(F, a, ts)[1] * w), argnums=(0, 1))(*xs)
    wanted = ll.jvp(ll.grad(lambda *a: ll.sum(F(*a) * w), argnums=(0, 1)), xs, ts)[1]
    for g, h in zip(found, wanted, strict=True):
        np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-10, atol=1e-12)


def test_third_order(F):
    xs, ts, us = draw(1), draw(2), draw(3)
    gradient = squared(F)

    def second(*a):
        return ll.jvp(gradient, a, ts)[1]

    moved = ll.jvp(second, xs, us)[1]
    step = 1e-5
    ends = [second(*[x + s * step * u for x, u in zip(xs, us, strict=True)]) for s in (1, -1)]
    for found, high, low in zip(moved, *ends, strict=True):
        np.testing.assert_allclose(found.numpy(), (high - low).numpy() / (2 * step), rtol=1e-5, atol=1e-6)


def test_a_pushed_function_is_built_once_and_only_when_something_moves():
    F = ll.function(lambda x: ll.sin(x) * x)
    x = ll.constant(2.0)
    F(x)
    function = F.trace_cache[0].function
    with ll.ForwardAccumulator(ll.constant(1.0), 1.0):
        F(x)
    assert not function.pairs
    for _ in range(3):
        with ll.ForwardAccumulator(x, 1.0) as forward:
            y = F(x)
        np.testing.assert_allclose(forward.jvp(y).item(), np.cos(2.0) * 2 + np.sin(2.0), rtol=1e-6)
    assert len(function.pairs) == 1
    assert F.trace_count == 1


def test_a_loop_with_a_variable_and_an_unmoved_counter():
    v = ll.Variable(2.0)

    @ll.function
    def power(n):
        return ll.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * v), (ll.constant(0), ll.constant(1.0)))[1]

    with ll.ForwardAccumulator(v, 1.0) as forward:
        y = power(ll.constant(5))
    assert (y.item(), forward.jvp(y).item()) == (32.0, 80.0)

"""Section 4.6, `function`: staging and differentiation within one another (behaviour 167)."""

from __future__ import annotations

import itertools
import os

import pytest

import limelight as ll

x = ll.constant([1.0, 2.0])


def square(v):
    return ll.sum(v * v * v)


# 167


def test_167_staging_and_differentiation_in_any_order():
    def gradient(v):
        with ll.GradientTape() as tape:
            tape.watch(v)
            y = square(v)
        return tape.gradient(y, v)

    def gradient_of_staged(v):
        with ll.GradientTape() as tape:
            tape.watch(v)
            y = ll.function(square)(v)
        return tape.gradient(y, v)

    wanted = [3.0, 12.0]
    for fn in (gradient, gradient_of_staged):
        assert fn(x).tolist() == wanted
        assert ll.function(fn)(x).tolist() == wanted
        assert ll.function(ll.function(fn))(x).tolist() == wanted


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("outer", [True, False])
def test_167_second_gradients_through_staged_functions(inner, outer):
    def first(v):
        with ll.GradientTape() as tape:
            tape.watch(v)
            y = (ll.function(square) if inner else square)(v)
        return tape.gradient(y, v)

    with ll.GradientTape() as tape:
        tape.watch(x)
        g = (ll.function(first) if outer else first)(x)
    assert tape.gradient(g, x).tolist() == [6.0, 12.0]


def test_167_a_function_over_a_bound_method_of_a_function():
    class Model:
        def __init__(self):
            self.w = ll.Variable(3.0)

        @ll.function
        def step(self, v):
            return v * self.w

    model = Model()
    again = ll.function(model.step)
    assert again(x).tolist() == [3.0, 6.0]
    with ll.GradientTape() as tape:
        y = ll.sum(again(x))
    assert tape.gradient(y, model.w).item() == 3.0


def in_cond(f):
    return lambda v: ll.cond(v > 0, lambda: f(v), lambda: f(v))


def in_while_loop(f):
    return lambda v: ll.while_loop(lambda i, a: i < 1, lambda i, a: (i + 1, f(a)), (ll.constant(0), v))[1]


def in_scan(f):
    return lambda v: ll.scan(lambda c, _: (f(c), c), v, ll.ones((1,)))[0]


def vectorized(f):
    return lambda v: ll.vectorize(f)(ll.reshape(v, (1,)))[0]


def pushed(f):
    def slope(v):
        with ll.ForwardAccumulator(v, ll.ones_like(v)) as accumulator:
            y = f(v)
        return accumulator.jvp(y)

    return slope


def pulled(f):
    def slope(v):
        with ll.GradientTape() as tape:
            tape.watch(v)
            y = f(v)
        return tape.gradient(y, v)

    return slope


def of_its_own_rule(f):
    @ll.custom_gradient
    def ruled(v):
        def grad(dy, variables=None):
            slope = dy * pulled(f)(v)
            return (slope, [ll.zeros(())] * len(variables)) if variables else slope

        return f(v), grad

    return ruled


WRAPPED = {
    "function": (ll.function, 0),
    "autograph": (lambda f: ll.function(f, autograph=True), 0),
    "cond": (in_cond, 0),
    "while_loop": (in_while_loop, 0),
    "scan": (in_scan, 0),
    "vectorize": (vectorized, 0),
    "recompute_grad": (ll.recompute_grad, 0),
    "custom_gradient": (of_its_own_rule, 0),
    "tape": (pulled, 1),
    "accumulator": (pushed, 1),
}
weight = ll.Variable(3.0)


@ll.function
def staged_cube(v):
    return weight * v * v * v


PAIRS = list(itertools.product(WRAPPED, repeat=2))
FULL = os.environ.get("LIMELIGHT_TESTS") == "full"


@pytest.mark.parametrize(("inner", "outer"), PAIRS if FULL else PAIRS[::3])  # 3 and 10 share no divisor
def test_167_transformations_nest_in_any_order(inner, outer):
    wanted = [24.0, 36.0, 36.0, 18.0]  # 3 v ** 3 and its derivatives
    v = ll.constant(2.0)
    for fn in (staged_cube, lambda a: weight * a * a * a):
        wrapped = WRAPPED[outer][0](WRAPPED[inner][0](fn))
        order = WRAPPED[outer][1] + WRAPPED[inner][1]
        assert wrapped(v).item() == wanted[order]
        assert ll.function(wrapped)(v).item() == wanted[order]
        assert pulled(wrapped)(v).item() == wanted[order + 1]

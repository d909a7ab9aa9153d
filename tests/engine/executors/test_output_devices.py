"""Results lie staged where they lie eagerly, also where a pass takes away the op whose operand decided."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll
from limelight.executors.loops.native_loops import is_installed


def places(results):
    return [x.device.short for x in ll.tree.leaves(results)]


def scoped(b):
    with ll.device("CPU:1"):
        c = ll.tanh(b)
    return ll.ones((3,)) * c


PROGRAMS = {
    "ones are dropped": lambda b: ll.ones((3,)) * b,
    "zeros are dropped": lambda b: ll.zeros((2, 3)) + b,
    "constants are folded": lambda b: (ll.zeros((2, 3)) + ll.constant(2.0)) * b,
    "a constant is broadcast": lambda b: ll.broadcast_to(ll.constant(2.0), (3,)) * b,
    "one of several results": lambda b: (b * 2.0, ll.ones((3,)) * b),
    "a scope": scoped,
}


@pytest.mark.parametrize("executor", ["step", "plan", *["loops"] * is_installed()])
@pytest.mark.parametrize("home", ["CPU:0", "CPU:1"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("retraces_are_meant", "second_cpu")
def test_results_stay_where_they_are_eagerly(name, home, executor):
    f, b = PROGRAMS[name], ll.constant(np.ones((2, 3), np.float32)).to(home)
    eager = f(b)
    with ll.config.executor(executor):
        staged = ll.function(f)(b)
    assert places(staged) == places(eager)
    for x, y in zip(ll.tree.leaves(staged), ll.tree.leaves(eager), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("homes", [("CPU:0", "CPU:1"), ("CPU:1", "CPU:0"), ("CPU:1", "CPU:1")])
@pytest.mark.usefixtures("second_cpu")
def test_gradients_of_examples_are_on_the_devices_of_their_sources(homes):
    a, b = (ll.constant(np.ones((2, 3), np.float32)).to(home) for home in homes)
    g = ll.vectorize(ll.grad(lambda a, b: ll.sum(a * a * b), argnums=(0, 1)))
    assert places(g(a, b)) == places(ll.function(g)(a, b)) == list(homes)


def accumulated(x):
    with ll.ForwardAccumulator(x, x) as accumulator:
        y = ll.ones_like(x)
    return accumulator.jvp(y, unconnected_gradients="zero")


def taped(x):
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.sum(ll.stop_gradient(x))
    return tape.gradient(y, x, unconnected_gradients="zero")


@pytest.mark.parametrize(
    "derivative",
    [
        ll.grad(lambda x: ll.sum(ll.ones((3,)))),
        ll.grad(lambda x: ll.sum(ll.recompute_grad(lambda x: ll.ones((3,)))(x))),
        ll.vectorize(ll.grad(lambda x: ll.sum(ll.stop_gradient(x)))),
        ll.jacobian(lambda x: ll.ones((2,))),
        ll.jacobian(lambda x: ll.ones((0,))),
        ll.hessian(ll.sum),
        lambda x: ll.vjp(lambda x: ll.ones((3,)), x)[1](ll.ones((3,)))[0],
        accumulated,
        taped,
    ],
)
@pytest.mark.usefixtures("retraces_are_meant", "second_cpu")
def test_zeros_of_what_has_no_influence_are_on_the_device_of_their_source(derivative):
    x = ll.constant(np.ones((2, 3), np.float32)).to("CPU:1")
    assert places(derivative(x)) == places(ll.function(derivative)(x)) == ["CPU:1"]


@pytest.mark.usefixtures("second_cpu")
def test_one_example_knows_its_device_while_it_is_traced():
    asked = []

    def f(x):
        asked.append(x.device.short)
        return x

    ll.function(ll.vectorize(f))(ll.constant(np.ones((2, 3), np.float32)).to("CPU:1"))
    assert asked == ["CPU:1"]

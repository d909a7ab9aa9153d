"""Each optimiser against the published formulas, written out in NumPy, over several steps."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll

STEPS = 5


def sgd(v, gradients, rate):
    return v - rate * sum(gradients)


def momentum(v, gradients, rate, beta=0.9, nesterov=False):
    m = np.zeros_like(v)
    for g in gradients:
        m = beta * m + g
        v = v - rate * (g + beta * m if nesterov else m)
    return v


def adam(v, gradients, rate, decay=0.0, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m, s = np.zeros_like(v), np.zeros_like(v)
    for t, g in enumerate(gradients, 1):
        m, s = beta1 * m + (1 - beta1) * g, beta2 * s + (1 - beta2) * g * g
        v = v - rate * (m / (1 - beta1**t)) / (np.sqrt(s / (1 - beta2**t)) + epsilon) - rate * decay * v
    return v


def rmsprop(v, gradients, rate, decay=0.9, epsilon=1e-8):
    s = np.zeros_like(v)
    for g in gradients:
        s = decay * s + (1 - decay) * g * g
        v = v - rate * g / (np.sqrt(s) + epsilon)
    return v


def adagrad(v, gradients, rate, epsilon=1e-10):
    s = np.zeros_like(v)
    for g in gradients:
        s = s + g * g
        v = v - rate * g / (np.sqrt(s) + epsilon)
    return v


OPTIMISERS = {
    "SGD": (lambda: ll.optim.SGD(0.1), lambda v, g: sgd(v, g, 0.1)),
    "Momentum": (lambda: ll.optim.Momentum(0.1, 0.8), lambda v, g: momentum(v, g, 0.1, 0.8)),
    "Nesterov": (lambda: ll.optim.Momentum(0.1, nesterov=True), lambda v, g: momentum(v, g, 0.1, nesterov=True)),
    "Adam": (lambda: ll.optim.Adam(0.1), lambda v, g: adam(v, g, 0.1)),
    "Adam without memory": (
        lambda: ll.optim.Adam(0.1, beta1=0.0, beta2=0.5, epsilon=0.1),
        lambda v, g: adam(v, g, 0.1, beta1=0.0, beta2=0.5, epsilon=0.1),
    ),
    "AdamW": (lambda: ll.optim.AdamW(0.1, weight_decay=0.3), lambda v, g: adam(v, g, 0.1, decay=0.3)),
    "RMSProp": (lambda: ll.optim.RMSProp(0.1), lambda v, g: rmsprop(v, g, 0.1)),
    "Adagrad": (lambda: ll.optim.Adagrad(0.1), lambda v, g: adagrad(v, g, 0.1)),
}


def data(dtype, shape=(2, 3)):
    rng = np.random.default_rng(0)
    return rng.normal(size=shape).astype(dtype), [rng.normal(size=shape).astype(dtype) for _ in range(STEPS)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_updates_follow_the_formulas(name, dtype):
    make, expected = OPTIMISERS[name]
    start, gradients = data(dtype)
    v, optimiser = ll.Variable(start), make()
    for g in gradients:
        optimiser.apply([ll.constant(g)], [v])
    wanted = expected(start.astype("float64"), [g.astype("float64") for g in gradients])
    assert np.allclose(v.numpy(), wanted, rtol=1e-12 if dtype == "float64" else 2e-6, atol=1e-6 * (dtype == "float32"))
    assert optimiser.step.numpy() == STEPS
    assert v.dtype == dtype


@pytest.mark.parametrize("name", OPTIMISERS)
def test_staged_steps_create_state_once_and_are_the_eager_ones(name):
    make, _ = OPTIMISERS[name]
    start, gradients = data("float32")
    eager, staged = ll.Variable(start), ll.Variable(start)
    optimiser, other = make(), make()
    step = ll.function(lambda g: optimiser.apply([g], [staged]))
    for i, g in enumerate(gradients):
        other.apply([ll.constant(g)], [eager])
        step(ll.constant(g))
        if i == 0:
            traces = step.trace_count
    assert step.trace_count == traces
    assert len(step.trace_cache) == 1
    assert np.allclose(staged.numpy(), eager.numpy(), rtol=1e-6)
    paths = [path for path, _ in optimiser.named_variables()]
    assert paths == ["step", *(f"slots/0/{slot}" for slot in optimiser.slot_names), "learning_rate"]
    assert not optimiser.trainable_variables


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_short_floats_are_updated_in_float32_and_rounded_once(name, dtype):
    make, expected = OPTIMISERS[name]
    v = ll.Variable(ll.constant([1.0, -2.0], dtype))
    g = ll.constant([0.0, 3.0], dtype)  # Adam's 1e-8 would be 0 in float16, and 0 / 0 the update
    optimiser = make()
    optimiser.apply([g], [v])
    wanted = expected(np.array([1.0, -2.0]), [np.array([0.0, 3.0])])
    assert v.dtype == dtype
    assert np.allclose(v.numpy().astype("float64"), wanted, rtol=4e-3)
    assert {s.dtype.name for s in optimiser.slots_of(v).values()} <= {"float32"}


@pytest.mark.parametrize("shape", [(), (0, 2), (1,)])
def test_shapes_without_axes_and_without_elements(shape):
    v, optimiser = ll.Variable(np.ones(shape, "float32")), ll.optim.Adam(0.5)
    optimiser.apply([ll.ones(shape)], [v])
    assert np.allclose(v.numpy(), np.full(shape, 0.5))


def test_several_variables_have_slots_of_their_own_in_the_order_of_their_first_update():
    a, b = ll.Variable([1.0], name="a"), ll.Variable([1.0, 2.0], name="b")
    optimiser = ll.optim.Momentum(1.0, 0.5)
    optimiser.apply([ll.constant([1.0, 1.0])], [b])
    optimiser.apply([ll.constant([2.0]), ll.constant([1.0, 1.0])], [a, b])
    assert [v.name for v in optimiser.variables] == ["step", "b/momentum", "a/momentum", "learning_rate"]
    assert a.numpy().tolist() == [-1.0]
    assert b.numpy().tolist() == [-1.5, -0.5]


def test_build_creates_the_slots_before_the_first_step():
    v, optimiser = ll.Variable([1.0]), ll.optim.Adam()
    optimiser.build([v])
    assert len(optimiser.slots) == 1
    before = optimiser.slots_of(v)
    optimiser.apply([ll.constant([1.0])], [v])
    assert optimiser.slots_of(v) is before


def test_slots_live_where_their_variable_does(second_cpu):
    with ll.device(second_cpu):
        v = ll.Variable([1.0, 2.0])
    optimiser = ll.optim.Adam(0.5)
    with ll.device("CPU:0"):
        optimiser.apply([ll.ones(2).to(second_cpu)], [v])
    assert {s.device for s in optimiser.slots_of(v).values()} == {second_cpu}
    assert v.device is second_cpu
    assert v.numpy().round(4).tolist() == [0.5, 1.5]

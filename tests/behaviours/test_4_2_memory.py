"""Section 4.2, memory, devices and numbers: behaviours 72 to 78."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import both, gradient

import limelight as ll

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


@pytest.mark.slow  # hundreds of steps
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
    from limelight.core.op import get

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
    assert all("test_4_2_memory.py" in str(node.source) for node in backward.graph.nodes)


def test_077_and_so_in_a_trace_with_a_tape_in_it() -> None:
    @ll.function
    def slope(a: Any) -> Any:
        return gradient(lambda b: ll.tanh(b) * b, a)[0] * 2.0

    slope(ll.constant(0.5))
    scopes = [node.scope for node in slope.trace_cache[0].graph.nodes if node.op != "constant"]
    assert scopes[:2] == ["", ""]
    assert set(scopes[2:-1]) == {"gradient/"}
    assert scopes[-1] == "", "what comes after is no gradient"


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

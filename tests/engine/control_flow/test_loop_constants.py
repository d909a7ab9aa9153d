"""What the gradient of a loop keeps of the loop's inputs."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import limelight as ll

start = (ll.constant(0), ll.constant(0.0))


def test_a_variable_may_take_another_size_between_a_loop_and_its_gradient() -> None:
    v = ll.Variable(np.ones(3, np.float32), shape=(None,))

    @ll.function
    def f() -> Any:
        with ll.GradientTape() as tape:
            _, total = ll.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s + ll.sum(v * v)), start)
            v.assign(ll.ones((5,)))
        return tape.gradient(total, v)

    assert f().tolist() == [4.0, 4.0, 4.0]
    assert v.numpy().shape == (5,)


def test_a_loop_keeps_no_tensor_for_its_shape_alone() -> None:
    loop = ll.function(
        lambda a: ll.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s + ll.sum(a)), start)[1],
        input_signature=[ll.TensorSpec((None,), "float32")],
    )
    x = ll.ones((100,))
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
        total = loop(y)
    kept = weakref.ref(y._data)
    del y
    gc.collect()
    assert kept() is None
    assert tape.gradient(total, x).tolist() == [4.0] * 100


@pytest.mark.parametrize("place", ["cpu:0", "cpu:1"])
def test_the_gradient_of_a_loop_is_where_the_captured_tensor_is(place: str, second_cpu: Any) -> None:
    with ll.device(place):
        x = ll.constant([1.0, 2.0])
    loop = ll.function(lambda a: ll.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + ll.sum(a * a)), start)[1])
    with ll.GradientTape() as tape:
        tape.watch(x)
        total = loop(x)
    gradient = tape.gradient(total, x)
    assert gradient.tolist() == [6.0, 12.0]
    assert gradient.device is x.device


def test_gradients_of_loop_variables_may_know_less_of_their_sizes_than_the_variables() -> None:
    def gradient(x: Any, w: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(w)
            n = ll.shape_of(x)[1]
            rows = ll.arange(n).expand_dims(1)

            def step(i: Any, y: Any) -> Any:
                return i + 1, ll.where(rows == i, (x[:, i] * w).expand_dims(1), y)

            _, y = ll.while_loop(lambda i, y: i < n, step, (ll.constant(0), ll.zeros_like(x)))
            total = ll.sum(y**2)
        return tape.gradient(total, w)

    specs = [ll.TensorSpec((None, None, 2)), ll.TensorSpec((2,))]
    assert ll.function(gradient, input_signature=specs)(ll.ones((2, 3, 2)), ll.ones(2)).tolist() == [12.0, 12.0]


def triangle(i: Any, y: Any, x: Any) -> Any:
    return ll.while_loop(lambda j, _: j < i, lambda j, z: (j + 1, ll.sin(z) * x), (0, y))[1]


def in_a_while(x: Any) -> Any:
    return ll.while_loop(lambda i, _: i < 4, lambda i, y: (i + 1, triangle(i, y, x)), (0, x))[1]


def in_a_scan(x: Any) -> Any:
    return ll.scan(lambda y, i: (triangle(i, y, x), y), x, ll.arange(4), reverse=True)[0]


def in_a_call_in_a_while(x: Any) -> Any:
    inner = ll.function(triangle)
    return ll.while_loop(lambda i, _: i < 4, lambda i, y: (i + 1, inner(i, y, x)), (0, x))[1]


def in_two_whiles(x: Any) -> Any:
    def middle(i: Any, y: Any) -> Any:
        return ll.while_loop(lambda j, _: j < i, lambda j, z: (j + 1, triangle(j, z, x)), (0, y))[1]

    return ll.while_loop(lambda i, _: i < 4, lambda i, y: (i + 1, middle(i, y)), (0, x))[1]


def in_a_branch_in_a_while(x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        return i + 1, ll.cond(i % 3 > 0, lambda: triangle(i, y, x), lambda: y * x)

    return ll.while_loop(lambda i, _: i < 6, body, (0, x))[1]


@pytest.mark.parametrize("f", [in_a_while, in_a_scan, in_a_call_in_a_while, in_two_whiles, in_a_branch_in_a_while])
def test_gradients_of_loops_whose_inner_loop_takes_another_number_of_iterations_each_time(f: Any) -> None:
    """Item 61."""
    x = ll.constant(np.array([0.5, 0.8]))

    def slopes(f: Any) -> Any:
        first = ll.grad(lambda x: ll.sum(f(x)))
        return first, ll.grad(lambda x: ll.sum(first(x) ** 2))

    for wanted, staged, around in zip(slopes(f), slopes(ll.function(f)), slopes(f), strict=True):
        np.testing.assert_allclose(staged(x).numpy(), wanted(x).numpy(), rtol=1e-12)
        np.testing.assert_allclose(ll.function(around)(x).numpy(), wanted(x).numpy(), rtol=1e-12)

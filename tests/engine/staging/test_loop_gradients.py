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

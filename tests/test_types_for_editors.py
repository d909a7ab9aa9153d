"""What an editor knows of calls: mypy checks this file (`make types`), and pytest that it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import limelight as ll


class Scaled(ll.Module):
    def __init__(self) -> None:
        self.dense = ll.nn.Dense(2)

    def call(self, x: ll.Tensor) -> tuple[ll.Tensor, int]:
        return self.dense(x), 1

    @ll.function
    def doubled(self, x: ll.Tensor) -> ll.Tensor:
        return 2.0 * x


def loss(x: ll.Tensor, power: int = 2) -> ll.Tensor:
    return ll.sum(x**power)


def of_weights(weights: dict[str, ll.Tensor], x: ll.Tensor) -> ll.Tensor:
    return ll.sum(weights["w"] * x)


X = ll.constant([1.0, 2.0])


def test_a_model_returns_what_its_call_returns() -> None:
    batch = ll.ones((3, 4))
    assert_type(Scaled()(batch), tuple[ll.Tensor, int])
    assert_type(ll.nn.Dense(2)(batch), ll.Tensor)
    assert_type(ll.nn.Sequential(ll.nn.Dense(2), ll.nn.relu)(batch, training=True), ll.Tensor)
    assert_type(ll.nn.Dropout(0.5)(batch, training=True), ll.Tensor)
    assert_type(ll.nn.Conv(2, 3)(ll.ones((1, 4, 4, 1))), ll.Tensor)


def test_gradients_are_like_the_first_argument() -> None:
    assert_type(ll.grad(loss)(X), ll.Tensor)
    assert_type(ll.grad(loss)(X, 3), ll.Tensor)
    assert_type(ll.grad(of_weights)({"w": X}, X), dict[str, ll.Tensor])
    assert_type(ll.value_and_grad(loss)(X), tuple[ll.Tensor, ll.Tensor])
    assert_type(ll.value_and_grad(of_weights)({"w": X}, X), tuple[ll.Tensor, dict[str, ll.Tensor]])
    assert_type(ll.grad(of_weights, argnums=(0, 1))({"w": X}, X), Any)


def test_a_staged_function_is_called_as_the_function_is() -> None:
    staged = ll.function(loss)
    assert_type(staged(X, power=3), ll.Tensor)
    assert_type(staged.trace_count, int)
    assert_type(ll.function(name="loss")(loss)(X), ll.Tensor)
    assert_type(Scaled().doubled(X), ll.Tensor)
    assert_type(ll.value_and_grad(staged)(X), tuple[ll.Tensor, ll.Tensor])


def test_a_vectorised_function_is_called_as_the_function_is() -> None:
    assert_type(ll.vectorize(loss)(ll.ones((3, 2))), ll.Tensor)
    rows: Callable[[ll.Tensor], ll.Tensor] = ll.vectorize(ll.function(lambda x: x + 1.0))
    assert rows(X).shape == (2,)


def test_ops_layers_and_losses_are_known_by_name() -> None:
    assert_type(ll.sum(X), ll.Tensor)
    assert_type(ll.where(X > 1.0, X, 0.0), ll.Tensor)
    assert_type(ll.linalg.norm(X), ll.Tensor)
    assert_type(ll.random.normal((2,)), ll.Tensor)
    assert_type(ll.nn.softmax_cross_entropy(ll.ones((1, 2)), ll.constant([1])), ll.Tensor)
    assert_type(ll.nn.relu(X), ll.Tensor)

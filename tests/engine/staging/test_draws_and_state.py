"""State that is first made among random draws has the numbers that eager code gives it, and so have the draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.graph.effects import effects_of
from limelight.staging import state_creation

STEPS = st.lists(
    st.sampled_from(
        ["draw", "own draw", "layer", "own layer", "dropout", "seed", "reset", "inner", "variable", "ints"]
    ),
    min_size=1,
    max_size=7,
)


@ll.function
def inner(x: Any) -> Any:
    return x + ll.random.uniform((1, 2))


class Program:
    """The steps in turn, each adding to `y`; layers and variables are made where they are first needed."""

    def __init__(self, steps: list[str]) -> None:
        self.steps = steps
        self.own = ll.random.Generator(5)
        self.dropout = ll.nn.Dropout(0.5)
        self.made: dict[int, Any] = {}
        own = self.own

        self.layers = {
            i: ll.nn.Dense(2, kernel_initializer=lambda shape, dtype=None: own.normal(shape))
            if step == "own layer"
            else ll.nn.Dense(2)
            for i, step in enumerate(steps)
            if step.endswith("layer")
        }

    def run(self, y: Any) -> Any:
        for i, step in enumerate(self.steps):
            y = self.step(i, step, y)
        return y

    def step(self, i: int, step: str, y: Any) -> Any:
        match step:
            case "draw":
                return y + ll.random.normal((1, 2))
            case "own draw":
                return y + self.own.normal((1, 2))
            case "layer" | "own layer":
                return self.layers[i](y)
            case "dropout":
                return self.dropout(y, training=True)
            case "seed":
                ll.random.seed(i)
            case "reset":
                self.own.reset(i)
            case "inner":
                return inner(y)
            case "variable":
                if i not in self.made:
                    self.made[i] = ll.Variable(ll.random.normal((1, 2)))
                return y + self.made[i]
            case "ints":
                return y + ll.random.integers(0, 3, (1, 2)).astype("float32")
        return y


def outcome(steps: list[str], staged: bool, calls: int) -> list[Any]:
    ll.random.seed(1)
    program = Program(steps)
    f = ll.function(program.run) if staged else program.run
    results = [f(ll.ones((1, 2))).numpy() for _ in range(calls)]
    weights = [v.numpy() for layer in program.layers.values() for v in layer.variables]
    weights += [v.numpy() for v in program.made.values()]
    return [*results, *weights, ll.random.normal((2,)).numpy(), program.own.normal((2,)).numpy()]


@settings(max_examples=25)
@example(["layer", "dropout", "own layer", "seed", "layer", "draw", "variable"])
@given(STEPS)
def test_state_is_made_in_its_place_among_the_draws(steps: list[str]) -> None:
    for one, other in zip(outcome(steps, False, 3), outcome(steps, True, 3), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_weights_made_in_a_function_within_tell_that_their_numbers_are_others() -> None:
    net = ll.nn.Dense(2)
    within = ll.function(net.__call__)

    @ll.function
    def f(x: Any) -> Any:
        return within(x + ll.random.normal((1, 2)))

    with pytest.warns(UserWarning, match="an initial value is drawn while this is traced"):
        f(ll.ones((1, 2)))
    f(ll.ones((1, 2)))  # says no more


@pytest.mark.parametrize("draws", [False, True])
def test_the_search_for_draws_does_not_grow_with_each_slot_that_is_made(monkeypatch: Any, draws: bool) -> None:
    asked = []
    monkeypatch.setattr(state_creation, "effects_of", lambda node: asked.append(node) or effects_of(node))

    def asked_for(count: int) -> int:
        variables, gradients = [ll.Variable(ll.ones(3)) for _ in range(count)], [ll.ones(3)] * count
        optimizer = ll.optim.Adam(0.1)

        @ll.function
        def step() -> None:
            if draws:
                ll.random.normal(())
            optimizer.apply(gradients, variables)

        asked.clear()
        step()
        return len(asked)

    assert asked_for(20) <= 3 * max(asked_for(10), 1)


def test_weights_below_draws_of_as_many_numbers_as_the_data_has_are_made():
    """The size of the mask is known only when the batch is read, which happens once."""
    rows = np.arange(20, dtype="float32").reshape(10, 2)
    net = ll.nn.Sequential(ll.nn.Dense(3), ll.nn.Dropout(0.5), ll.nn.Dense(1))
    iterator = iter(ll.data.from_arrays(rows).batch(4))
    step = ll.function(lambda: net(next(iterator), training=True))
    ll.random.seed(0)
    with pytest.warns(UserWarning, match=r"as by next\(iterator\)"):
        first = step()
    assert first.shape == (4, 1)
    drawn = ll.random.default_generator().state.numpy().tobytes()
    second = step()  # of the rows after the first
    assert (second.shape, step().shape) == ((4, 1), (2, 1))
    assert ll.random.default_generator().state.numpy().tobytes() != drawn
    assert net.layers[0].kernel.numpy().tobytes() != net.layers[2].kernel.numpy().tobytes()

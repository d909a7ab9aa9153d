"""Section 4.2, Jacobians: behaviours 53 to 55."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import both

import limelight as ll
from limelight.errors import ArgumentError, ShapeError, TapeError

STRATEGIES: dict[str, dict[str, Any]] = {
    "at once": {},
    "in chunks": {"parallel_iterations": 2},
    "one at a time": {"parallel_iterations": 1},
    "sequential": {"vectorized": False},
}
each_strategy = pytest.mark.parametrize("options", STRATEGIES.values(), ids=STRATEGIES)


def drawn(*shape: int) -> Any:
    return ll.constant(np.random.Generator(np.random.Philox(sum(shape))).uniform(-1, 1, shape))


def differences(f: Callable[[Any], Any], x: np.ndarray[Any, Any], step: float = 1e-6) -> np.ndarray[Any, Any]:
    """The Jacobian by central differences, in the shape (output's, input's)."""
    columns = []
    for place in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = np.array(x)
            moved[place] += sign * step
            ends.append(f(ll.constant(moved)).numpy())
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


# 53 jacobian


@both
@each_strategy
def test_053_shape_is_the_targets_then_the_sources(stage: Any, options: dict[str, Any]) -> None:
    def f(x: Any) -> Any:
        return ll.tanh(x).mT @ x[:, :2]

    def jacobian(x: Any) -> Any:
        with ll.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        return tape.jacobian(y, x, **options)

    x = drawn(2, 3)
    found = stage(jacobian)(x)
    assert found.shape == (3, 2, 2, 3)
    np.testing.assert_allclose(found.numpy(), differences(f, x.numpy()), atol=1e-8)


@each_strategy
def test_053_sources_keep_their_structure_and_unconnected_ones_get_none(options: dict[str, Any]) -> None:
    x, w, other = drawn(3), drawn(3, 2), drawn(4)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch([x, w, other])
        y = x @ w
    found = tape.jacobian(y, {"x": x, "rest": [w, other, None]}, **options)
    np.testing.assert_allclose(found["x"].numpy(), w.numpy().T)
    assert found["rest"][0].shape == (2, 3, 2)
    assert found["rest"][1:] == [None, None]
    zeros = tape.jacobian(y, [x, other], unconnected_gradients="zero", **options)[1]
    assert zeros.shape == (2, 4)
    assert not zeros.numpy().any()


def test_053_a_nest_of_targets_has_one_jacobian_each() -> None:
    x = drawn(3)
    with ll.GradientTape() as tape:
        tape.watch(x)
        ys = {"square": x * x, "total": ll.sum(x), "index": ll.argmax(x)}
    found = tape.jacobian(ys, x)
    assert found["square"].shape == (3, 3)
    assert found["total"].tolist() == [1.0, 1.0, 1.0]
    assert found["index"] is None


@each_strategy
def test_053_gradients_of_look_ups_are_made_dense(options: dict[str, Any]) -> None:
    table = ll.Variable(drawn(4, 2))
    with ll.GradientTape(persistent=True) as tape:
        y = ll.nn.embedding(table, ll.constant([1, 1, 3])).sum(0)
    found = tape.jacobian(y, table, **options)
    assert isinstance(found, ll.Tensor)
    wanted = np.zeros((2, 4, 2))
    for column in range(2):
        wanted[column, :, column] = [0, 2, 0, 1]
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_053_the_sequential_strategy_on_a_one_shot_tape_says_why_not() -> None:
    x = drawn(3)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(TapeError, match=r"once for each element .*persistent=True"):
        tape.jacobian(y, x, vectorized=False)
    assert tape.jacobian(y, x).shape == (3, 3)  # the tape has not been used up by that
    with pytest.raises(TapeError, match="answered already"):
        tape.jacobian(y, x)


def test_053_a_one_shot_tape_lets_go_of_what_it_saved() -> None:
    x = drawn(3)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.jacobian(y, x, parallel_iterations=1)
    assert not tape.entries


def test_053_inside_the_block() -> None:
    x = drawn(3)
    with ll.GradientTape() as tape:
        tape.watch(x)
        found = tape.jacobian(x * x, x)
        assert not tape.active  # as with gradient(), a one-shot tape stops recording first
    np.testing.assert_allclose(found.numpy(), np.diag(2 * x.numpy()))
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * x
        with pytest.warns(UserWarning, match="persistent tape inside its own block"):
            first = tape.jacobian(y, x)
    second = tape.jacobian(first, x)  # recorded, too: higher orders from one tape
    assert second.shape == (3, 3, 3)
    np.testing.assert_allclose(np.einsum("iii->i", second.numpy()), 6 * x.numpy())


@pytest.mark.parametrize("shape", [(0,), (2, 0), ()])
def test_053_of_no_elements_and_of_scalars(shape: tuple[int, ...]) -> None:
    x = ll.zeros(shape)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ll.exp(x)
    for options in STRATEGIES.values():
        assert tape.jacobian(y, x, **options).shape == shape + shape


def test_053_of_unknown_sizes() -> None:
    def jacobian(x: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = ll.tanh(x).sum(0) * x
        return tape.jacobian(y, x)

    F = ll.function(jacobian, input_signature=[ll.TensorSpec((None, None), "float64")])
    for x in (drawn(2, 3), drawn(4, 1)):
        np.testing.assert_allclose(F(x).numpy(), jacobian(x).numpy())
    assert F.trace_count == 1


def test_053_refused_arguments() -> None:
    x = drawn(3)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(ArgumentError, match="parallel_iterations must be"):
        tape.jacobian(y, x, parallel_iterations=0)
    with pytest.raises(ArgumentError, match='"none" or "zero", got \'nought\''):
        tape.jacobian(y, x, unconnected_gradients="nought")
    with pytest.raises(ArgumentError, match="a target must be a tensor"):
        tape.jacobian(3.0, x)


# 54 batch_jacobian


def squares(x: Any) -> Any:
    """(b, 3) -> (b, 2): each row by itself."""
    return ll.stack([x[:, 0] * x[:, 1], ll.sin(x[:, 2]) * x[:, 0]], axis=1)


def batched(f: Callable[[Any], Any], **options: Any) -> Callable[[Any], Any]:
    def jacobian(x: Any) -> Any:
        with ll.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        return tape.batch_jacobian(y, x, **options)

    return jacobian


@both
@each_strategy
def test_054_one_jacobian_for_each_example(stage: Any, options: dict[str, Any]) -> None:
    x = drawn(4, 3)
    found = stage(batched(squares, **options))(x)
    assert found.shape == (4, 2, 3)
    for i in range(4):
        wanted = differences(lambda row: squares(row.expand_dims(0))[0], x.numpy()[i])
        np.testing.assert_allclose(found.numpy()[i], wanted, atol=1e-8)


def test_054_of_several_axes() -> None:
    x = drawn(2, 3, 2)
    found = batched(lambda x: x.mT @ x)(x)
    assert found.shape == (2, 2, 2, 3, 2)
    for i in range(2):
        np.testing.assert_allclose(found.numpy()[i], differences(lambda m: m.mT @ m, x.numpy()[i]), atol=1e-8)


def test_054_first_sizes_must_match_and_there_must_be_two_axes() -> None:
    x = drawn(4, 3)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, short, vector = x * x, x[:2] * 2.0, ll.sum(x, axis=1)
    with pytest.raises(ShapeError, match=r"target \(2, 3\) and source \(4, 3\) must have as many examples"):
        tape.batch_jacobian(short, x)
    with pytest.raises(ShapeError, match=r"target \(4,\) and source \(4, 3\) need two axes at least"):
        tape.batch_jacobian(vector, x)
    assert tape.batch_jacobian(y, x).shape == (4, 3, 3)


@both
@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (3, 1)])
def test_054_sizes_of_zero_and_one(stage: Any, shape: tuple[int, int]) -> None:
    for options in STRATEGIES.values():
        found = stage(batched(lambda x: ll.exp(x) * 2.0, **options))(ll.zeros(shape))
        assert found.shape == (*shape, shape[1])


def test_054_of_unknown_sizes() -> None:
    F = ll.function(batched(squares), input_signature=[ll.TensorSpec((None, 3), "float64")])
    for n in (2, 5):
        np.testing.assert_allclose(F(drawn(n, 3)).numpy(), batched(squares)(drawn(n, 3)).numpy())


def test_054_unconnected() -> None:
    x, other = drawn(4, 3), drawn(4, 2)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = x * x
    assert tape.batch_jacobian(y, other) is None
    zeros = tape.batch_jacobian(y, other, unconnected_gradients="zero")
    assert zeros.shape == (4, 3, 2)
    assert not zeros.numpy().any()


# 55 Memory is bounded on request


def test_055_chunks_change_memory_and_no_value() -> None:
    x, wide, narrow = drawn(8), drawn(8, 2000), drawn(2000, 200)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ll.tanh(x @ wide) @ narrow

    def peak(**options: Any) -> tuple[int, Any]:
        tracemalloc.start()
        found = tape.jacobian(y, x, **options)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used, found

    peak()  # what is made once, such as rules
    (whole, wanted), (bounded, found) = peak(), peak(parallel_iterations=4)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)
    row = 2000 * 8  # bytes of a gradient of the hidden values
    assert whole > 200 * row
    assert bounded < 20 * row

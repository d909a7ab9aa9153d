"""Constraints of variables, which optimisers apply after each update."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import limelight as ll


def at_most_one(value):
    return ll.clip(value, -1.0, 1.0)


def unit_columns(value):
    return value / ll.sqrt(ll.sum(value * value, axis=0, keepdims=True))


def _stepped(step, staged):
    (ll.function(step) if staged else step)()


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("optimizer", [ll.optim.SGD, ll.optim.Adam])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_a_dense_update_is_constrained(optimizer, dtype, staged):
    v = ll.Variable([0.9, -0.9, 0.0], dtype=dtype, constraint=at_most_one)
    free, descent = ll.Variable([0.9, -0.9, 0.0], dtype=dtype), optimizer(0.5)
    descent.build([v, free])
    g = ll.constant([-1.0, 1.0, 0.5], dtype=dtype)
    _stepped(lambda: descent.apply([g, g], [v, free]), staged)
    assert v.numpy().tolist() == np.clip(free.numpy(), -1, 1).tolist() != free.numpy().tolist()


@pytest.mark.parametrize("staged", [False, True])
def test_a_sparse_update_constrains_the_whole_value(staged):
    v, descent = ll.Variable(np.ones((3, 2)), constraint=unit_columns), ll.optim.SGD(0.5)

    def step():
        with ll.GradientTape() as tape:
            loss = ll.sum(ll.nn.embedding(v, ll.constant([1])))
        descent.apply(tape.gradient(loss, [v]), [v])

    _stepped(step, staged)
    expected = np.array([[1.0, 1.0], [0.5, 0.5], [1.0, 1.0]])
    np.testing.assert_allclose(v.numpy(), expected / np.linalg.norm(expected, axis=0))


def test_assignments_are_not_constrained():
    v = ll.Variable([0.0], constraint=at_most_one)
    assert v.assign([5.0]).tolist() == [5.0]


def test_a_trace_belongs_to_the_constraint_of_its_argument():
    descent = ll.optim.SGD(1.0)

    @ll.function
    def step(v):
        descent.apply([ll.constant([-5.0])], [v])

    variables = [ll.Variable([0.0], constraint=c) for c in (None, at_most_one, lambda value: value * 0.0, at_most_one)]
    for v in variables:
        step(v)
    assert [v.numpy().item() for v in variables] == [5.0, 1.0, 0.0, 1.0]
    assert step.trace_count == 3


def test_autograph_converts_a_constraint():
    def positive(value):
        if ll.any(value < 0.0):
            value = abs(value)
        return value

    v, descent = ll.Variable([1.0], constraint=positive), ll.optim.SGD(1.0)

    @ll.function(autograph=True)
    def step(g):
        descent.apply([g], [v])

    step(ll.constant([3.0]))
    assert v.numpy().tolist() == [2.0]


@pytest.mark.parametrize("constraint", [1.0, "clip", [at_most_one]])
def test_a_constraint_is_a_function(constraint):
    with pytest.raises(ll.errors.ArgumentError, match="a constraint is a function"):
        ll.Variable([0.0], constraint=constraint)


@pytest.mark.parametrize(
    ("constraint", "error"),
    [(ll.sum, ll.errors.ShapeError), (lambda value: value.astype(ll.float64), ll.errors.DTypeError)],
)
def test_a_constraint_keeps_shape_and_dtype(constraint, error):
    v = ll.Variable([1.0, 2.0], name="w", constraint=constraint)
    with pytest.raises(error, match="the constraint of variable 'w' must return"):
        ll.optim.SGD(1.0).apply([ll.constant([1.0, 1.0])], [v])


def test_copies_are_constrained_and_the_constraint_is_shown():
    v = ll.Variable([0.0], constraint=at_most_one)
    copies = [copy.copy(v), copy.deepcopy(v), pickle.loads(pickle.dumps(v))]
    assert [c.constraint for c in copies] == [at_most_one] * 3
    assert "constraint=at_most_one)" in repr(v)
    assert ll.Variable([0.0]).constraint is None
    assert "constraint" not in repr(ll.Variable([0.0]))

"""Sparse gradients change the rows that were looked up, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll

OPTIMISERS = {
    "SGD": lambda: ll.optim.SGD(0.1),
    "Momentum": lambda: ll.optim.Momentum(0.1, nesterov=True),
    "Adam": lambda: ll.optim.Adam(0.1),
    "AdamW": lambda: ll.optim.AdamW(0.1, weight_decay=0.3),
    "RMSProp": lambda: ll.optim.RMSProp(0.1),
    "Adagrad": lambda: ll.optim.Adagrad(0.1),
}
START = np.arange(12, dtype="float32").reshape(6, 2)


def gradient(table, indices, scale):
    with ll.GradientTape() as tape:
        rows = ll.nn.embedding(table, indices)
        loss = ll.sum(rows * rows * scale)
    return tape.gradient(loss, table)


def train(make, batches, staged=False, dense=False, dtype="float32"):
    table, optimiser = ll.Variable(START.astype(dtype)), make()

    def step(indices, scale):
        g = gradient(table, indices, scale)
        assert isinstance(g, ll.SparseGradient)
        optimiser.apply([g.dense() if dense else g], [table])

    run = ll.function(step) if staged else step
    for indices, scale in batches:
        run(ll.constant(indices), ll.constant(scale, dtype))
    return table, optimiser


ALL_ROWS = [([0, 1, 2, 3, 4, 5, 1], 0.3), ([5, 4, 3, -4, 1, 0, 0], 0.2), ([0, 1, 2, 3, 4, 5, 5], 0.1)]
SOME_ROWS = [([1, 4, 1], 0.3), ([1, -2, 0], 0.2), ([1, 4, 4], 0.1)]


@pytest.mark.parametrize("name", OPTIMISERS)
def test_where_every_row_is_looked_up_it_is_the_dense_update(name):
    sparse, _ = train(OPTIMISERS[name], ALL_ROWS)
    dense, _ = train(OPTIMISERS[name], ALL_ROWS, dense=True)
    assert np.allclose(sparse.numpy(), dense.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_other_rows_and_their_slots_stay_as_they_are(name):
    table, optimiser = train(OPTIMISERS[name], SOME_ROWS)
    alone = [2, 3, 5]
    assert np.array_equal(table.numpy()[alone], START[alone])
    assert not np.isclose(table.numpy()[[0, 1, 4]], START[[0, 1, 4]]).all(axis=1).any()
    for slot in optimiser.slots_of(table).values():
        assert not slot.numpy()[alone].any()
        assert slot.numpy()[[0, 1, 4]].all(axis=1).sum() >= 2


@pytest.mark.parametrize("name", OPTIMISERS)
def test_staged_it_is_the_same(name):
    eager, _ = train(OPTIMISERS[name], SOME_ROWS)
    staged, _ = train(OPTIMISERS[name], SOME_ROWS, staged=True)
    assert np.allclose(staged.numpy(), eager.numpy(), rtol=1e-6)


def test_short_floats_take_sparse_gradients():
    table, optimiser = train(OPTIMISERS["Adam"], SOME_ROWS, dtype="float16")
    wide, _ = train(OPTIMISERS["Adam"], SOME_ROWS)
    assert table.dtype == ll.float16
    assert {slot.dtype.name for slot in optimiser.slots_of(table).values()} == {"float32"}
    assert np.allclose(table.numpy(), wide.numpy(), rtol=2e-2)


def test_clipping_keeps_gradients_sparse_and_adds_repeated_rows_up_first():
    table = ll.Variable(START)
    g = gradient(table, ll.constant([1, 1, 2]), 1.0)
    whole = g.dense()
    for clip, limit in (
        (ll.optim.clip_by_value, 5.0),
        (ll.optim.clip_by_norm, 3.0),
        (ll.optim.clip_by_global_norm, 3.0),
    ):
        (clipped,), (wanted,) = clip([g], limit), clip([whole], limit)
        assert isinstance(clipped, ll.SparseGradient)
        assert np.allclose(clipped.dense().numpy(), wanted.numpy())


@settings(max_examples=30, deadline=None)
@given(
    shape=st.sampled_from([(4,), (5, 2), (3, 1, 2), (4, 0)]),
    look_ups=st.lists(st.lists(st.integers(-3, 2), max_size=5), min_size=1, max_size=3),
    name=st.sampled_from(["SGD", "Adagrad"]),
)
def test_where_rows_without_a_gradient_would_not_move_anyway_sparse_is_dense(shape, look_ups, name):
    start = np.random.default_rng(1).normal(size=shape)
    results = []
    for dense in (False, True):
        table, optimiser = ll.Variable(start), OPTIMISERS[name]()
        for indices in look_ups:
            g = gradient(table, ll.constant(np.array(indices, "int32")), 0.5)
            optimiser.apply([g.dense() if dense else g], [table])
        results.append(table.numpy())
    assert np.allclose(*results, atol=1e-12)

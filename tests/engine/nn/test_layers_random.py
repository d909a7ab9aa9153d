"""Random stacks of layers: eager = staged = staged for other sizes, in values, gradients and moving averages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll

# Each takes (batch, time, features) and returns the same form.
POOL = {
    "Dense": lambda n: ll.nn.Dense(n, activation=ll.tanh),
    "Conv": lambda n: ll.nn.Conv(n, (3,), stride=2),
    "ConvTranspose": lambda n: ll.nn.ConvTranspose(n + 1, (2,), padding="valid"),
    "MaxPool": lambda n: ll.nn.MaxPool((2,), stride=1, padding="same"),
    "AvgPool": lambda n: ll.nn.AvgPool((2,), padding="same"),
    "BatchNorm": lambda n: ll.nn.BatchNorm(),
    "LayerNorm": lambda n: ll.nn.LayerNorm(),
    "GroupNorm": lambda n: ll.nn.GroupNorm(1),
    "LSTM": lambda n: ll.nn.LSTM(n, return_sequences=True),
    "GRU": lambda n: ll.nn.GRU(n, return_sequences=True, unroll=False),
    "attention": lambda n: ll.nn.MultiHeadAttention(2, depth=n),
    "sigmoid": lambda n: ll.sigmoid,
}
layers = st.tuples(st.sampled_from(sorted(POOL)), st.integers(1, 4))


def run(model, x):
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = model(x, training=True)
        loss = ll.sum(y * y * y)
    return [y, *tape.gradient(loss, [x, *model.trainable_variables], unconnected_gradients="zero")]


def averages(model):
    return [v.numpy() for v in model.variables if not v.trainable]


@pytest.mark.usefixtures("retraces_are_meant")
@settings(max_examples=25, deadline=None)
@given(
    stack=st.lists(layers, min_size=1, max_size=4),
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(2, 3)),
    any_length=st.booleans(),
    seed=st.integers(0, 100),
)
def test_random_stacks(stack, sizes, any_length, seed):
    ll.random.seed(seed)
    model = ll.nn.Sequential(*[POOL[name](units) for name, units in stack])
    x = ll.random.normal(sizes, dtype="float64")
    model(x)
    start = [v.numpy() for v in model.variables]
    staged = ll.function(lambda x: run(model, x))
    spec = ll.TensorSpec((None, None if any_length else sizes[1], sizes[2]), "float64")
    for_any = ll.function(lambda x: run(model, x), input_signature=[spec])
    found = []
    for way in (lambda x: run(model, x), staged, for_any):
        for v, value in zip(model.variables, start, strict=True):
            v.assign(value)
        found.append([*(t.numpy() for t in way(x)), *averages(model)])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert a.shape == b.shape
            assert np.allclose(a, b, rtol=1e-3, atol=1e-4 * (1 + np.abs(a).max(initial=0)))

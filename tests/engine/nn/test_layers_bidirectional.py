"""Recurrent layers in both directions; and the simple recurrent network."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError

KINDS = [ll.nn.LSTM, ll.nn.GRU, ll.nn.RNN]


@pytest.fixture
def x():
    return ll.constant(np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("staged", [False, True])
def test_each_time_has_what_both_directions_know(kind, x, staged):
    layer = ll.nn.Bidirectional(kind(4, return_sequences=True))
    layer.build((None, None, 3))
    y = (ll.function(layer) if staged else layer)(x).numpy()
    there, back = layer.forward(x).numpy(), layer.backward(x[:, ::-1]).numpy()[:, ::-1]
    np.testing.assert_allclose(y, np.concatenate([there, back], axis=-1), rtol=1e-6)
    assert not np.array_equal(layer.forward.cell.kernel.numpy(), layer.backward.cell.kernel.numpy())
    assert len(layer.trainable_variables) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_outputs_and_states(kind, x):
    layer = ll.nn.Bidirectional(kind(4, return_state=True), kind(2, return_state=True))
    y, (first, second) = layer(x)
    assert y.shape == (2, 6)
    state = first[0] if kind is ll.nn.LSTM else first
    np.testing.assert_array_equal(y.numpy()[:, :4], state.numpy())
    again, _ = layer(x, (first, second))
    assert not np.allclose(again.numpy(), y.numpy())


def test_a_simple_network_is_its_formula_in_numpy(x):
    layer = ll.nn.RNN(4, return_sequences=True)
    y = layer(x).numpy()
    kernel, recurrent, bias = (getattr(layer.cell, name).numpy() for name in ("kernel", "recurrent", "bias"))
    h = np.zeros((2, 4), "float32")
    for t in range(5):
        h = np.tanh(x.numpy()[:, t] @ kernel + h @ recurrent + bias)
        np.testing.assert_allclose(y[:, t], h, rtol=1e-5, atol=1e-6)


def test_what_is_no_pair_of_recurrent_layers_is_refused(x):
    with pytest.raises(ArgumentError, match="must be an LSTM, a GRU or an RNN, got Dense"):
        ll.nn.Bidirectional(ll.nn.Dense(3))
    with pytest.raises(ArgumentError, match="equal return_sequences"):
        ll.nn.Bidirectional(ll.nn.GRU(3), ll.nn.GRU(3, return_sequences=True))
    used = ll.nn.GRU(3)
    used(x)
    with pytest.raises(ArgumentError, match=r"write Bidirectional\(forward, backward\)"):
        ll.nn.Bidirectional(used)
    with pytest.raises(ArgumentError, match="the state must be a pair"):
        ll.nn.Bidirectional(ll.nn.GRU(3))(x, ll.zeros((2, 3)))

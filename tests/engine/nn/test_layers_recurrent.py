"""LSTM and GRU over sequences, against the steps of their cells; unrolled and in loops."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll

KINDS = [ll.nn.LSTM, ll.nn.GRU]
X = np.random.default_rng(0).normal(size=(3, 6, 5)).astype("float32")


def outputs_of_steps(cell, x):
    state, outputs = None, []
    for t in range(x.shape[1]):
        state = cell(x[:, t], state)
        outputs.append(state[0] if isinstance(state, tuple) else state)
    return ll.stack(outputs, axis=1), state


def leaves(tree):
    return [np.asarray(x) for x in ll.nest.leaves_of(tree)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unroll", [None, False])
def test_a_layer_is_the_steps_of_its_cell(kind, unroll):
    layer = kind(4, return_sequences=True, return_state=True, unroll=unroll)
    given = layer(ll.constant(X))
    expected = outputs_of_steps(layer.cell, ll.constant(X))
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(leaves(given), leaves(expected), strict=True))
    layer.return_sequences = layer.return_state = False
    assert np.allclose(layer(ll.constant(X)).numpy(), leaves(expected)[0][:, -1], atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_in_two_parts_hands_its_state_on(kind):
    layer = kind(4, return_sequences=True, return_state=True)
    whole, last = layer(ll.constant(X))
    first, state = layer(ll.constant(X[:, :2]))
    second, end = layer(ll.constant(X[:, 2:]), state)
    assert np.allclose(np.concatenate([first.numpy(), second.numpy()], axis=1), whole.numpy(), atol=1e-6)
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(leaves(end), leaves(last), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_one_graph_for_all_lengths_with_gradients(kind):
    layer = kind(4, return_sequences=True)

    def loss_and_gradients(x):
        with ll.GradientTape() as tape:
            tape.watch(x)
            loss = ll.sum(layer(x) ** 2)
        return loss, tape.gradient(loss, [x, *layer.trainable_variables])

    staged = ll.function(loss_and_gradients, input_signature=[ll.TensorSpec((None, None, 5))])
    for x in (X, X[:, :2], X[:1, :1], X[:, :0]):
        given, expected = leaves(staged(ll.constant(x))), leaves(loss_and_gradients(ll.constant(x)))
        # Where there is no step, an unrolled layer never reads its weights, and they are not connected.
        known = [(a, b) for a, b in zip(given, expected, strict=True) if b.dtype != object]
        assert len(known) == (len(given) if x.shape[1] else 1)
        assert all(np.allclose(a, b, atol=1e-5) for a, b in known)
    assert len(staged.trace_cache) == 1
    operations = [node.op.name for node in staged.trace_cache[0].graph.nodes]
    assert sum("scan" in name for name in operations) == 2


def test_unrolled_steps_are_in_the_graph_and_loops_are_small():
    unrolled, loop = ll.nn.GRU(4), ll.nn.GRU(4, unroll=False)
    sizes = []
    for layer in (unrolled, loop):
        for steps in (3, 30):
            staged = ll.function(layer)
            staged(ll.ones((2, steps, 5)))
            sizes.append(len(staged.trace_cache[0].graph.nodes))
    short, long, short_loop, long_loop = sizes
    assert long > 5 * short
    assert long_loop == short_loop < long


def test_the_forget_gate_begins_open_and_each_gate_orthogonal():
    cell = ll.nn.LSTMCell(3)
    cell(ll.ones((1, 2)))
    assert cell.bias.numpy().tolist() == [0.0] * 3 + [1.0] * 3 + [0.0] * 6
    for gate in np.split(cell.recurrent.numpy(), 4, axis=1):
        assert np.allclose(gate.T @ gate, np.eye(3), atol=1e-5)


def test_other_dtypes_come_in_and_the_layers_comes_out():
    layer = ll.nn.LSTM(4, unroll=False)
    assert layer(ll.constant(X.astype("float64"))).dtype == ll.float32
    assert layer(ll.constant(X).astype("float16")).dtype == ll.float32
    assert ll.nn.GRU(4, dtype="float64")(ll.constant(X)).dtype == ll.float64
    assert layer(ll.constant(X), (ll.ones((3, 4), dtype="float64"),) * 2).dtype == ll.float32
    assert ll.nn.GRUCell(4)(ll.constant(X[0]), ll.ones((6, 4), dtype="float64")).dtype == ll.float32
    with pytest.raises(ll.errors.DTypeError, match=r"LSTM\(4, unroll=False\) needs floating operands, got int32"):
        layer(ll.ones((3, 6, 5), dtype="int32"))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ll.nn.LSTM(4)(ll.ones((3, 5))), r"LSTM\(4\) needs an input of shape \(batch, time, features\), got"),
        (lambda: ll.nn.GRUCell(4)(ll.ones(5)), r"needs an input of shape \(batch, features\), got f32\[5\]"),
        (lambda: ll.nn.LSTMCell(4)(ll.ones((2, 5)), ll.ones((2, 4))), r"LSTMCell\(4\): the state must be a pair"),
        (lambda: ll.nn.GRU(4)(ll.ones((2, 6, 5)), ll.ones((2, 3))), r"a state must have shape \(batch, 4\), got"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(call, said):
    with pytest.raises(ll.errors.LimelightError, match=said):
        call()


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def test_an_lstm_is_its_formula_in_numpy():
    layer = ll.nn.LSTM(4, return_state=True, dtype="float64")
    _, given = layer(ll.constant(X))
    kernel, recurrent, bias = (v.numpy() for v in layer.variables)
    h = c = np.zeros((3, 4))
    for t in range(X.shape[1]):
        enters, stays, candidate, leaves = np.split(X[:, t] @ kernel + h @ recurrent + bias, 4, axis=1)
        c = sigmoid(stays) * c + sigmoid(enters) * np.tanh(candidate)
        h = sigmoid(leaves) * np.tanh(c)
    assert all(np.allclose(a.numpy(), b) for a, b in zip(given, (h, c), strict=True))


def test_a_gru_is_its_formula_in_numpy():
    layer = ll.nn.GRU(4, dtype="float64", bias_initializer="ones")
    given = layer(ll.constant(X))
    kernel, recurrent, bias = (np.split(v.numpy(), 3, axis=-1) for v in layer.variables)
    h = np.zeros((3, 4))
    for t in range(X.shape[1]):
        reset, update = (sigmoid(X[:, t] @ kernel[i] + h @ recurrent[i] + bias[i]) for i in (0, 1))
        candidate = np.tanh(X[:, t] @ kernel[2] + (reset * h) @ recurrent[2] + bias[2])
        h = update * h + (1 - update) * candidate
    assert np.allclose(given.numpy(), h)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_of_one_known_step_keeps_its_sizes(kind):
    layer = kind(4, return_sequences=True, unroll=False)
    staged = ll.function(layer)
    assert np.allclose(staged(ll.ones((2, 1, 3))).numpy(), layer(ll.ones((2, 1, 3))).numpy())
    assert staged.trace_cache[0].graph.outputs[0].spec.shape == (2, 1, 4)

"""Weights of Keras and of PyTorch's recurrent layers: their names, layouts and gates; results are computed by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import CheckpointError

Array = np.ndarray[Any, Any]


def values(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def lstm(x: Array, kernel: Array, recurrent: Array, bias: Array) -> Array:
    """The last output; gates in the order input, forget, candidate, output."""
    h = c = np.zeros((x.shape[0], recurrent.shape[0]))
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ kernel + h @ recurrent + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return h


def gru_of_keras(x: Array, kernel: Array, recurrent: Array, bias: Array) -> Array:
    """The last output; gates in the order update, reset, candidate; the reset gate applies before the product."""
    h = np.zeros((x.shape[0], recurrent.shape[0]))
    (uz, ur, uh), (bz, br, bh) = np.split(recurrent, 3, axis=1), np.split(bias, 3)
    for t in range(x.shape[1]):
        xz, xr, xh = np.split(x[:, t] @ kernel, 3, axis=1)
        z, r = sigmoid(xz + h @ uz + bz), sigmoid(xr + h @ ur + br)
        h = z * h + (1 - z) * np.tanh(xh + (r * h) @ uh + bh)
    return h


@pytest.mark.parametrize("built", [False, True])
def test_a_network_of_keras(built: bool) -> None:
    weights = {
        "net/conv2d/kernel": values(2, 2, 3, 4), "net/conv2d/bias": values(4),
        "net/bn/gamma": values(4), "net/bn/beta": values(4),
        "net/bn/moving_mean": values(4), "net/bn/moving_variance": np.abs(values(4)),
        "net/dropout/seed_generator/seed_generator_state": np.array([0, 7], np.uint32),
        "net/dense/kernel": values(4, 5), "net/dense/bias": values(5),
    }  # fmt: skip
    net = ll.nn.Sequential(
        ll.nn.Conv(4, 2, padding="valid"), ll.nn.BatchNorm(epsilon=1e-3), ll.nn.Flatten(), ll.nn.Dense(5)
    )
    x = values(1, 2, 2, 3)
    if built:
        net(ll.constant(x))
    places = {"net/conv2d": "layers.0", "net/bn": "layers.1", "net/dense": "layers.3"}
    status = ll.nn.load_weights(net, weights, rename=places, layout="keras")
    y = net(ll.constant(x)).numpy()
    status.assert_consumed()
    conv = np.einsum("nhwc,hwco->no", x, weights["net/conv2d/kernel"]) + weights["net/conv2d/bias"]
    scaled = (conv - weights["net/bn/moving_mean"]) / np.sqrt(weights["net/bn/moving_variance"] + 1e-3)
    normal = scaled * weights["net/bn/gamma"] + weights["net/bn/beta"]
    np.testing.assert_allclose(y, normal @ weights["net/dense/kernel"] + weights["net/dense/bias"], rtol=1e-4)


RECURRENT = {"kernel": values(3, 8), "recurrent_kernel": values(2, 8), "bias": values(8)}


@pytest.mark.parametrize("way", ["lstm_cell/", "lstm_cell_3/", ""])
def test_an_lstm_of_keras(way: str) -> None:
    layer, x = ll.nn.LSTM(2), values(2, 5, 3)
    ll.nn.load_weights(layer, {way + name: w for name, w in RECURRENT.items()}, layout="keras").expect_partial()
    np.testing.assert_allclose(layer(ll.constant(x)).numpy(), lstm(x, *RECURRENT.values()), rtol=1e-4, atol=1e-5)


def test_a_bidirectional_lstm_and_an_embedding_of_keras() -> None:
    weights = {
        f"bidirectional/{side}_lstm/lstm_cell/{name}": w * scale
        for side, scale in (("forward", 1.0), ("backward", 0.5)) for name, w in RECURRENT.items()
    }  # fmt: skip
    net = ll.nn.Sequential(ll.nn.Embedding(4, 3), ll.nn.Bidirectional(ll.nn.LSTM(2)))
    weights["embedding/embeddings"] = values(4, 3)
    places = {"embedding": "layers.0", "bidirectional": "layers.1"}
    ll.nn.load_weights(net, weights, rename=places, layout="keras").expect_partial()
    x = weights["embedding/embeddings"][[[0, 2, 1, 3]]]
    back = lstm(x[:, ::-1], *[0.5 * w for w in RECURRENT.values()])
    wanted = np.concatenate([lstm(x, *RECURRENT.values()), back], axis=1)
    np.testing.assert_allclose(net(ll.constant([[0, 2, 1, 3]])).numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_a_gru_of_keras_whose_reset_gate_comes_first() -> None:
    weights = {"kernel": values(3, 6), "recurrent_kernel": values(2, 6), "bias": values(6)}
    layer, x = ll.nn.GRU(2), values(2, 5, 3)
    ll.nn.load_weights(layer, {f"gru_cell/{k}": w for k, w in weights.items()}, layout="keras").expect_partial()
    np.testing.assert_allclose(layer(ll.constant(x)).numpy(), gru_of_keras(x, *weights.values()), rtol=1e-4, atol=1e-5)
    with pytest.raises(CheckpointError, match="reset_after=True"):
        ll.nn.load_weights(ll.nn.GRU(2), {**weights, "bias": values(2, 6)}, layout="keras")


def test_attention_of_keras_whose_kernels_have_an_axis_of_heads() -> None:
    heads, depth, features = 2, 3, 4
    weights = {f"{part}/kernel": values(features, heads, depth) * (i + 1) for i, part in enumerate(("query", "key"))}
    weights |= {f"{part}/bias": values(heads, depth) for part in ("query", "key", "value")}
    weights |= {"value/kernel": values(features, heads, depth), "attention_output/kernel": values(heads, depth, 4)}
    weights |= {"attention_output/bias": values(4)}
    layer, x = ll.nn.MultiHeadAttention(heads, depth=depth), values(1, 5, features)
    layer(ll.constant(x))
    ll.nn.load_weights(layer, weights, layout="keras").assert_consumed()
    q, k, v = (
        np.einsum("btf,fhd->bhtd", x, weights[f"{part}/kernel"]) + weights[f"{part}/bias"][:, None]
        for part in ("query", "key", "value")
    )
    scores = np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(depth))
    seen = scores / scores.sum(-1, keepdims=True) @ v
    wanted = np.einsum("bhtd,hdf->btf", seen, weights["attention_output/kernel"]) + weights["attention_output/bias"]
    np.testing.assert_allclose(layer(ll.constant(x)).numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_an_lstm_of_pytorch_has_two_biases_that_are_added() -> None:
    weights = {"weight_ih_l0": values(8, 3), "weight_hh_l0": values(8, 2), "bias_ih_l0": values(8)}
    weights["bias_hh_l0"] = 2 * values(8)
    wanted = [weights["weight_ih_l0"].T, weights["weight_hh_l0"].T, weights["bias_ih_l0"] + weights["bias_hh_l0"]]
    layer, x = ll.nn.LSTM(2), values(2, 5, 3)
    ll.nn.load_weights(layer, weights, layout="torch").expect_partial()
    np.testing.assert_allclose(layer(ll.constant(x)).numpy(), lstm(x, *wanted), rtol=1e-4, atol=1e-5)
    both = ll.nn.Bidirectional(ll.nn.LSTM(2))
    weights |= {f"{name}_reverse": 0.5 * w for name, w in weights.items()}
    ll.nn.load_weights(both, weights, layout="torch").expect_partial()
    back = lstm(x[:, ::-1], *[0.5 * w for w in wanted])
    expected = np.concatenate([lstm(x, *wanted), back], axis=1)
    np.testing.assert_allclose(both(ll.constant(x)).numpy(), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(CheckpointError, match="second bias within a product"):
        ll.nn.load_weights(ll.nn.GRU(2), {"weight_ih_l0": values(6, 3)}, layout="torch")


def test_keras_reads_no_such_files() -> None:
    layer = ll.nn.Dense(2)
    layer(ll.ones((1, 3)))
    with pytest.raises(ll.errors.ArgumentError, match="Keras reads no such files"):
        ll.nn.save_weights(layer, "x", layout="keras")

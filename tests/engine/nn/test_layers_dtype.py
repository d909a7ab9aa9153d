"""Layers compute in their own dtype, whatever floating dtype comes in."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll

RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(2, 6, 6, 4))
LAYERS = {
    "Dense": (lambda **k: ll.nn.Dense(3, "tanh", **k), WIDE[0]),
    "Conv": (lambda **k: ll.nn.Conv(3, 2, **k), WIDE),
    "ConvTranspose": (lambda **k: ll.nn.ConvTranspose(3, 2, **k), WIDE),
    "MultiHeadAttention": (lambda **k: ll.nn.MultiHeadAttention(2, **k), WIDE[0]),
    "LSTM": (lambda **k: ll.nn.LSTM(3, **k), WIDE[0]),
    "GRU": (lambda **k: ll.nn.GRU(3, **k), WIDE[0]),
    "LSTMCell": (lambda **k: ll.nn.LSTMCell(3, **k), WIDE[0, 0]),
    "GRUCell": (lambda **k: ll.nn.GRUCell(3, **k), WIDE[0, 0]),
    "BatchNorm": (ll.nn.BatchNorm, WIDE),
    "LayerNorm": (ll.nn.LayerNorm, WIDE),
    "RMSNorm": (ll.nn.RMSNorm, WIDE),
    "GroupNorm": (lambda **k: ll.nn.GroupNorm(2, **k), WIDE),
    "Sequential": (lambda **k: ll.nn.Sequential(ll.nn.Flatten(), ll.nn.Dense(3, **k), ll.nn.relu), WIDE),
}
NORMALISATIONS = ("BatchNorm", "LayerNorm", "RMSNorm", "GroupNorm")


def result(y):
    return y[0] if isinstance(y, tuple) else y


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_a_batch_of_numpys_is_computed_in_the_dtype_of_the_layer(name, staged):
    make, x = LAYERS[name]
    layer = make()
    call = ll.function(layer) if staged else layer
    expected = result(layer(x.astype("float32")))
    for given in (x, ll.constant(x, dtype="float64"), x.tolist()):
        y = result(call(given))
        assert y.dtype == ll.float32
        np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_a_wide_layer_computes_narrow_inputs_in_its_own(name):
    make, x = LAYERS[name]
    y = result(make(dtype="float64")(x.astype("float32")))
    assert y.dtype == (ll.float32 if name in NORMALISATIONS else ll.float64)


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_normalisations_keep_short_floats(name):
    make, x = LAYERS[name]
    assert make()(x.astype("float16")).dtype == ll.float16


def test_nothing_is_computed_in_another_dtype_on_the_way():
    layer = ll.nn.MultiHeadAttention(2)
    staged = ll.function(lambda x, bias: layer(x, bias=bias))
    assert staged(WIDE[0], np.zeros((6, 6))).dtype == ll.float32
    wide = [n.op.name for n in staged.trace_cache[0].graph.nodes if n.outputs[0].spec.dtype == ll.float64]
    assert wide == []


def test_gradients_come_back_in_the_dtype_of_the_input():
    layer, x = ll.nn.Dense(2), ll.constant(WIDE[0, 0], dtype="float64")
    with ll.GradientTape() as tape:
        tape.watch(x)
        loss = ll.sum(layer(x) ** 2)
    gradients = tape.gradient(loss, [x, layer.kernel])
    assert [g.dtype.name for g in gradients] == ["float64", "float32"]


def test_whole_numbers_are_refused_and_complex_ones_stay():
    layer = ll.nn.Dense(2)
    assert layer(ll.ones((1, 4), dtype="complex64")).dtype == ll.complex64
    with pytest.raises(ll.errors.DTypeError):
        layer(np.ones((1, 4), "int32"))


MADE = {
    "Dense": lambda d: ll.nn.Dense(2, dtype=d),
    "Embedding": lambda d: ll.nn.Embedding(2, 3, dtype=d),
    "Conv": lambda d: ll.nn.Conv(2, 3, dtype=d),
    "ConvTranspose": lambda d: ll.nn.ConvTranspose(2, 3, dtype=d),
    "MultiHeadAttention": lambda d: ll.nn.MultiHeadAttention(2, dtype=d),
    "LSTM": lambda d: ll.nn.LSTM(2, dtype=d),
    "GRU": lambda d: ll.nn.GRU(2, dtype=d),
    "LSTMCell": lambda d: ll.nn.LSTMCell(2, dtype=d),
    "GRUCell": lambda d: ll.nn.GRUCell(2, dtype=d),
    "BatchNorm": lambda d: ll.nn.BatchNorm(dtype=d),
    "LayerNorm": lambda d: ll.nn.LayerNorm(dtype=d),
    "RMSNorm": lambda d: ll.nn.RMSNorm(dtype=d),
    "GroupNorm": lambda d: ll.nn.GroupNorm(2, dtype=d),
}


@pytest.mark.parametrize("dtype", ["foo", "int32", ll.complex64, 7])
@pytest.mark.parametrize("name", MADE)
def test_a_dtype_that_weights_cannot_have_is_refused_when_the_layer_is_made(name, dtype):
    with pytest.raises(ll.errors.ArgumentError, match=f"^{name}: dtype must be a floating one.*got "):
        MADE[name](dtype)


@pytest.mark.parametrize("name", MADE)
def test_a_layer_shows_its_dtype_as_it_is_written(name):
    assert "dtype" not in repr(MADE[name](ll.float32))
    assert "dtype='float64'" in repr(MADE[name]("f64"))


def test_initializers_are_looked_up_when_the_layer_is_made():
    with pytest.raises(ll.errors.ArgumentError, match="there is no initializer 'glorot'"):
        ll.nn.MultiHeadAttention(2, kernel_initializer="glorot")

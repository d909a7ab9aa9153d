"""What every layer does: one table of layers, each eager and staged, with known and unknown batch size."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll


class Twice(ll.Module):
    """Two steps of a cell: in the first, from a state of zeros, the recurrent weights play no part."""

    def __init__(self, cell):
        self.cell = cell

    def call(self, x):
        state = self.cell(x, self.cell(x))
        return ll.concat(state, axis=1) if isinstance(state, tuple) else state


class Training(ll.Module):
    """A layer as it is while it is trained."""

    def __init__(self, layer):
        self.layer = layer

    def call(self, x):
        return self.layer(x, training=True)


LAYERS = {
    "Dense": (lambda: ll.nn.Dense(4, activation=ll.tanh), (3, 5)),
    "Dense of higher rank": (lambda: ll.nn.Dense(4, use_bias=False), (3, 2, 5)),
    "Embedding": (lambda: ll.nn.Embedding(7, 4), "integers"),
    "Conv": (lambda: ll.nn.Conv(4, 3, activation=ll.tanh), (3, 6, 6, 5)),
    "Conv in one dimension": (lambda: ll.nn.Conv(4, (3,), stride=2, padding="valid", use_bias=False), (3, 8, 5)),
    "Conv in three": (lambda: ll.nn.Conv(2, (1, 2, 2), dilation=2), (2, 2, 4, 3, 5)),
    "Conv in groups": (lambda: ll.nn.Conv(10, 3, groups=5), (2, 5, 4, 5)),
    "ConvTranspose": (lambda: ll.nn.ConvTranspose(4, 3, stride=2), (3, 4, 3, 5)),
    "MaxPool and AvgPool": (
        lambda: ll.nn.Sequential(ll.nn.Dense(2), ll.nn.MaxPool(2), ll.nn.AvgPool(2, stride=1, padding="same")),
        (2, 4, 4, 5),
    ),
    "Flatten": (lambda: ll.nn.Sequential(ll.nn.Dense(2), ll.nn.Flatten(), ll.nn.Dense(3)), (2, 4, 3, 5)),
    "BatchNorm": (ll.nn.BatchNorm, (3, 4, 4, 5)),
    "BatchNorm in training": (lambda: Training(ll.nn.BatchNorm()), (3, 4, 4, 5)),
    "LayerNorm": (ll.nn.LayerNorm, (3, 5)),
    "RMSNorm": (ll.nn.RMSNorm, (3, 5)),
    "GroupNorm": (lambda: ll.nn.GroupNorm(5), (3, 4, 5)),
    "MultiHeadAttention": (lambda: ll.nn.MultiHeadAttention(5, depth=2, use_bias=False), (2, 3, 5)),
    "LSTM": (lambda: ll.nn.LSTM(4), (3, 6, 5)),
    "LSTM in a loop": (lambda: ll.nn.LSTM(4, return_sequences=True, unroll=False), (3, 6, 5)),
    "GRU": (lambda: ll.nn.GRU(4, return_sequences=True), (3, 6, 5)),
    "LSTMCell": (lambda: Twice(ll.nn.LSTMCell(4)), (3, 5)),
    "GRUCell": (lambda: Twice(ll.nn.GRUCell(4)), (3, 5)),
    "Sequential": (lambda: ll.nn.Sequential(ll.nn.Dense(4), ll.tanh, ll.nn.Dropout(0.5), ll.nn.Dense(2)), (3, 5)),
}


def given(shape):
    rng = np.random.default_rng(0)
    if shape == "integers":
        return ll.constant(rng.integers(0, 7, (3, 5)))
    return ll.constant(rng.normal(size=shape).astype("float32"))


def value_and_gradients(layer, x):
    with ll.GradientTape() as tape:
        y = layer(x)
        loss = ll.sum(y * y * y + y)
    gradients = tape.gradient(loss, layer.trainable_variables)
    return y, [g.dense() if isinstance(g, ll.SparseGradient) else g for g in gradients]


def same(a, b):
    return np.allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_staged_is_eager_and_gradients_flow(name):
    make, shape = LAYERS[name]
    layer, x = make(), given(shape)
    y, gradients = value_and_gradients(layer, x)
    assert gradients
    assert all(np.isfinite(g.numpy()).all() and g.numpy().any() for g in gradients)
    y2, gradients2 = ll.function(lambda x: value_and_gradients(layer, x))(x)
    assert same(y, y2)
    assert all(map(same, gradients, gradients2))


@pytest.mark.parametrize("name", LAYERS)
def test_the_first_call_may_be_staged(name):
    make, shape = LAYERS[name]
    ll.random.seed(3)
    layer, x = make(), given(shape)
    staged = ll.function(layer)
    y = staged(x)
    traces = staged.trace_count
    assert same(staged(x), y)
    assert staged.trace_count == traces
    assert same(layer(x), y)


@pytest.mark.parametrize("name", LAYERS)
def test_the_batch_size_may_be_unknown(name):
    make, shape = LAYERS[name]
    layer, x = make(), given(shape)
    spec = ll.TensorSpec((None, *x.shape[1:]), x.dtype)
    staged = ll.function(lambda x: value_and_gradients(layer, x), input_signature=[spec])
    for batch in (x, ll.concat([x, x])):
        y, gradients = staged(batch)
        y2, gradients2 = value_and_gradients(layer, batch)
        assert same(y, y2)
        assert all(map(same, gradients, gradients2))
    assert len(staged.trace_cache) == 1


@pytest.mark.parametrize("name", [name for name in LAYERS if "training" not in name])
def test_an_empty_batch_passes(name):
    make, shape = LAYERS[name]
    layer, x = make(), given(shape)
    assert layer(x[:0]).shape == (0, *layer(x).shape[1:])


@pytest.mark.parametrize("name", [name for name, (_, shape) in LAYERS.items() if shape != "integers"])
def test_an_input_with_other_features_is_refused_by_the_layer_named(name, retraces_are_meant):
    make, shape = LAYERS[name]
    layer = make()
    layer(given(shape))
    wrong = given((*shape[:-1], 4))
    said = r"\(.*\) was built for inputs with 5 features, got 4: f32\[.*4\]"
    for call in (layer, ll.function(layer)):
        with pytest.raises(ll.errors.ShapeError, match=said):
            call(wrong)


def test_weights_need_a_known_size_and_some_axis():
    dense = ll.nn.Dense(2)
    staged = ll.function(dense, input_signature=[ll.TensorSpec((3, None))])
    with pytest.raises(
        ll.errors.ShapeError, match=r"Dense\(2\) makes its weights on the first call .* got f32\[3,\?\]"
    ):
        staged(ll.ones((3, 4)))
    with pytest.raises(ll.errors.ShapeError, match=r"Dense\(2\) needs an input of shape \(\.\.\., features\), got f32"):
        dense(1.0)
    assert dense(ll.ones((3, 4))).shape == (3, 2)


def test_training_is_an_argument_and_so_part_of_the_key():
    model = ll.nn.Sequential(ll.nn.Dropout(0.5), lambda x: x + 1.0)
    staged = ll.function(lambda x, training: model(x, training=training))
    x = ll.ones((4, 50))
    assert (staged(x, False).numpy() == 2.0).all()
    dropped = staged(x, True).numpy()
    assert set(np.unique(dropped)) == {1.0, 3.0}
    assert not np.array_equal(staged(x, True).numpy(), dropped)
    assert len(staged.trace_cache) == 2
    assert "training" in staged.trace_cache[1].reason


def test_nested_models_hand_training_on():
    class Block(ll.Module):
        def __init__(self):
            self.inner = ll.nn.Sequential(ll.nn.Sequential(ll.nn.Dropout(0.9)))

        def call(self, x, **options):
            return self.inner(x, **options)

    model = ll.nn.Sequential(Block(), ll.abs)
    assert (model(ll.ones(100)).numpy() == 1.0).all()
    assert (model(ll.ones(100), training=True).numpy() == 0.0).any()


def test_reprs_read_like_the_calls_that_make_them():
    model = ll.nn.Sequential(ll.nn.Dense(8, ll.nn.relu), ll.nn.Sequential(ll.tanh, ll.nn.Dropout(0.5)))
    assert repr(model) == (
        "Sequential(\n    Dense(8, activation=relu),\n    Sequential(\n        tanh,\n        Dropout(0.5),\n    ),\n)"
    )
    assert repr(ll.nn.Dense(3, use_bias=False, kernel_initializer="he_normal")) == (
        "Dense(3, use_bias=False, kernel_initializer=he_normal)"
    )
    assert repr(ll.nn.Embedding(10, 4)) == "Embedding(10, 4)"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ll.nn.Dense(0), "Dense: units must be a positive int, got 0"),
        (lambda: ll.nn.Dense(2.5), "Dense: units must be a positive int, got 2.5"),
        (
            lambda: ll.nn.Dense(2, activation="rely"),
            "a function such as ll.nn.relu, .*'tanh'; got 'rely'; did you mean 'relu'",
        ),
        (lambda: ll.nn.Dense(2, kernel_initializer="glorot"), "no initializer 'glorot'; did you mean 'glorot"),
        (lambda: ll.nn.Dropout(1.0), "Dropout: rate must be at least 0 and below 1, got 1.0"),
        (lambda: ll.nn.Sequential(ll.tanh, [ll.tanh]), r"got list; write Sequential\(\*layers\)"),
        (lambda: ll.nn.Embedding(0, 2), "Embedding: count must be a positive int"),
    ],
)
def test_settings_that_mean_nothing_are_refused(make, said):
    with pytest.raises(ll.errors.ArgumentError, match=said):
        make()


def test_embedding_gradients_stay_sparse():
    layer = ll.nn.Embedding(5, 2)
    with ll.GradientTape() as tape:
        y = ll.sum(layer(ll.constant([1, 1, 3])))
    g = tape.gradient(y, layer.table)
    assert isinstance(g, ll.SparseGradient)
    assert g.dense().numpy()[:, 0].tolist() == [0.0, 2.0, 0.0, 1.0, 0.0]
    with pytest.raises(ll.errors.DTypeError):
        layer(ll.constant([0.5]))


def test_weights_have_the_dtype_asked_for():
    dense = ll.nn.Dense(2, dtype="float64")
    assert dense(ll.ones((1, 3), dtype="float64")).dtype == ll.float64
    assert {v.dtype.name for v in dense.variables} == {"float64"}

"""Small models learn something real: handwritten digits, as images and as sequences of rows, in staged steps."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits  # takes long to import

    data = load_digits()
    images, labels = (data.images / 16.0).astype("float32"), data.target.astype("int32")
    order = np.random.default_rng(0).permutation(len(labels))
    return images[order], labels[order]


def trained(model, optimiser, images, labels, epochs, batch=50):
    """Trains in one staged step, whose first call makes weights and slots; returns it."""

    @ll.function
    def step(x, y):
        with ll.GradientTape() as tape:
            loss = ll.mean(ll.nn.softmax_cross_entropy(model(x, training=True), y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimiser.apply(ll.optim.clip_by_global_norm(gradients, 5.0), model.trainable_variables)
        return loss

    for _ in range(epochs):
        for start in range(0, 1500, batch):
            chosen = slice(start, start + batch)
            step(ll.constant(images[chosen]), ll.constant(labels[chosen]))
    assert len(step.trace_cache) == 1
    return step


def accuracy(model, images, labels):
    predict = ll.function(lambda x: ll.argmax(model(x), axis=-1))
    return float((predict(ll.constant(images[1500:])).numpy() == labels[1500:]).mean())


@pytest.mark.slow  # trains
def test_a_convolutional_network_reads_digits(digits):
    images, labels = digits
    ll.random.seed(0)
    relu = ll.nn.relu
    model = ll.nn.Sequential(
        ll.nn.Conv(8, 3, kernel_initializer="he_normal", use_bias=False),
        ll.nn.BatchNorm(),
        relu,
        ll.nn.MaxPool(2),
        ll.nn.Conv(16, 3, activation=relu, kernel_initializer="he_normal"),
        ll.nn.AvgPool(2),
        ll.nn.Flatten(),
        ll.nn.Dropout(0.1),
        ll.nn.Dense(10),
    )
    schedule = ll.optim.schedules.Cosine(0.03, steps=120, warmup=10)
    trained(model, ll.optim.AdamW(schedule), images[..., None], labels, epochs=4)
    assert accuracy(model, images[..., None], labels) > 0.94


@pytest.mark.slow  # learns for seconds
def test_attention_over_rows_reads_digits(digits):
    images, labels = digits
    ll.random.seed(0)

    class Block(ll.Module):
        def __init__(self):
            self.place = ll.Variable(lambda: ll.random.normal((8, 32), stddev=0.1))
            self.inner = ll.nn.Dense(32)
            self.norm = ll.nn.LayerNorm()
            self.attention = ll.nn.MultiHeadAttention(4)
            self.last = ll.nn.Sequential(ll.nn.Dense(64, ll.nn.gelu), ll.nn.Flatten(), ll.nn.Dense(10))

        def call(self, x, training=False):
            x = self.inner(x) + self.place
            return self.last(x + self.attention(self.norm(x)), training=training)

    model = Block()
    trained(model, ll.optim.Adam(0.005), images, labels, epochs=4)
    assert accuracy(model, images, labels) > 0.93


@pytest.mark.slow  # trains a network
@pytest.mark.parametrize("layer", [ll.nn.LSTM, ll.nn.GRU])
def test_a_recurrent_network_reads_digits_row_by_row(digits, layer):
    images, labels = digits
    ll.random.seed(0)
    model = ll.nn.Sequential(layer(32), ll.nn.Dense(10))
    trained(model, ll.optim.Adam(0.01), images, labels, epochs=5)
    assert accuracy(model, images, labels) > 0.9

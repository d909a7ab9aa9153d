"""Models that views are tried on: each function returns a staged training step that has been called once.

`MODELS` has all of them by name; `failing` raises while it is traced.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import limelight as ll


class ConvNet(ll.Module):
    """Three convolutions with normalisation, and two dense layers."""

    def __init__(self) -> None:
        self.conv1 = ll.nn.Conv(16, 3, activation="relu")
        self.conv2 = ll.nn.Conv(32, 3, activation="relu")
        self.conv3 = ll.nn.Conv(32, 3, activation="relu")
        self.pool = ll.nn.MaxPool(2)
        self.dense = ll.nn.Dense(64, "relu")
        self.head = ll.nn.Dense(10)

    def call(self, x: Any) -> Any:
        x = self.pool(self.conv1(x))
        x = self.pool(self.conv2(x))
        x = self.conv3(x)
        x = self.dense(x.reshape((x.shape[0], -1)))
        return self.head(x)


def _trained(model: Any, loss_of: Callable[..., Any], *batch: Any) -> Any:
    """A step of Adam on `loss_of(*batch)`, traced."""
    optimizer = ll.optim.Adam(1e-3)

    @ll.function
    def train_step(*batch: Any) -> Any:
        with ll.GradientTape() as tape:
            loss = loss_of(*batch)
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # this definition is staged for each model
        train_step(*batch)
    return train_step


def conv_net() -> Any:
    """A convolutional network of five layers and Adam."""
    model = ConvNet()
    images = ll.ones((4, 16, 16, 3))
    labels = ll.zeros((4,), dtype="int32")

    def loss_of(images: Any, labels: Any) -> Any:
        logits = model(images)
        return ll.nn.softmax_cross_entropy(logits, labels).mean()

    return _trained(model, loss_of, images, labels)


class Block(ll.Module):
    """A block of a transformer: attention and a perceptron, each after a normalisation and beside a shortcut."""

    def __init__(self, width: int) -> None:
        self.norm1 = ll.nn.LayerNorm()
        self.attention = ll.nn.MultiHeadAttention(4)
        self.norm2 = ll.nn.LayerNorm()
        self.mlp = ll.nn.Sequential(ll.nn.Dense(4 * width, "gelu"), ll.nn.Dense(width))

    def call(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x), causal=True)
        return x + self.mlp(self.norm2(x))


class Transformer(ll.Module):
    """A language model: embedding, equal blocks, normalisation and head."""

    def __init__(self, vocabulary: int, width: int, depth: int) -> None:
        self.embed = ll.nn.Embedding(vocabulary, width)
        self.blocks = [Block(width) for _ in range(depth)]
        self.norm = ll.nn.LayerNorm()
        self.head = ll.nn.Dense(vocabulary)

    def call(self, ids: Any) -> Any:
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def transformer() -> Any:
    """A transformer of four layers, on 8 rows of 128 ids."""
    model = Transformer(100, 32, 4)
    ids = ll.zeros((8, 128), dtype="int32")

    def loss_of(ids: Any, targets: Any) -> Any:
        return ll.nn.softmax_cross_entropy(model(ids), targets).mean()

    return _trained(model, loss_of, ids, ids)


class Tagger(ll.Module):
    """An LSTM cell that is called step by step, and a dense layer on its last output."""

    def __init__(self) -> None:
        self.cell = ll.nn.LSTMCell(16)
        self.head = ll.nn.Dense(3)

    def call(self, x: Any) -> Any:
        state = None
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        return self.head(state[0])


def lstm() -> Any:
    """An LSTM that is unrolled for 50 steps by the user's loop."""
    model = Tagger()
    x = ll.ones((4, 50, 8))

    def loss_of(x: Any) -> Any:
        return (model(x) ** 2).mean()

    return _trained(model, loss_of, x)


class Autoencoder(ll.Module):
    """A variational autoencoder, of two perceptrons."""

    def __init__(self) -> None:
        self.encoder = ll.nn.Sequential(ll.nn.Dense(64, "relu"), ll.nn.Dense(16))
        self.decoder = ll.nn.Sequential(ll.nn.Dense(64, "relu"), ll.nn.Dense(100))

    def call(self, x: Any, noise: Any) -> tuple[Any, Any, Any]:
        mean, log_variance = ll.split(self.encoder(x), 2, axis=-1)
        z = mean + ll.exp(0.5 * log_variance) * noise
        return self.decoder(z), mean, log_variance


def vae() -> Any:
    """A variational autoencoder."""
    model = Autoencoder()
    x, noise = ll.ones((8, 100)), ll.zeros((8, 8))

    def loss_of(x: Any, noise: Any) -> Any:
        logits, mean, log_variance = model(x, noise)
        reconstruction = ll.nn.sigmoid_cross_entropy(logits, x).sum(axis=-1)
        divergence = 0.5 * (ll.exp(log_variance) + mean**2 - 1.0 - log_variance).sum(axis=-1)
        return (reconstruction + divergence).mean()

    return _trained(model, loss_of, x, noise)


def gan() -> Any:
    """Generator and discriminator, each with an optimiser of its own."""
    generator = ll.nn.Sequential(ll.nn.Dense(32, "relu"), ll.nn.Dense(20, "tanh"))
    discriminator = ll.nn.Sequential(ll.nn.Dense(32, "relu"), ll.nn.Dense(1))
    slow, fast = ll.optim.Adam(1e-4), ll.optim.SGD(4e-4)

    @ll.function
    def train_step(real: Any, z: Any) -> tuple[Any, Any]:
        with ll.GradientTape(persistent=True) as tape:
            fake = generator(z)
            on_real, on_fake = discriminator(real), discriminator(fake)
            of_generator = ll.nn.softplus(-on_fake).mean()
            of_discriminator = (ll.nn.softplus(-on_real) + ll.nn.softplus(on_fake)).mean()
        slow.apply(tape.gradient(of_generator, generator.variables), generator.variables)
        fast.apply(tape.gradient(of_discriminator, discriminator.variables), discriminator.variables)
        return of_generator, of_discriminator

    train_step(ll.ones((8, 20)), ll.ones((8, 4)))
    return train_step


class Twice(ll.Module):
    """Two convolutions."""

    def __init__(self, filters: int) -> None:
        self.first = ll.nn.Conv(filters, 3, activation="relu")
        self.second = ll.nn.Conv(filters, 3, activation="relu")

    def call(self, x: Any) -> Any:
        return self.second(self.first(x))


class UNet(ll.Module):
    """A U-Net of three levels, with shortcuts from each level down to that up."""

    def __init__(self) -> None:
        self.down = [Twice(8), Twice(16)]
        self.bottom = Twice(32)
        self.up = [ll.nn.ConvTranspose(16, 2, stride=2), ll.nn.ConvTranspose(8, 2, stride=2)]
        self.merge = [Twice(16), Twice(8)]
        self.pool = ll.nn.MaxPool(2)
        self.out = ll.nn.Conv(2, 1)

    def call(self, x: Any) -> Any:
        skipped = []
        for level in self.down:
            x = level(x)
            skipped.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(ll.concat([up(x), skipped.pop()], axis=-1))
        return self.out(x)


def u_net() -> Any:
    """A U-Net."""
    model = UNet()
    images, masks = ll.ones((2, 16, 16, 1)), ll.zeros((2, 16, 16), dtype="int32")

    def loss_of(images: Any, masks: Any) -> Any:
        return ll.nn.softmax_cross_entropy(model(images), masks).mean()

    return _trained(model, loss_of, images, masks)


def unrolled(ops: int = 10_000) -> Any:
    """A loop of five ops a round, unrolled: no module, no scope."""

    @ll.function
    def simulate(x: Any, v: Any) -> Any:
        for _ in range(ops // 5):
            force = -ll.sin(x)
            v = v + force
            x = ll.tanh(x + v)
        return x

    simulate(ll.ones((16,)), ll.zeros((16,)))
    return simulate


def failing() -> Any:
    """A staged step that raises a ShapeError while it is traced, in the fourth layer; it has not been called."""
    model = ConvNet()
    model.dense = ll.nn.Lambda(lambda x: x @ ll.ones((3, 3)))

    @ll.function
    def train_step(images: Any) -> Any:
        return model(images).mean()

    return train_step


IMAGES: Final = np.ones((4, 16, 16, 3), np.float32)
"""What `failing` takes."""

MODELS: Final[dict[str, Callable[[], Any]]] = {
    "conv_net": conv_net,
    "transformer": transformer,
    "lstm": lstm,
    "vae": vae,
    "gan": gan,
    "u_net": u_net,
    "unrolled": unrolled,
}

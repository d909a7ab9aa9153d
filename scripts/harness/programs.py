"""Programs of the size that people bring: what their graphs look like is what the graph view is judged by.

Each is the source of a cell, which leaves a staged function, traced once, under the program's own name.
"""

from __future__ import annotations

IMPORTS = """\
import numpy as np
import limelight as ll
from limelight import nn
"""

CONVOLUTIONAL = """\
net = nn.Sequential(
    nn.Conv(16, 3, activation="relu"), nn.Conv(32, 3, stride=2, activation="relu"), nn.Conv(32, 3, activation="relu"),
    nn.Conv(64, 3, stride=2, activation="relu"), nn.Conv(64, 3, activation="relu"), nn.Flatten(), nn.Dense(10),
)
conv_adam = ll.optim.Adam(1e-3)

@ll.function
def convolutional(images, labels):
    with ll.GradientTape() as tape:
        loss = ll.mean(nn.softmax_cross_entropy(net(images), labels))
    conv_adam.apply(tape.gradient(loss, net.trainable_variables), net.trainable_variables)
    return loss

images, labels = ll.ones((4, 16, 16, 3)), ll.zeros((4,), dtype="int32")
net(images)
convolutional(images, labels);"""

_TRANSFORMER = """\
class Block(nn.Module):
    def __init__(self, width):
        self.norm_1, self.norm_2 = nn.LayerNorm(), nn.LayerNorm()
        self.attention = nn.MultiHeadAttention(4)
        self.up, self.down = nn.Dense(4 * width, activation="gelu"), nn.Dense(width)

    def call(self, x):
        x = x + self.attention(self.norm_1(x), causal=True)
        return x + self.down(self.up(self.norm_2(x)))

class Transformer(nn.Module):
    def __init__(self, words, width, depth):
        self.embed = nn.Embedding(words, width)
        self.blocks = [Block(width) for _ in range(depth)]
        self.norm, self.head = nn.LayerNorm(), nn.Dense(words)

    def call(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

language_model = Transformer(100, {width}, {depth})
lm_adam = ll.optim.Adam(1e-3)

@ll.function
def {name}(ids, targets):
    with ll.GradientTape() as tape:
        loss = ll.mean(nn.softmax_cross_entropy(language_model(ids), targets))
    weights = language_model.trainable_variables
    lm_adam.apply(tape.gradient(loss, weights), weights)
    return loss

ids = ll.zeros((2, {length}), dtype="int32")
language_model(ids)
{name}(ids, ids);"""

_UNROLLED = """\
cell, to_label = nn.LSTMCell({units}), nn.Dense(3)
sgd = ll.optim.SGD(0.1)

@ll.function
def {name}(sequence, labels):
    with ll.GradientTape() as tape:
        h, c = ll.zeros(({batch}, {units})), ll.zeros(({batch}, {units}))
        for t in range({steps}):
            h, c = cell(sequence[:, t], (h, c))
        loss = ll.mean(nn.softmax_cross_entropy(to_label(h), labels))
    weights = cell.trainable_variables + to_label.trainable_variables
    sgd.apply(tape.gradient(loss, weights), weights)
    return loss

sequence = ll.ones(({batch}, {steps}, {features}))
cell(sequence[:, 0], (ll.zeros(({batch}, {units})), ll.zeros(({batch}, {units}))))
to_label(ll.zeros(({batch}, {units})))
{name}(sequence, ll.zeros(({batch},), dtype="int32"));"""

AUTOENCODER = """\
class Autoencoder(nn.Module):
    def __init__(self):
        self.encode = nn.Sequential(nn.Dense(64, activation="relu"), nn.Dense(32, activation="relu"))
        self.mean, self.log_variance = nn.Dense(4), nn.Dense(4)
        self.decode = nn.Sequential(nn.Dense(32, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(100))

    def call(self, x):
        h = self.encode(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + ll.exp(0.5 * log_variance) * ll.random.normal((8, 4))
        return self.decode(z), mean, log_variance

vae = Autoencoder()
vae_adam = ll.optim.Adam(1e-3)

@ll.function
def autoencoder(x):
    with ll.GradientTape() as tape:
        scores, mean, log_variance = vae(x)
        rebuilt = ll.mean(nn.sigmoid_cross_entropy(scores, x))
        divergence = -0.5 * ll.mean(1.0 + log_variance - mean**2 - ll.exp(log_variance))
        loss = rebuilt + divergence
    vae_adam.apply(tape.gradient(loss, vae.trainable_variables), vae.trainable_variables)
    return loss

pixels = ll.ones((8, 100))
vae(pixels)
autoencoder(pixels);"""

TEN_THOUSAND = """\
@ll.function
def ten_thousand(x):
    for n in range(5000):
        x = ll.tanh(x * 1.0001)
    return ll.sum(x)

ten_thousand(ll.ones((4, 4)));"""

RESIDUAL = """\
class Residual(nn.Module):
    def __init__(self, width, stride=1):
        self.first, self.second = nn.Conv(width, 3, stride=stride), nn.Conv(width, 3)
        self.skip = nn.Conv(width, 1, stride=stride) if stride > 1 else None
        self.norm_1, self.norm_2 = nn.LayerNorm(), nn.LayerNorm()
    def call(self, x):
        y = self.norm_2(self.second(nn.relu(self.norm_1(self.first(x)))))
        return nn.relu(y + (x if self.skip is None else self.skip(x)))
class ResNet(nn.Module):
    def __init__(self):
        self.stem = nn.Conv(8, 3, activation="relu")
        self.stages = [Residual(8), Residual(8), Residual(16, 2), Residual(16), Residual(32, 2), Residual(32)]
        self.head = nn.Dense(10)
    def call(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return self.head(ll.mean(x, (1, 2)))
res = ResNet()
res_sgd = ll.optim.SGD(0.1)
@ll.function
def residual(images, labels):
    with ll.GradientTape() as tape:
        loss = ll.mean(nn.softmax_cross_entropy(res(images), labels))
    res_sgd.apply(tape.gradient(loss, res.trainable_variables), res.trainable_variables)
    return loss
res(ll.ones((2, 8, 8, 3)))
residual(ll.ones((2, 8, 8, 3)), ll.zeros((2,), dtype="int32"));"""

BY_HAND = """\
rng = np.random.default_rng(0)
sizes = [10, 64, 64, 64, 3]
def layer(i, a, b):
    weights = rng.normal(size=(a, b)).astype("float32")
    return ll.Variable(weights, name=f"w{i}"), ll.Variable(np.zeros(b, "float32"), name=f"b{i}")

layers = [layer(i, a, b) for i, (a, b) in enumerate(zip(sizes, sizes[1:]))]

@ll.function
def by_hand(x, y):
    with ll.GradientTape() as tape:
        h = x
        for w, b in layers[:-1]:
            h = ll.tanh(h @ w + b)
        w, b = layers[-1]
        loss = ll.mean((h @ w + b - y) ** 2)
    variables = [v for pair in layers for v in pair]
    for v, g in zip(variables, tape.gradient(loss, variables)):
        v.assign_sub(0.1 * g)
    return loss
by_hand(ll.ones((8, 10)), ll.ones((8, 3)));"""

NEURAL_ODE = """\
field = nn.Sequential(nn.Dense(16, activation="tanh"), nn.Dense(2))
field(ll.ones((4, 2)))
@ll.function
def neural_ode(x):
    def step(i, t, x):
        k1 = field(x)
        k2 = field(x + 0.05 * k1)
        k3 = field(x + 0.05 * k2)
        k4 = field(x + 0.1 * k3)
        return i + 1, t + 0.1, x + 0.1 / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    i, t, end = ll.while_loop(lambda i, t, x: i < 20, step, (0, 0.0, x))
    return ll.mean(end ** 2)
neural_ode(ll.ones((4, 2)));"""


def transformer(name: str, *, width: int, depth: int, length: int) -> str:
    """A language model and its training step, a function of that name."""
    return _TRANSFORMER.format(name=name, width=width, depth=depth, length=length)


def unrolled(name: str, *, units: int, batch: int, steps: int, features: int) -> str:
    """A recurrent network, unrolled over so many steps in time, and its training step."""
    return _UNROLLED.format(name=name, units=units, batch=batch, steps=steps, features=features)


TRANSFORMER = transformer("transformer", width=32, depth=4, length=16)
UNROLLED = unrolled("unrolled", units=16, batch=4, steps=50, features=8)
PROGRAMS = {
    "convolutional": CONVOLUTIONAL,
    "transformer": TRANSFORMER,
    "unrolled": UNROLLED,
    "autoencoder": AUTOENCODER,
    "residual": RESIDUAL,
    "by_hand": BY_HAND,
    "neural_ode": NEURAL_ODE,
    "ten_thousand": TEN_THOUSAND,
}

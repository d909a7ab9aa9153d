"""Programs with large graphs, as sources of cells: each leaves a traced function `program` with about `{n}` ops."""

from __future__ import annotations

IMPORTS = """\
import json, random, time
import limelight as ll
from limelight import nn
from limelight_widgets.live import wire
ll.widgets.graph(ll.function(lambda x: x)).state()
"""

CHAIN = """\
random.seed(7)
steps = random.choices([ll.tanh, ll.sin, ll.cos, ll.exp, ll.sigmoid], k={n})
@ll.function
def program(x):
    for step in steps:
        x = step(x)
    return x
program(ll.ones((2, 2)));"""

RANDOM = """\
random.seed(7)
picks = [(random.choice([ll.add, ll.multiply, ll.maximum]), random.random() ** 2, random.random()) for _ in range({n})]
@ll.function
def program(x, y):
    values = [x, y]
    for op, far, near in picks:
        values.append(op(values[-1 - int(len(values) * far)], values[-1 - int(min(len(values), 20) * near)]))
    return values[-1]
program(ll.ones((2, 2)), ll.ones((2, 2)));"""

BRANCHES = """\
random.seed(7)
unary = [ll.tanh, ll.sin, ll.cos, ll.exp, ll.sigmoid]
branches = [random.choices(unary, k=max({n} // 1000 - 2, 0)) for _ in range(1000)]
@ll.function
def program(x):
    x, ends = ll.tanh(x), []
    for number, steps in enumerate(branches):
        y = x * (1.0 + number)  # else the optimiser makes one of equal ones
        for step in steps:
            y = step(y)
        ends.append(y)
    return ll.stack(ends)
program(ll.ones((2, 2)));"""

LOOP = """\
@ll.function
def program(x):
    for _ in range({n} // 2):
        x = ll.tanh(x * 1.0001)
    return ll.sum(x)
program(ll.ones((2, 2)));"""

LAYERS = """\
width = max({n} // 1000, 1)
class Layer(nn.Module):
    def __init__(self):
        self.denses = [nn.Dense(2, activation="tanh") for _ in range(width)]
    def call(self, x):
        for dense in self.denses:
            x = x + dense(x)
        return x
net = nn.Sequential(*(Layer() for _ in range(100)))
net(ll.ones((2, 2)))
@ll.function
def program(x):
    with ll.GradientTape() as tape:
        loss = ll.sum(net(x))
    return tape.gradient(loss, net.trainable_variables)
program(ll.ones((2, 2)));"""

TRANSFORMER = """\
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
model, adam = Transformer(100, 16, 24), ll.optim.Adam(1e-3)
@ll.function
def program(ids, targets):
    with ll.GradientTape() as tape:
        loss = ll.mean(nn.softmax_cross_entropy(model(ids), targets))
    weights = model.trainable_variables
    adam.apply(tape.gradient(loss, weights), weights)
    return loss
ids = ll.zeros((2, 8), dtype="int32")
model(ids)
program(ids, ids);"""

LSTM = """\
lstm, to_label, sgd = nn.LSTMCell(8), nn.Dense(3), ll.optim.SGD(0.1)
@ll.function
def program(sequence, labels):
    with ll.GradientTape() as tape:
        h, c = ll.zeros((2, 8)), ll.zeros((2, 8))
        for t in range(500):
            h, c = lstm(sequence[:, t], (h, c))
        loss = ll.mean(nn.softmax_cross_entropy(to_label(h), labels))
    weights = lstm.trainable_variables + to_label.trainable_variables
    sgd.apply(tape.gradient(loss, weights), weights)
    return loss
sequence = ll.ones((2, 500, 4))
lstm(sequence[:, 0], (ll.zeros((2, 8)), ll.zeros((2, 8))))
to_label(ll.zeros((2, 8)))
program(sequence, ll.zeros((2,), dtype="int32"));"""

BY_SIZE = {"chain": CHAIN, "random": RANDOM, "branches": BRANCHES, "loop": LOOP, "layers": LAYERS}
OF_ONE_SIZE = {"transformer": TRANSFORMER, "lstm": LSTM}
"""24 layers, and 500 steps: a training step of each."""

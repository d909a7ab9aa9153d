"""Programs with large graphs, as sources of cells: each leaves a traced function `program` with about `{n}` ops."""

from __future__ import annotations

from harness.programs import transformer, unrolled

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

BY_SIZE = {"chain": CHAIN, "random": RANDOM, "branches": BRANCHES, "loop": LOOP, "layers": LAYERS}
OF_ONE_SIZE = {
    "transformer": transformer("program", width=16, depth=24, length=8),
    "lstm": unrolled("program", units=8, batch=2, steps=500, features=4),
}
"""24 layers, and 500 steps: a training step of each."""

"""Training steps as people write them in one staged cell: more than one model, helpers, loops, plain tensors.

For each the source of a cell that makes what the step needs, and that of the staged cell itself.
"""

from __future__ import annotations

IMPORTS = """\
import numpy as np
import limelight as ll
from limelight import nn
%load_ext limelight
"""

GAN = (
    """\
generator = nn.Sequential(nn.Dense(64, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(2))
discriminator = nn.Sequential(nn.Dense(64, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(1))
g_adam, d_adam = ll.optim.Adam(1e-3), ll.optim.Adam(1e-3)
real = ll.random.normal((32, 2))
generator(ll.ones((1, 8))); discriminator(real);""",
    """\
%%stage gan
z = ll.random.normal((32, 8))
with ll.GradientTape() as tape:
    fake = generator(z)
    d_loss = ll.mean(nn.sigmoid_cross_entropy(discriminator(real), ll.ones((32, 1)))) \\
           + ll.mean(nn.sigmoid_cross_entropy(discriminator(fake), ll.zeros((32, 1))))
d_adam.apply(tape.gradient(d_loss, discriminator.trainable_variables), discriminator.trainable_variables)
with ll.GradientTape() as tape:
    g_loss = ll.mean(nn.sigmoid_cross_entropy(discriminator(generator(z)), ll.ones((32, 1))))
g_adam.apply(tape.gradient(g_loss, generator.trainable_variables), generator.trainable_variables)
d_loss, g_loss""",
)

GAUSSIAN_PROCESS = (
    """\
rng = np.random.default_rng(0)
xs = ll.constant(rng.uniform(-3, 3, (40, 1)).astype("float32"))
ys = ll.sin(xs)[:, 0] + 0.1 * ll.random.normal((40,))
log_length = ll.Variable(0.0, name="log_length")
log_scale = ll.Variable(0.0, name="log_scale")
log_noise = ll.Variable(-2.0, name="log_noise")""",
    """\
%%stage gp
with ll.GradientTape() as tape:
    distance = ll.sum((xs[:, None, :] - xs[None, :, :]) ** 2, axis=-1)
    K = ll.exp(2 * log_scale) * ll.exp(-0.5 * distance / ll.exp(2 * log_length))
    K = K + ll.exp(2 * log_noise) * ll.eye(40)
    L = ll.linalg.cholesky(K)
    alpha = ll.linalg.cholesky_solve(L, ys[:, None])
    nll = 0.5 * ll.sum(ys[:, None] * alpha) + ll.sum(ll.log(ll.linalg.diagonal(L))) + 20.0 * np.log(2 * np.pi)
for v, g in zip([log_length, log_scale, log_noise], tape.gradient(nll, [log_length, log_scale, log_noise])):
    v.assign_sub(0.01 * g)
nll""",
)

L2HMC = (
    """\
class Net(nn.Module):
    def __init__(self, width=10):
        self.x, self.v, self.t = nn.Dense(width), nn.Dense(width), nn.Dense(width)
        self.hidden = nn.Dense(width, activation="relu")
        self.scale, self.move, self.turn = nn.Dense(2, activation="tanh"), nn.Dense(2), nn.Dense(2, activation="tanh")
    def call(self, x, v, t):
        h = self.hidden(nn.relu(self.x(x) + self.v(v) + self.t(t)))
        return self.scale(h), self.move(h), self.turn(h)
precision = ll.constant([[50.25, -49.75], [-49.75, 50.25]])
def energy(x):
    return 0.5 * ll.sum((x @ precision) * x, axis=1)
def grad_energy(x):
    return x @ precision
x_net, v_net = Net(), Net()
eps = 0.1
adam = ll.optim.Adam(1e-3)
x0 = ll.random.normal((10, 2))
masks = [np.array([1.0, 0.0], "float32"), np.array([0.0, 1.0], "float32")]
times = [np.array([[np.cos(2*np.pi*i/10), np.sin(2*np.pi*i/10)]], "float32") for i in range(10)]
def update_v(x, v, t):
    s, m, q = v_net(x, grad_energy(x), t)
    return v * ll.exp(0.5 * eps * s) - 0.5 * eps * (grad_energy(x) * ll.exp(eps * q) + m), 0.5 * eps * ll.sum(s, axis=1)
def update_x(x, v, t, keep):
    s, m, q = x_net(keep * x, v, t)
    moved = x * ll.exp(eps * s) + eps * (v * ll.exp(eps * q) + m)
    return keep * x + (1 - keep) * moved, eps * ll.sum((1 - keep) * s, axis=1)
x_net(x0, x0, ll.constant(times[0])); v_net(x0, x0, ll.constant(times[0]));""",
    """\
%%stage l2hmc
with ll.GradientTape() as tape:
    x, v = x0, ll.random.normal((10, 2))
    start = energy(x) + 0.5 * ll.sum(v * v, axis=1)
    log_det = ll.zeros((10,))
    for t in times:
        v, d1 = update_v(x, v, ll.constant(t))
        x, d2 = update_x(x, v, ll.constant(t), masks[0])
        x, d3 = update_x(x, v, ll.constant(t), masks[1])
        v, d4 = update_v(x, v, ll.constant(t))
        log_det = log_det + d1 + d2 + d3 + d4
    end = energy(x) + 0.5 * ll.sum(v * v, axis=1)
    accept = ll.exp(ll.minimum(start - end + log_det, 0.0))
    jump = accept * ll.sum((x - x0) ** 2, axis=1) + 1e-4
    loss = ll.mean(1.0 / jump - jump)
weights = x_net.trainable_variables + v_net.trainable_variables
adam.apply(tape.gradient(loss, weights), weights)
loss""",
)

MAML = (
    """\
sizes = [(1, 40), (40, 40), (40, 1)]
weights = [[ll.Variable(ll.random.normal(s) / s[0] ** 0.5), ll.Variable(ll.zeros(s[1]))] for s in sizes]
adam = ll.optim.Adam(1e-3)
def network(layers, x):
    for kernel, bias in layers[:-1]:
        x = ll.tanh(x @ kernel + bias)
    kernel, bias = layers[-1]
    return x @ kernel + bias
def error(layers, x, y):
    return ll.mean((network(layers, x) - y) ** 2)
x, y, new_x, new_y = (ll.random.normal((4, 20, 1)) for _ in range(4))""",
    """\
%%stage maml
total = 0.0
with ll.GradientTape() as outer:
    slow = [[v.read_value() for v in layer] for layer in weights]
    for i in range(4):
        fast = slow
        with ll.GradientTape() as inner:
            leaves = ll.tree.leaves(fast)
            inner.watch(leaves)
            loss = error(fast, x[i], y[i])
        g = inner.gradient(loss, leaves)
        fast = [[k - 0.05 * g[2 * j], b - 0.05 * g[2 * j + 1]] for j, (k, b) in enumerate(fast)]
        total = total + error(fast, new_x[i], new_y[i])
flat = ll.tree.leaves(weights)
adam.apply(outer.gradient(total, flat), flat)
total""",
)

STAGED = {"gan": GAN, "gaussian_process": GAUSSIAN_PROCESS, "l2hmc": L2HMC, "maml": MAML}

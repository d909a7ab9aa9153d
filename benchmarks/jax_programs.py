"""The programs of `loops.py` in JAX, compiled by `jax.jit`: the same arithmetic on arrays of the same sizes.

Programs run on the thread that calls them (`loops.py` asks for no asynchronous dispatch): else the time of a call has
in it how two threads find each other, which on a busy machine is ten times that of a small program. A training step is
a function of its parameters that returns new ones, as is usual there. Each call waits for its result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import sampler

Program = Callable[[], Callable[[], Any]]
_RANDOM = np.random.default_rng(0)
RATE = 1e-3


def _array(*shape: int) -> Any:
    return jnp.asarray((_RANDOM.standard_normal(shape) * 0.3).astype(np.float32))


def _waiting(f: Callable[..., Any], *data: Any) -> Callable[[], Any]:
    return lambda: jax.block_until_ready(f(*data))


def plus_one() -> Callable[[], Any]:
    return _waiting(jax.jit(lambda x: x + 1.0), _array(10))


def chain(rounds: int, size: int) -> Program:
    def body(x: Any, b: Any) -> Any:
        a = x
        for _ in range(rounds):
            x = jnp.tanh(x * b) + a
        return x

    return lambda: _waiting(jax.jit(body), _array(size), _array(size))


def _training(parameters: Any, loss: Callable[..., Any], *data: Any, rate: float = RATE) -> Callable[[], Any]:
    state = [parameters]

    @jax.jit
    def update(parameters: Any, *batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, *batch)
        return value, jax.tree_util.tree_map(lambda p, g: p - rate * g, parameters, gradients)

    def run() -> Any:
        value, state[0] = update(state[0], *data)
        return jax.block_until_ready(value)

    return run


def l2hmc(samples: int) -> Program:
    def make() -> Callable[[], Any]:
        functions = (jnp.exp, jnp.tanh, jax.nn.relu, jnp.sum, jnp.mean, jnp.minimum)
        xp = sampler.Operations(*functions, *sampler.constants(jnp.array))
        batch = [jnp.array(array) for array in sampler.batch(samples)]
        parameters = [jnp.array(p) for p in sampler.parameters()]
        return _training(parameters, lambda p, *batch: sampler.loss(xp, p, batch), *batch, rate=1e-5)

    return make


def mlp() -> Callable[[], Any]:
    sizes = (32, 64, 64, 10)
    layers = [(_array(a, b), _array(b)) for a, b in itertools.pairwise(sizes)]

    def loss(layers: Any, x: Any, y: Any) -> Any:
        for i, (w, b) in enumerate(layers):
            x = x @ w + b
            if i < len(layers) - 1:
                x = jax.nn.relu(x)
        return jnp.mean(jnp.square(x - y))

    return _training(layers, loss, _array(32, 32), _array(32, 10))


def classifier() -> Callable[[], Any]:
    rows, w, b = _array(1000, 32), _array(32, 10), _array(10)
    words = jnp.asarray(_RANDOM.integers(0, 1000, (32, 8)))
    labels = jnp.asarray(_RANDOM.integers(0, 10, 32))

    def loss(parameters: Any, words: Any, labels: Any) -> Any:
        rows, w, b = parameters
        scores = jax.nn.log_softmax(jnp.mean(rows[words], axis=1) @ w + b)
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1))

    return _training((rows, w, b), loss, words, labels)


def transformer() -> Callable[[], Any]:
    width, heads, length, batch = 64, 4, 32, 4
    names = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    parameters = {name: _array(*shape) for name, shape in names.items()}

    def normed(x: Any) -> Any:
        x = x - jnp.mean(x, axis=-1, keepdims=True)
        return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-5)

    def split(x: Any) -> Any:
        return jnp.transpose(jnp.reshape(x, (batch, length, heads, width // heads)), (0, 2, 1, 3))

    def loss(v: Any, x: Any, y: Any) -> Any:
        qkv = normed(x) @ v["qkv"]
        q, k, value = (split(qkv[..., i * width : (i + 1) * width]) for i in range(3))
        weights = jax.nn.softmax(q @ jnp.transpose(k, (0, 1, 3, 2)) * (width // heads) ** -0.5, axis=-1)
        mixed = jnp.reshape(jnp.transpose(weights @ value, (0, 2, 1, 3)), (batch, length, width))
        x = x + mixed @ v["out"]
        x = x + jax.nn.relu(normed(x) @ v["up"]) @ v["down"]
        return jnp.mean(jnp.square(x - y))

    return _training(parameters, loss, _array(batch, length, width), _array(batch, length, width))


def _pulled(state: Any, _: Any) -> Any:
    place, speed = state
    apart = place[None] - place[:, None]
    near = jnp.sum(jnp.square(apart), -1, keepdims=True) + 0.1
    speed = speed + 0.01 * jnp.sum(apart * near**-1.5, axis=1)
    return (place + 0.01 * speed, speed), jnp.sum(jnp.square(speed))


def n_body() -> Callable[[], Any]:
    run = jax.jit(lambda place, speed: jax.lax.scan(_pulled, (place, speed), jnp.arange(100)))
    return _waiting(run, _array(8, 3), _array(8, 3))


def n_body_gradient() -> Callable[[], Any]:
    def energy(place: Any, speed: Any) -> Any:
        return jnp.sum(jnp.square(jax.lax.scan(_pulled, (place, speed), jnp.arange(100))[0][1]))

    return _waiting(jax.jit(jax.grad(energy)), _array(8, 3), _array(8, 3))


def _runge_kutta(y: Any, w1: Any, w2: Any) -> Any:
    h = 0.05

    def slope(y: Any) -> Any:
        return jnp.tanh(y @ w1) @ w2

    k1 = slope(y)
    k2 = slope(y + 0.5 * h * k1)
    k3 = slope(y + 0.5 * h * k2)
    k4 = slope(y + h * k3)
    return y + (k1 + 2.0 * k2 + 2.0 * k3 + k4) * (h / 6.0)


def neural_ode() -> Callable[[], Any]:
    w1, w2 = _array(2, 16), _array(16, 2)

    def run(y: Any) -> Any:
        step = lambda state: (state[0] + 0.05, _runge_kutta(state[1], w1, w2))  # noqa: E731
        return jax.lax.while_loop(lambda state: state[0] < 4.99, step, (jnp.float32(0.0), y))[1]

    return _waiting(jax.jit(run), _array(8, 2))


def neural_ode_gradient() -> Callable[[], Any]:
    """JAX has no gradient of a `while_loop`: a scan of as many steps, which are known."""
    w1, w2 = _array(2, 16), _array(16, 2)

    def loss(y: Any) -> Any:
        last = jax.lax.scan(lambda y, _: (_runge_kutta(y, w1, w2), None), y, None, length=100)[0]
        return jnp.sum(jnp.square(last))

    return _waiting(jax.jit(jax.grad(loss)), _array(8, 2))


def lstm(staged_loop: bool) -> Program:
    def make() -> Callable[[], Any]:
        units, width, steps, batch = 32, 16, 32, 8
        parameters = [_array(*shape) for shape in ((width, 4 * units), (units, 4 * units), (4 * units,))]

        def loss(parameters: Any, xs: Any, y: Any) -> Any:
            wx, wh, b = parameters

            def cell(state: Any, x: Any) -> Any:
                h, c = state
                i, f, g, o = jnp.split(x @ wx + h @ wh + b, 4, axis=-1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

            state = (jnp.zeros((batch, units)), jnp.zeros((batch, units)))
            if staged_loop:
                state, _ = jax.lax.scan(cell, state, xs)
            else:
                for k in range(steps):
                    state, _ = cell(state, xs[k])
            return jnp.mean(jnp.square(state[0] - y))

        return _training(parameters, loss, _array(steps, batch, width), _array(batch, units))

    return make


PROGRAMS: dict[str, Program] = {
    "x + 1 on 10 floats": plus_one,
    "chain of 300 on 10 floats": chain(100, 10),
    "chain of 21 on a million": chain(7, 1_000_000),
    "L2HMC step, 10 samples": l2hmc(10),
    "L2HMC step, 200 samples": l2hmc(200),
    "MLP step": mlp,
    "embedding and classes": classifier,
    "transformer step": transformer,
    "LSTM step, unrolled": lstm(False),
    "LSTM step, scan": lstm(True),
    "N-body scan, 100 steps": n_body,
    "N-body gradient, 100 steps": n_body_gradient,
    "neural ODE, 100 steps": neural_ode,
    "neural ODE gradient": neural_ode_gradient,
}
"""By the names that the programs have in `loops.py`."""

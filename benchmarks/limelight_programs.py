"""Programs of limelight that `loops.py` and `promises.py` time: each makes a staged function and a call of it.

`jax_programs.py` has the same arithmetic in JAX.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import limelight as ll
import sampler
from graph import sampler_step

Program = Callable[[], Callable[[], Any]]
_RANDOM = np.random.default_rng(0)


def _array(*shape: int) -> Any:
    return ll.constant((_RANDOM.standard_normal(shape) * 0.3).astype(np.float32))


def plus_one() -> Callable[[], Any]:
    f = ll.function(lambda x: x + 1.0)
    x = _array(10)
    return lambda: f(x)


def chain(rounds: int, size: int) -> Program:
    """Three elementwise ops a round."""

    def body(x: Any, b: Any) -> Any:
        a = x
        for _ in range(rounds):
            x = ll.tanh(x * b) + a
        return x

    def make() -> Callable[[], Any]:
        f = ll.function(body)
        x, b = _array(size), _array(size)
        return lambda: f(x, b)

    return make


def l2hmc(samples: int) -> Program:
    def make() -> Callable[[], Any]:
        f = sampler_step(sampler)
        data = [ll.constant(array) for array in sampler.batch(samples)]
        return lambda: f(*data)

    return make


def _training(variables: list[Any], loss: Callable[..., Any], *data: Any) -> Callable[[], Any]:
    def step(*batch: Any) -> Any:
        with ll.GradientTape() as tape:
            value = loss(*batch)
        for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
            variable.assign_sub(1e-3 * gradient)
        return value

    f = ll.function(step)
    return lambda: f(*data)


def mlp(sizes: Sequence[int] = (32, 64, 64, 10), batch: int = 32) -> Callable[[], Any]:
    weights = [ll.Variable(_array(a, b)) for a, b in itertools.pairwise(sizes)]
    biases = [ll.Variable(_array(b)) for b in sizes[1:]]

    def loss(x: Any, y: Any) -> Any:
        for i, (w, b) in enumerate(zip(weights, biases, strict=True)):
            x = x @ w + b
            if i < len(weights) - 1:
                x = ll.nn.relu(x)
        return ll.mean(ll.square(x - y))

    return _training([*weights, *biases], loss, _array(batch, sizes[0]), _array(batch, sizes[-1]))


def classifier() -> Callable[[], Any]:
    """A training step of a bag of words: rows of a table, their mean, classes."""
    rows, w, b = (ll.Variable(_array(*shape)) for shape in ((1000, 32), (32, 10), (10,)))

    def loss(words: Any, labels: Any) -> Any:
        scores = ll.mean(ll.take(rows.read_value(), words), axis=1) @ w + b
        return ll.mean(ll.nn.softmax_cross_entropy(scores, labels))

    words, labels = _RANDOM.integers(0, 1000, (32, 8)), _RANDOM.integers(0, 10, 32)
    return _training([rows, w, b], loss, ll.constant(words), ll.constant(labels))


def transformer() -> Callable[[], Any]:
    width, heads, length, batch = 64, 4, 32, 4
    names = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    v = {name: ll.Variable(_array(*shape)) for name, shape in names.items()}

    def normed(x: Any) -> Any:
        x = x - ll.mean(x, axis=-1, keepdims=True)
        return x * ll.rsqrt(ll.mean(ll.square(x), axis=-1, keepdims=True) + 1e-5)

    def split(x: Any) -> Any:
        return ll.transpose(ll.reshape(x, (batch, length, heads, width // heads)), (0, 2, 1, 3))

    def loss(x: Any, y: Any) -> Any:
        qkv = normed(x) @ v["qkv"]
        q, k, value = (split(qkv[..., i * width : (i + 1) * width]) for i in range(3))
        weights = ll.nn.softmax(q @ ll.transpose(k, (0, 1, 3, 2)) * (width // heads) ** -0.5, axis=-1)
        mixed = ll.reshape(ll.transpose(weights @ value, (0, 2, 1, 3)), (batch, length, width))
        x = x + mixed @ v["out"]
        x = x + ll.nn.relu(normed(x) @ v["up"]) @ v["down"]
        return ll.mean(ll.square(x - y))

    return _training(list(v.values()), loss, _array(batch, length, width), _array(batch, length, width))


def _pulled(state: Any, _: Any) -> Any:
    """A step of bodies that attract one another: places and speeds, and the energy of these."""
    place, speed = state
    apart = ll.expand_dims(place, 0) - ll.expand_dims(place, 1)
    near = ll.sum(ll.square(apart), axis=-1, keepdims=True) + 0.1
    pull = ll.sum(apart * near**-1.5, axis=1)
    speed = speed + 0.01 * pull
    return (place + 0.01 * speed, speed), ll.sum(ll.square(speed))


def n_body() -> Callable[[], Any]:
    def run(place: Any, speed: Any) -> Any:
        return ll.scan(_pulled, (place, speed), ll.arange(100))

    f = ll.function(run)
    place, speed = _array(8, 3), _array(8, 3)
    return lambda: f(place, speed)


def n_body_gradient() -> Callable[[], Any]:
    """The gradient of the last speeds for the first places: the loop forward and back, with its residuals."""

    def slope(place: Any, speed: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(place)
            (_, last), _ = ll.scan(_pulled, (place, speed), ll.arange(100))
            energy = ll.sum(ll.square(last))
        return tape.gradient(energy, place)

    f = ll.function(slope)
    place, speed = _array(8, 3), _array(8, 3)
    return lambda: f(place, speed)


def _integrated(y: Any, w1: Any, w2: Any) -> Any:
    """100 steps of Runge and Kutta's method for a network of 2-16-2, in a while_loop."""

    def slope(y: Any) -> Any:
        return ll.tanh(y @ w1) @ w2

    def step(t: Any, y: Any) -> Any:
        h = 0.05
        k1 = slope(y)
        k2 = slope(y + 0.5 * h * k1)
        k3 = slope(y + 0.5 * h * k2)
        k4 = slope(y + h * k3)
        return t + h, y + (k1 + 2.0 * k2 + 2.0 * k3 + k4) * (h / 6.0)

    return ll.while_loop(lambda t, y: t < 4.99, step, (ll.constant(0.0), y))[1]


def neural_ode() -> Callable[[], Any]:
    w1, w2 = _array(2, 16), _array(16, 2)
    f = ll.function(lambda y: _integrated(y, w1, w2))
    y = _array(8, 2)
    return lambda: f(y)


def neural_ode_gradient() -> Callable[[], Any]:
    """The gradient of a loop whose number of steps only the run knows."""
    w1, w2 = _array(2, 16), _array(16, 2)

    def slope(y: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(y)
            loss = ll.sum(ll.square(_integrated(y, w1, w2)))
        return tape.gradient(loss, y)

    f = ll.function(slope)
    y = _array(8, 2)
    return lambda: f(y)


def lstm(staged_loop: bool) -> Program:
    """A training step of an LSTM of 32 units on 32 steps, its loop unrolled or a scan."""

    def make() -> Callable[[], Any]:
        units, width, steps, batch = 32, 16, 32, 8
        wx, wh, b = (ll.Variable(_array(*shape)) for shape in ((width, 4 * units), (units, 4 * units), (4 * units,)))

        def cell(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = ll.split(x @ wx + h @ wh + b, 4, axis=-1)
            c = ll.sigmoid(f) * c + ll.sigmoid(i) * ll.tanh(g)
            return (ll.sigmoid(o) * ll.tanh(c), c), None

        def loss(xs: Any, y: Any) -> Any:
            state = (ll.zeros((batch, units)), ll.zeros((batch, units)))
            if staged_loop:
                state, _ = ll.scan(cell, state, xs)
            else:
                for k in range(steps):
                    state, _ = cell(state, xs[k])
            return ll.mean(ll.square(state[0] - y))

        return _training([wx, wh, b], loss, _array(steps, batch, width), _array(batch, units))

    return make


def adam() -> Callable[[], Any]:
    """Adam's update of an MLP, from `ll.optim`."""
    sizes = (32, 64, 64, 10)
    weights = [ll.Variable(_array(a, b)) for a, b in itertools.pairwise(sizes)]
    optimizer = ll.optim.Adam(1e-3)

    def step(x: Any, y: Any) -> Any:
        with ll.GradientTape() as tape:
            z = x
            for w in weights[:-1]:
                z = ll.nn.relu(z @ w)
            value = ll.mean(ll.square(z @ weights[-1] - y))
        optimizer.apply(tape.gradient(value, weights), weights)
        return value

    f = ll.function(step)
    x, y = _array(32, 32), _array(32, 10)
    return lambda: f(x, y)


PROGRAMS: dict[str, Program] = {
    "x + 1 on 10 floats": plus_one,
    "chain of 300 on 10 floats": chain(100, 10),
    "chain of 300 on 10,000": chain(100, 10_000),
    "chain of 21 on a million": chain(7, 1_000_000),
    "L2HMC step, 10 samples": l2hmc(10),
    "L2HMC step, 200 samples": l2hmc(200),
    "MLP step": mlp,
    "wide MLP step": functools.partial(mlp, (256,) * 5, 64),
    "embedding and classes": classifier,
    "transformer step": transformer,
    "Adam on an MLP": adam,
    "LSTM step, unrolled": lstm(False),
    "LSTM step, scan": lstm(True),
    "N-body scan, 100 steps": n_body,
    "N-body gradient, 100 steps": n_body_gradient,
    "neural ODE, 100 steps": neural_ode,
    "neural ODE gradient": neural_ode_gradient,
}

"""The program that `l2hmc.py` times: written once, with whatever library's operations it is given.

Notation of Levy, Hoffman and Sohl-Dickstein (2018): x the position, v the momentum, m the mask of the coordinates that
a half step leaves alone, S, Q and T the outputs of a network (scale, transformation, translation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

STEPS = 10
HIDDEN = 10
SCALE = 0.1
"""The scale of the loss, lambda squared."""
EPSILON = 0.1
"""The size of a leapfrog step, at first."""
EXPECTED_LOSS = -23.63248


class Operations(NamedTuple):
    """What the program needs beside operators, from whichever library."""

    exp: Callable[[Any], Any]
    tanh: Callable[[Any], Any]
    relu: Callable[[Any], Any]
    sum: Callable[[Any, int], Any]
    mean: Callable[[Any], Any]
    minimum: Callable[[Any, Any], Any]
    precision: Any  # of the target, and for each step its mask, the mask's complement and the encoding of its time
    schedule: list[tuple[Any, Any, Any]]


def parameters() -> list[np.ndarray[Any, Any]]:
    """The logarithm of the step's size, then the two networks' parameters, fourteen each."""
    rng = np.random.default_rng(0)

    def matrix(rows: int, columns: int, factor: float = 1.0) -> np.ndarray[Any, Any]:
        return (rng.standard_normal((rows, columns)) * factor / math.sqrt(rows)).astype(np.float32)

    found = [np.array(math.log(EPSILON), np.float32)]
    for _ in range(2):
        found += [matrix(2, HIDDEN), matrix(2, HIDDEN), matrix(2, HIDDEN), np.zeros(HIDDEN, np.float32)]
        found += [matrix(HIDDEN, HIDDEN), np.zeros(HIDDEN, np.float32)]
        for _head in range(3):
            found += [matrix(HIDDEN, 2, 0.1), np.zeros(2, np.float32)]
        found += [np.zeros(2, np.float32), np.zeros(2, np.float32)]  # what S and Q are scaled by, as logarithms
    return found


def batch(samples: int) -> list[np.ndarray[Any, Any]]:
    """Positions, momenta, and which direction each sample takes: a column of ones and zeros."""
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal((2, samples, 2)).astype(np.float32)
    return [x, v, (rng.random((samples, 1)) < 0.5).astype(np.float32)]


def constants(convert: Callable[[Any], Any]) -> tuple[Any, list[tuple[Any, Any, Any]]]:
    """The last two fields of `Operations`, as the library's own arrays."""
    angle = math.pi / 4
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    precision = (turn @ np.diag([1 / 50.0, 1 / 0.1]) @ turn.T).astype(np.float32)
    rng = np.random.default_rng(2)
    steps = []
    for t in range(STEPS):
        mask = np.zeros((1, 2), np.float32)
        mask[0, rng.integers(2)] = 1.0
        at = 2 * math.pi * t / STEPS
        steps.append((convert(mask), convert(1 - mask), convert(np.array([[math.cos(at), math.sin(at)]], np.float32))))
    return convert(precision), steps


def _network(xp: Operations, p: Sequence[Any], a: Any, b: Any, t: Any) -> tuple[Any, Any, Any]:
    """S, Q and T from two vectors and the time."""
    wa, wb, wt, bias, w2, b2, ws, bs, wq, bq, wn, bn, scale, transform = p
    h = xp.relu(a @ wa + b @ wb + t @ wt + bias)
    h = xp.relu(h @ w2 + b2)
    return xp.exp(scale) * xp.tanh(h @ ws + bs), xp.exp(transform) * xp.tanh(h @ wq + bq), h @ wn + bn


class _Dynamics:
    """The leapfrog integrator that learns; the energy is that of a Gaussian."""

    def __init__(self, xp: Operations, p: Sequence[Any]) -> None:
        self.xp = xp
        self.epsilon = xp.exp(p[0])
        self.position = p[1:15]
        self.momentum = p[15:29]

    def energy(self, x: Any, v: Any) -> Any:
        return 0.5 * self.xp.sum((x @ self.xp.precision) * x, 1) + 0.5 * self.xp.sum(v * v, 1)

    def kick(self, x: Any, v: Any, t: Any, sign: float) -> tuple[Any, Any]:
        """Half a step of the momentum, forward (sign 1) or undone (sign -1), and the logarithm of its Jacobian."""
        xp, half = self.xp, 0.5 * self.epsilon
        force = x @ xp.precision
        S, Q, T = _network(xp, self.momentum, x, force, t)
        S = sign * half * S
        push = half * (force * xp.exp(self.epsilon * Q) + T)
        v = v * xp.exp(S) - push if sign > 0 else (v + push) * xp.exp(S)
        return v, xp.sum(S, 1)

    def drift(self, x: Any, v: Any, t: Any, keep: Any, move: Any, sign: float) -> tuple[Any, Any]:
        """A step of the coordinates `move`, which sees the others."""
        xp = self.xp
        S, Q, T = _network(xp, self.position, v, keep * x, t)
        S = sign * self.epsilon * S
        push = self.epsilon * (v * xp.exp(self.epsilon * Q) + T)
        moved = x * xp.exp(S) + push if sign > 0 else (x - push) * xp.exp(S)
        return keep * x + move * moved, xp.sum(move * S, 1)

    def run(self, x: Any, v: Any, sign: float) -> tuple[Any, Any, Any]:
        """All steps in one direction: position, momentum, and the probability that the proposal is accepted."""
        before, total = self.energy(x, v), 0.0
        for mask, other, t in self.xp.schedule if sign > 0 else reversed(self.xp.schedule):
            first, second = (mask, other) if sign > 0 else (other, mask)
            v, a = self.kick(x, v, t, sign)
            x, b = self.drift(x, v, t, first, second, sign)
            x, c = self.drift(x, v, t, second, first, sign)
            v, d = self.kick(x, v, t, sign)
            total = total + (a + b + c + d)
        zero = before - before
        return x, v, self.xp.exp(self.xp.minimum(before - self.energy(x, v) + total, zero))


def loss(xp: Operations, p: Sequence[Any], data: Sequence[Any]) -> Any:
    """How far accepted proposals jump, as large (and in the worst case not as small) as possible: equation 8."""
    x, v, ahead = data
    dynamics = _Dynamics(xp, p)
    x1, _, p1 = dynamics.run(x, v, 1.0)
    x2, _, p2 = dynamics.run(x, v, -1.0)
    back = 1.0 - ahead
    proposal, accepted = ahead * x1 + back * x2, ahead[:, 0] * p1 + back[:, 0] * p2
    jump = xp.sum((proposal - x) * (proposal - x), 1) * accepted + 1e-4
    return xp.mean(SCALE / jump - jump / SCALE)

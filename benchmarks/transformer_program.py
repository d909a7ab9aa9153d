"""The program that `transformer.py` times: written once, with whatever library's operations it is given.

A decoder (Vaswani et al. 2017) that predicts the next word: layers normalise before they attend and before the two
matrices with ReLU between, words before see no words behind, and the embedding is not shared with the last layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

WORDS = 1000
WIDTH = 256
HEADS = 8
LAYERS = 4


class Operations(NamedTuple):
    """What the program needs, from whichever library."""

    embed: Callable[[Any, Any], Any]  # table, numbers of words
    norm: Callable[[Any, Any, Any], Any]  # scale and offset along the last axis
    relu: Callable[[Any], Any]
    reshape: Callable[[Any, tuple[int, ...]], Any]
    turn: Callable[[Any], Any]  # exchanges axes 1 and 2 of four
    attend: Callable[[Any, Any, Any], Any]  # queries, keys, values: (batch, heads, length, depth), causal
    loss: Callable[[Any, Any], Any]  # the mean cross-entropy of logits and class numbers, (n, classes) and (n,)


def _shapes() -> Iterator[tuple[int, ...]]:
    yield WORDS, WIDTH
    for _ in range(LAYERS):
        yield from [(WIDTH,)] * 2
        yield from [(WIDTH, WIDTH)] * 4
        yield from [(WIDTH,)] * 2
        yield WIDTH, 4 * WIDTH
        yield 4 * WIDTH, WIDTH
    yield WIDTH, WORDS


def parameters() -> list[np.ndarray[Any, Any]]:
    """The embedding, for each layer scales, offsets and matrices, and the last matrix: 3.7 million numbers."""
    rng = np.random.default_rng(0)
    found = [rng.standard_normal(shape, np.float32) * np.float32(shape[0] ** -0.5) for shape in _shapes()]
    return [np.full_like(x, 0.5) if x.ndim == 1 else x for x in found]


def batch(size: int, length: int) -> list[np.ndarray[Any, Any]]:
    """Numbers of words, and those of the words behind them."""
    words = np.random.default_rng(1).integers(0, WORDS, (size, length + 1)).astype(np.int64)
    return [words[:, :-1].copy(), words[:, 1:].reshape(-1).copy()]


def loss(xp: Operations, p: Sequence[Any], data: Sequence[Any]) -> Any:
    """The mean cross-entropy of a batch."""
    words, labels = data
    size, length = (int(n) for n in words.shape)
    given = iter(p)

    def heads(x: Any) -> Any:
        return xp.turn(xp.reshape(x, (size, length, HEADS, WIDTH // HEADS)))

    x = xp.embed(next(given), words)
    for _ in range(LAYERS):
        y = xp.norm(x, next(given), next(given))
        q, k, v = (heads(y @ next(given)) for _ in range(3))
        x = x + xp.reshape(xp.turn(xp.attend(q, k, v)), (size, length, WIDTH)) @ next(given)
        y = xp.norm(x, next(given), next(given))
        x = x + xp.relu(y @ next(given)) @ next(given)
    return xp.loss(xp.reshape(x, (size * length, WIDTH)) @ next(given), labels)

"""The program that `resnet50.py` times: written once, with whatever library's operations it is given.

ResNet-50 (He, Zhang, Ren and Sun 2016, "Deep Residual Learning for Image Recognition"), with the stride in the 3x3
convolution of a block, as libraries have it today. Batches are normalised by their own moments; running averages, which
training does not use, are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

CLASSES = 1000
BLOCKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Of each stage: channels within a block, blocks, stride of the first one."""


class Operations(NamedTuple):
    """What the program needs, from whichever library; images are (batch, height, width, channels) at first."""

    conv: Callable[[Any, Any, int], Any]  # images, filters, stride; as many margins as keep the size for stride 1
    norm: Callable[[Any, Any, Any], Any]  # images, scale, offset
    relu: Callable[[Any], Any]
    pool: Callable[[Any], Any]  # the most of 3 x 3, stride 2
    average: Callable[[Any], Any]  # over height and width
    loss: Callable[[Any, Any], Any]  # the mean cross-entropy of logits and class numbers


def _filters() -> Iterator[tuple[int, int, int, int]]:
    """The shapes of all filters, in the order of their use: height, width, channels in, channels out."""
    yield 7, 7, 3, 64
    width = 64
    for channels, blocks, _ in BLOCKS:
        for block in range(blocks):
            yield 1, 1, width, channels
            yield 3, 3, channels, channels
            yield 1, 1, channels, 4 * channels
            if not block:
                yield 1, 1, width, 4 * channels
            width = 4 * channels


def parameters() -> list[np.ndarray[Any, Any]]:
    """Filters, scale and offset of each convolution, then the last layer's matrix and bias: 25.6 million numbers."""
    rng = np.random.default_rng(0)
    found: list[np.ndarray[Any, Any]] = []
    for shape in _filters():
        size = math.sqrt(2 / math.prod(shape[:3]))
        found += [rng.standard_normal(shape, np.float32) * np.float32(size)]
        found += [np.ones(shape[3], np.float32), np.zeros(shape[3], np.float32)]
    return [*found, rng.standard_normal((2048, CLASSES), np.float32) * np.float32(0.01), np.zeros(CLASSES, np.float32)]


def batch(size: int, pixels: int) -> list[np.ndarray[Any, Any]]:
    """Images and class numbers."""
    rng = np.random.default_rng(1)
    return [rng.standard_normal((size, pixels, pixels, 3), np.float32), rng.integers(0, CLASSES, size).astype(np.int64)]


def loss(xp: Operations, p: Sequence[Any], data: Sequence[Any]) -> Any:
    """The mean cross-entropy of a batch."""
    images, labels = data
    given = iter(p)

    def normed(x: Any, stride: int = 1) -> Any:
        return xp.norm(xp.conv(x, next(given), stride), next(given), next(given))

    x = xp.pool(xp.relu(normed(images, 2)))
    for _, blocks, first in BLOCKS:
        for block in range(blocks):
            stride = 1 if block else first
            y = xp.relu(normed(x))
            y = xp.relu(normed(y, stride))
            y = normed(y)
            x = xp.relu(y + (x if block else normed(x, stride)))
    return xp.loss(xp.average(x) @ next(given) + next(given), labels)

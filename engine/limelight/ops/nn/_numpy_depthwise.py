"""Convolution of each channel with filters of its own, on NumPy: nothing for a product of matrices, so place by place.

One image at a time, so that what is added to stays in a cache. `w` is (*window, 1, channels * filters of each).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.ops.nn._numpy_convolution import padded
from limelight.ops.nn._windows import Windows, inside_margins, taps

Array = Any


def forward(x: Array, w: Array, at: Windows) -> Array:
    x, filters = _repeated(padded(x, at), w.shape[-1]), w.reshape(*at.window, -1)
    out = np.zeros((len(x), *at.out, w.shape[-1]), x.dtype)
    for i, image in enumerate(x):
        total = out[i]
        for place, (_, *where) in taps(at):
            total += image[tuple(where)] * filters[place]
    return out


def input_gradient(g: Array, w: Array, at: Windows, channels: int) -> Array:
    out, filters = np.zeros((len(g), *at.padded, g.shape[-1]), g.dtype), w.reshape(*at.window, -1)
    for total, image in zip(out, g, strict=True):
        for place, (_, *where) in taps(at):
            total[tuple(where)] += image * filters[place]
    out = out[inside_margins(at)]
    return out if channels == g.shape[-1] else out.reshape(*out.shape[:-1], channels, -1).sum(-1)


def filter_gradient(x: Array, g: Array, at: Windows) -> Array:
    x, out = _repeated(padded(x, at), g.shape[-1]), np.zeros((*at.window, g.shape[-1]), x.dtype)
    over = tuple(range(len(at.window)))
    for image, seen in zip(x, g, strict=True):
        for place, (_, *where) in taps(at):
            out[place] += np.add.reduce(image[tuple(where)] * seen, over)
    return out.reshape(*at.window, 1, -1)


def _repeated(x: Array, filters: int) -> Array:
    """Each channel once for each of its filters."""
    return x if x.shape[-1] == filters else np.repeat(x, filters // x.shape[-1], -1)

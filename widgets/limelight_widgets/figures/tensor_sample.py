"""What is looked at of a tensor: all of a small one, evenly spaced elements of a large one, and its statistics.

Only what is looked at is copied, from whichever device: a tensor of gigabytes costs no more than one of a megabyte.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from limelight.core import device_copies
from limelight.core.devices import Device

MOST_ELEMENTS = 2**18
"""Elements that are looked at, at most. Their statistics take a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the `count` elements that were looked at, absolute values where they are complex.

    `least`, `mean`, `most` and `deviation` (of the population) are of the finite ones; None where there are none.
    """

    count: int
    nans: int
    infinities: int
    negative_infinities: int
    least: float | int | None
    mean: float | None
    most: float | int | None
    deviation: float | None


def sampled(payload: Any, device: Device) -> np.ndarray[Any, Any]:
    """All elements of a device's array, or every n-th along its axes, at most `MOST_ELEMENTS`, on the host."""
    part = payload[_strides(tuple(payload.shape))] if payload.size > MOST_ELEMENTS else payload
    return device_copies.on_host(part, device, device_copies.PRINTED)


def _strides(shape: tuple[int, ...]) -> tuple[slice, ...]:
    steps = [1] * len(shape)
    sizes = list(shape)
    while math.prod(sizes) > MOST_ELEMENTS:
        longest = sizes.index(max(sizes))
        steps[longest] += 1 + steps[longest] // 16  # by a share, not by one: axes may be long
        sizes[longest] = -(-shape[longest] // steps[longest])
    return tuple(slice(None, None, step) for step in steps)


def magnitudes(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The values as float64: what a colour can stand for. Of complex ones the absolute value."""
    if values.dtype.kind == "c":
        with np.errstate(invalid="ignore", over="ignore"):  # of NaN and infinities
            absolute: np.ndarray[Any, Any] = np.abs(values.astype(np.complex128))
        return absolute
    return values.astype(np.float64)


def statistics(values: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any]) -> Statistics:
    """Counts what is not finite, and measures what is; `numbers` are the magnitudes of `values`."""
    finite = numbers[np.isfinite(numbers)]
    nans = int(np.isnan(numbers).sum())
    counts = (numbers.size, nans, int(np.isposinf(numbers).sum()), int(np.isneginf(numbers).sum()))
    if not finite.size:
        return Statistics(*counts, None, None, None, None)
    if values.dtype.kind in "iu":  # float64 has 53 bits
        return Statistics(*counts, int(values.min()), *_mean(finite, int(values.max())))
    return Statistics(*counts, float(finite.min()), *_mean(finite, float(finite.max())))


def _mean(finite: np.ndarray[Any, Any], most: float | int) -> tuple[float, float | int, float]:
    """Mean, `most`, and standard deviation, of values scaled so that no square overflows."""
    scale = float(np.abs(finite).max()) or 1.0
    part = finite / scale
    return float(part.mean()) * scale, most, float(part.std()) * scale

"""Two tiers of one graph compared on real calls: do they agree, and which is faster?

No call is made twice: tiers take turns, each with calls of its own. Agreement is asked first, once, by a rehearsal of
the compiled program, which draws and assigns nothing, beside a call of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

ROUNDS: Final = 5
"""Calls of each tier."""
WORTH: Final = 0.9
"""The share of the time of now below which it is worth to change."""
HOPELESS: Final = 3.0
"""So many times as long, and two calls of the compiled program are enough."""
_TOLERANCE: Final = {8: 1e-6, 4: 2e-3, 2: 0.05, 1: 0.3}
"""By bytes of a real number: the difference from the largest number of an array, as its share."""


class Verdict(NamedTuple):
    """The result of a comparison: how many times as fast the compiled program is, and whether it is to be taken."""

    speed: float
    switch: bool


class Comparison:
    """Takes note of how long calls took, and says whose turn it is."""

    def __init__(self) -> None:
        self.rehearsed = False
        self._seconds: tuple[list[float], list[float]] = ([], [])

    @property
    def compiled_is_next(self) -> bool:
        """Whether the next call is one of the compiled program; the other tier begins."""
        quick, compiled = self._seconds
        return len(compiled) < len(quick)

    def note(self, seconds: float, compiled: bool) -> Verdict | None:
        """Takes note of a call; the verdict as soon as there is one."""
        self._seconds[compiled].append(seconds)
        quick, other = self._seconds
        if not other or len(other) < len(quick):
            return None
        times = [float(np.median(found)) for found in (quick, other)]
        hopeless = len(other) > 1 and min(other) > HOPELESS * max(quick)
        if len(other) < ROUNDS and not hopeless:
            return None
        switch = times[1] <= WORTH * times[0] and not hopeless
        return Verdict(times[0] / max(times[1], 1e-9), switch)


def disagreement(wanted: Sequence[Any], found: Sequence[Any]) -> str:
    """How arrays of two tiers differ by more than rounding explains; empty where they agree."""
    for i, pair in enumerate(zip(wanted, found, strict=True)):
        x, y = map(np.asarray, pair)
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            return f"output {i} is {y.dtype}{list(y.shape)}, not {x.dtype}{list(x.shape)}"
        if x.dtype.kind in "biu":
            differ = int(np.count_nonzero(x != y))
            if differ:
                return f"output {i} differs in {differ} of {x.size} elements"
            continue
        share = _difference(x, y)
        real_bytes = x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1)
        if not share <= _TOLERANCE[real_bytes]:
            return f"output {i} differs by {share:.1g} of its largest number"
    return ""


def _difference(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    """The largest difference, as a share of the largest number; infinite where one has numbers and the other none."""
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    finite = np.isfinite(x)
    if not (np.array_equal(finite, np.isfinite(y)) and np.array_equal(x[~finite], y[~finite], equal_nan=True)):
        return float("inf")
    if not finite.any():
        return 0.0
    x, y = x[finite], y[finite]
    largest = np.abs(x).max()
    furthest = np.abs(x - y).max()
    return float(furthest / max(largest, 1e-30)) if furthest else 0.0

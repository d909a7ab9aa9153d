"""A partial derivative by central differences, and how far to trust it.

Five points around `x` (the formula of Abramowitz and Stegun's Handbook, 25.3.6) err by the rounding of the values,
divided by the step, and by kinks between the points. Rounding is the larger of an estimate from what is summed,
`eps * sum(abs(results))`, and of one from the values themselves: at steps so small that the function is a line, fourth
differences of its values are nothing but rounding. Their weights are 1, 4, 6, 4, 1, whose squares add up to 70, so
they are `sqrt(70)` times that of one value, if values round independently: so Moré and Wild, Estimating Computational
Noise (2011), who follow Hamming, take noise from difference tables. At kinks differences with smaller steps are others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np

_FINER: Final = (1.0, 1 / 16, 1 / 256)
"""The steps that are tried, of the widest: kinks beside `x` are outside the smaller ones."""
_LINE: Final = 1e-3
"""Of the widest step: over so little the values of a function are on a line, but for rounding."""
_FOURTH: Final = np.array((1.0, -4.0, 6.0, -4.0, 1.0))
_SAFETY: Final = 16.0
"""Times the rounding of one value: it differs from point to point, and five points add up to 1.5 of them."""

Verdict = Literal["right", "wrong", "kink", "nonfinite"]


@dataclass(frozen=True)
class Finding:
    """What differences say of a derivative: `expected`, known up to `rounding`."""

    verdict: Verdict
    expected: float = 0.0
    error: float = 0.0


@dataclass(frozen=True)
class Differences:
    """Differences of one function of one number, around its present value.

    Args:
        value: the function, of how far to go from there.
        scale: of the number, 1 or more.
        step: the widest, times `scale`.
        eps: of the dtype of the values.
        size: the sum of the magnitudes of what the value is a sum of.
    """

    value: Callable[[float], float]
    scale: float
    step: float
    eps: float
    size: float

    def judge(self, found: float, least: float, tolerance: float) -> Finding:
        """Is `found` the derivative, up to `tolerance`, relative to the larger of itself and `least`, and rounding?"""
        first = _Stencil(self.value, self.step * self.scale)
        if not first.is_finite:
            return Finding("nonfinite")
        finding = _compared(found, first, least, tolerance, self._assumed / first.step)
        if finding.verdict == "right":
            return finding
        last, off = first, abs(found - first.slope)
        for finer in _FINER:
            stencil = first if finer == 1.0 else _Stencil(self.value, first.step * finer)
            rounding = max(self._assumed, self._measured) / stencil.step
            if not stencil.is_finite or (stencil is not first and rounding > off / 4):
                break  # what is wrong with the slope would not be seen any more
            last, finding = stencil, _compared(found, stencil, least, tolerance, rounding)
            if finding.verdict == "right":
                return finding
        is_kink = last.roughness >= abs(found - last.slope) / 2 or math.isnan(last.roughness)
        return Finding("kink") if is_kink and not math.isnan(found) else finding

    @property
    def _assumed(self) -> float:
        return _SAFETY * self.eps * self.size

    @cached_property
    def _measured(self) -> float:
        step, most = _LINE * self.step * self.scale, 0.0
        for side in (step, -step):  # each by itself: there may be a kink or a jump between them
            values = [self.value(k * side) for k in range(1, 7)]
            if np.isfinite(values).all():
                most = max(most, float(np.abs(np.convolve(values, _FOURTH, "valid")).max()))
        return _SAFETY * most / math.sqrt(70)


class _Stencil:
    """The values at five points."""

    def __init__(self, value: Callable[[float], float], step: float) -> None:
        self._value, self.step = value, step
        self._near = [value(k * step) for k in (-1.0, 1.0)]
        self._far = [value(k * step) for k in (-2.0, 2.0)]

    @property
    def is_finite(self) -> bool:
        return all(map(math.isfinite, (*self._near, *self._far)))

    @cached_property
    def _slopes(self) -> tuple[float, float]:
        (left, right), (far_left, far_right) = self._near, self._far
        return (right - left) / (2 * self.step), (far_right - far_left) / (4 * self.step)

    @property
    def slope(self) -> float:
        near, far = self._slopes
        return near + (near - far) / 3

    @cached_property
    def roughness(self) -> float:
        """By how much slopes change that change by nothing, up to the square of the step, in a smooth function.

        Those are the slopes of the near and of the far points, which a kink beside the middle tells apart, and the
        change of the slope from left to right, twice the near one less the far one, which tells one in the middle.
        """
        here = self._value(0.0)
        near, far = (sum(pair) - 2 * here for pair in (self._near, self._far))
        change = (2 * near - far / 2) / self.step
        return max(abs(change), 4 * abs(self._slopes[0] - self._slopes[1]))


def _compared(found: float, stencil: _Stencil, least: float, tolerance: float, rounding: float) -> Finding:
    expected = stencil.slope
    error = abs(found - expected) / max(abs(found), abs(expected), least, rounding / max(tolerance, 1e-300))
    error = float("inf") if math.isnan(error) else error
    return Finding("right" if error <= tolerance else "wrong", expected, error)

"""A recursion in a listing of steps: its first level stands for those that do the same one call further in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

LEAST: Final = 3
"""Levels that are told by one."""
_LONGEST: Final = 24
"""Steps of a level, at most."""


def listed(steps: Sequence[Any]) -> Iterator[str]:
    """The text of each step; of levels that are alike that of the first, and how many more there are."""
    at = 0
    while at < len(steps):
        period, times = _levels(steps, at)
        yield from map(str, steps[at : at + period])
        if times > 1:
            yield f"{'':24}and {times - 1:,} more levels of the same"
        at += period * times


def _levels(steps: Sequence[Any], at: int) -> tuple[int, int]:
    """How many steps a level that begins here has, and how often it comes; (1, 1) where none begins."""
    for period in range(1, min(_LONGEST, (len(steps) - at) // LEAST) + 1):
        deeper = steps[at + period].depth - steps[at].depth
        if deeper and (times := _times(steps, at, period, deeper)) >= LEAST:
            return period, times
    return 1, 1


def _times(steps: Sequence[Any], at: int, period: int, deeper: int) -> int:
    end = at + period
    while end < len(steps) and _is_alike(steps[end - period], steps[end], deeper):
        end += 1
    return (end - at) // period


def _is_alike(one: Any, other: Any, deeper: int) -> bool:
    same = (one.kind, one.line, one.text) == (other.kind, other.line, other.text)
    return same and other.depth - one.depth == deeper

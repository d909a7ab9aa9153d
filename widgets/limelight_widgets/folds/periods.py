"""Periods in a sequence: stretches that repeat one pattern, "a b c a b c a b c", found in linear time.

At each position the distances to the next few equal symbols are tried as periods. How far a period holds is compared
once for all positions that it covers, so each distance costs at most one walk over the sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
CANDIDATES = 6  # distances that are tried at one position
_LONG = 256  # symbols from which on it pays to look at all of them at once
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd: its powers modulo 2^64 never vanish


@dataclass(frozen=True, slots=True)
class Run:
    """`count` copies of a pattern of `period` symbols, from `start` on."""

    start: int
    period: int
    count: int

    @property
    def stop(self) -> int:
        return self.start + self.period * self.count


def runs(
    symbols: Sequence[Hashable],
    worth: Callable[[Run], bool],
    begins: Callable[[int, int], Any] | None = None,
    shortest: Callable[[Integers, Integers], Integers] = lambda starts, periods: 2 * periods,
) -> list[Run]:
    """The repeated stretches of a sequence, leftmost and shortest period first; they do not overlap.

    One that ends within the first period of a longer one that begins with it is a part of that one's pattern.

    Args:
        symbols: the sequence.
        worth: whether a run is to be taken.
        begins: of a position and a period, gives that at which a pattern should begin the smallest number (a line of
            code): a run is moved there within its first period where it still is worth it. By default it begins where
            it can.
        shortest: of positions and periods, gives the lengths below which no run there is worth it: so many of a long
            sequence are looked at no further. At least two periods.

    >>> runs("xabababy", lambda run: run.count > 1)
    [Run(start=1, period=2, count=3)]
    >>> runs("aabaabaab", lambda run: run.count > 1)
    [Run(start=0, period=3, count=3)]
    """
    following = _next_equal(symbols)
    promising = _promising(symbols, following, shortest) if len(symbols) >= _LONG else range(len(symbols))
    mismatch: dict[int, int] = {}  # by period, the last position found at which it does not hold
    result: list[Run] = []
    done = 0
    for position in promising:
        if position < done:
            continue
        best = _best_at(symbols, position, following, mismatch, worth)
        if best is None:
            continue
        if begins is not None:
            best = _moved(best, mismatch[best.period] + best.period, begins, worth)
        result.append(best)
        done = best.stop
    return result


def _promising(
    symbols: Sequence[Hashable], following: Sequence[int], shortest: Callable[[Integers, Integers], Integers]
) -> list[int]:
    """The positions at which a run may begin that is long enough: by hashes, of all positions at once.

    Wherever one begins is among them; so may be others, if hashes of two patterns are equal.
    """
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(symbol, len(numbers) + 1) for symbol in symbols], np.uint64)
    count = len(codes)
    powers = np.cumprod(np.concatenate([np.ones(1, np.uint64), np.full(count, _BASE)]), dtype=np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(codes * powers[:count], dtype=np.uint64)])
    after = np.array(following)
    result = np.zeros(count, bool)
    starts, later = np.arange(count), after
    for _ in range(CANDIDATES):
        starts, later = starts[later >= 0], later[later >= 0]
        period = later - starts
        stop = starts + shortest(starts, period)
        fits = stop <= count
        at, middle, size, end = starts[fits], later[fits], period[fits], stop[fits]
        first, second = sums[end - size] - sums[at], sums[end] - sums[middle]
        result[at[first * powers[size] == second]] = True
        later = after[later]
    promising: list[int] = np.flatnonzero(result).tolist()
    return promising


def _best_at(
    symbols: Sequence[Hashable],
    position: int,
    following: Sequence[int],
    mismatch: dict[int, int],
    worth: Callable[[Run], bool],
) -> Run | None:
    best: Run | None = None
    later = following[position]
    for _ in range(CANDIDATES):
        if later < 0:
            break
        period = later - position
        end = mismatch.get(period, -1)
        if end < position:
            end = mismatch[period] = _first_mismatch(symbols, position, period)
        if end - position >= period:  # nearly everywhere it is not: no run is made then
            run = Run(position, period, (end - position) // period + 1)
            if worth(run) and (best is None or best.stop <= position + period):
                best = run
        later = following[later]
    return best


def _first_mismatch(symbols: Sequence[Hashable], position: int, period: int) -> int:
    """The first place from `position` on whose symbol is not repeated a period later."""
    last = len(symbols) - period
    while position < last and symbols[position] == symbols[position + period]:
        position += 1
    return position


def _next_equal(symbols: Sequence[Hashable]) -> list[int]:
    """For each position the next one with the same symbol, or -1."""
    following = [-1] * len(symbols)
    seen: dict[Hashable, int] = {}
    for position in range(len(symbols) - 1, -1, -1):
        following[position] = seen.get(symbols[position], -1)
        seen[symbols[position]] = position
    return following


def _moved(run: Run, end: int, begins: Callable[[int, int], Any], worth: Callable[[Run], bool]) -> Run:
    """The run from where its pattern begins on; as it is where too little would be left."""
    start = min(range(run.start, run.start + run.period), key=lambda at: (begins(at, run.period), at))
    moved = Run(start, run.period, (end - start) // run.period)
    return moved if moved.count > 1 and worth(moved) else run

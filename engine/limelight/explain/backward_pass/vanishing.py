"""Which gradients have vanished: small ones behind which, on the way back, all are small.

A gradient that is zero by mathematics is none of them: that of a bias before a normalisation, of the keys' bias in an
attention, of a recurrent matrix at the first step. Those lie aside of a way that goes on: they are for one source, and
what was made from the same gradient beside them is not small.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from limelight.graph.ir import Value

VANISHED: Final = 1e-6
"""Of the largest before it on its way: by the root of the mean square, and by the norm, as a mean makes many of few."""


class Size(NamedTuple):
    """How large a gradient is."""

    rms: float
    norm: float


def vanished(
    sizes: Mapping[Value, Size], parents: Mapping[Value, Collection[Value]], sources: Mapping[Value, set[int]]
) -> set[Value]:
    """The gradients that have vanished.

    Args:
        sizes: of the gradients, in the order in which they were made; those of the results are ones.
        parents: the gradients that each was made from.
        sources: of which sources a gradient is the whole, where it is.
    """
    return _Ways(sizes, parents, sources).vanished()


def whose(
    sizes: Collection[Value], parents: Mapping[Value, Collection[Value]], sources: Mapping[Value, set[int]]
) -> dict[Value, set[int]]:
    """The sources to whose gradients each one leads."""
    leads: dict[Value, set[int]] = {value: set(sources.get(value, ())) for value in sizes}
    for value in reversed(list(sizes)):
        for parent in parents[value]:
            leads[parent] |= leads[value]
    return leads


class _Ways:
    def __init__(
        self, sizes: Mapping[Value, Size], parents: Mapping[Value, Collection[Value]], sources: Mapping[Value, set[int]]
    ) -> None:
        self._sizes, self._parents = sizes, parents
        self._leads = whose(sizes, parents, sources)
        self._children: dict[Value, list[Value]] = {value: [] for value in sizes}
        for value in sizes:
            for parent in parents[value]:
                self._children[parent].append(value)
        self._small = self._small_ones()

    def vanished(self) -> set[Value]:
        found, aside, fading = set[Value](), set[Value](), self._fading()
        for value in self._sizes:
            if value not in self._small:
                continue
            if self._is_aside(value, aside):
                aside.add(value)
            elif value in fading:
                found.add(value)
        return found

    def _small_ones(self) -> set[Value]:
        small, most = set[Value](), dict[Value, Size]()
        for value, size in self._sizes.items():
            before = [Size(1.0, 1.0), *[most[parent] for parent in self._parents[value]]]
            rms, norm = (max(column) for column in zip(*before, strict=True))
            if size.rms < VANISHED * rms and size.norm < VANISHED * norm:
                small.add(value)
            finite = size if math.isfinite(size.norm) else Size(0.0, 0.0)  # else all behind would be small beside it
            most[value] = Size(max(rms, finite.rms), max(norm, finite.norm))
        return small

    def _fading(self) -> set[Value]:
        """The small ones behind which all are small; where one is added to another that is not, its way ends."""
        fading = set[Value]()
        for value in reversed(list(self._sizes)):
            alone = [child for child in self._children[value] if self._small.issuperset(self._parents[child])]
            if value in self._small and fading.issuperset(alone):
                fading.add(value)
        return fading

    def _is_aside(self, value: Value, aside: set[Value]) -> bool:
        """Whether a small gradient is for one source alone, and the way goes on beside it."""
        if len(self._leads[value]) > 1:
            return False
        return any(
            parent in aside or not self._small.issuperset(self._children[parent]) for parent in self._parents[value]
        )

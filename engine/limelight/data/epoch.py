"""Which pass over a dataset it is, and the random numbers of its stages in this pass.

A stage draws from Philox (Salmon et al. 2011) keyed by its seed, or else by the iterator's key and its place in the
pipeline, and by the numbers of the passes around it. Raw words are used throughout: their stream is a promise of
NumPy's, that of its distributions is not, and a saved position must mean the same order in every version.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Epoch(NamedTuple):
    """One pass over a stage's data.

    Args:
        key: what stages without a seed draw from; one number for each dataset.
        numbers: of the passes: of the iterator's first, then those of each `repeat` around the stage.
        place: the way down the pipeline to the stage.
    """

    key: int
    numbers: tuple[int, ...] = ()
    place: tuple[int, ...] = ()

    def below(self, branch: int = 0) -> Epoch:
        """The same pass for the stage that this one takes its elements from."""
        return self._replace(place=(*self.place, branch))

    def repeated(self, number: int) -> Epoch:
        """The `number`-th pass of a `repeat`."""
        return self._replace(numbers=(*self.numbers, number))

    def seeds(self, seed: int | None, reshuffle: bool = True) -> np.random.SeedSequence:
        """What the random numbers of this stage in this pass follow from."""
        numbers = self.numbers if reshuffle else ()
        if seed is None:
            return np.random.SeedSequence(self.key, spawn_key=(1, len(self.place), *self.place, *numbers))
        return np.random.SeedSequence(seed, spawn_key=(0, *numbers))


class Words:
    """Raw 64-bit words of a seed, from the `at`-th on."""

    def __init__(self, seeds: np.random.SeedSequence, at: int = 0) -> None:
        self._bits = np.random.Philox(seeds)
        self._bits.advance(at // 4)  # by blocks of four words
        if at % 4:
            self._bits.random_raw(at % 4)

    def below(self, n: int) -> int:
        """A number from 0 to `n` - 1, by one word."""
        word: int = self._bits.random_raw()
        return word % n

    def permutation(self, n: int) -> np.ndarray[Any, Any]:
        """The numbers from 0 to `n` - 1 in random order: 16 bytes for each while it is made, 8 afterwards."""
        return np.argsort(self._bits.random_raw(n), kind="stable")

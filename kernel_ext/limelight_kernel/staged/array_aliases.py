"""Arrays of NumPy's that show the same memory, as far as a cell reaches them.

While a cell is traced, a stand-in has what the code does to an array of the inputs. What else shows the same memory, an
argument of a partial function, a default, an attribute of a module, is the array itself: it sees what becomes of the
input after the run alone, and what the code does to it the stand-in does not see. Both are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

_MOST_WORK: Final = 10_000
"""Solutions that are tried to find out whether two arrays overlap: some 0.1 ms."""


class Reached(NamedTuple):
    """An array, and the way to it, as code."""

    path: str
    array: np.ndarray[Any, Any]


class Alias(NamedTuple):
    """What shows memory of an input, reached in another way, with a copy of what it held."""

    own: Reached
    other: Reached
    before: np.ndarray[Any, Any]

    @property
    def is_changed(self) -> bool:
        return self.before.tobytes() != self.other.array.tobytes()

    def put_back(self) -> None:
        """Has it hold what it held."""
        self.other.array[...] = self.before


class ByMemory:
    """Arrays by what owns their memory, since only those of one owner have any in common."""

    def __init__(self, arrays: Iterable[Reached]) -> None:
        self._of: dict[int | None, list[Reached]] = {}
        for one in arrays:
            self._of.setdefault(_owner(one.array), []).append(one)

    def sharing(self, path: str, array: Any) -> Iterator[Reached]:
        """Those that share memory with an array, but for the one at this path."""
        owner = _owner(array)
        groups = self._of.values() if owner is None else [self._of.get(owner, []), self._of.get(None, [])]
        for one in (one for group in groups for one in group):
            if one.path != path and overlap(one.array, array):
                yield one


def aliases(inputs: Sequence[Reached], others: Iterable[Reached]) -> list[Alias]:
    """What shows memory of the inputs besides them."""
    known, own = ByMemory(inputs), {one.path for one in inputs}
    return [
        Alias(one, other, other.array.copy())
        for other in others
        if other.path not in own
        for one in known.sharing(other.path, other.array)
    ]


def overlap(x: Any, y: Any) -> bool:
    """Whether arrays have an element in common; yes where that is too hard to say."""
    try:
        return np.shares_memory(x, y, max_work=_MOST_WORK)  # type: ignore[arg-type]  # NumPy's types know two numbers
    except np.exceptions.TooHardError:
        return True


def _owner(array: Any) -> int | None:
    """The id of the array that an array is a view of, or its own; None where that is no array of NumPy's."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return id(array) if array.base is None else None

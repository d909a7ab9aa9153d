"""The contents of a table: rows of one array, and where the row of each key is."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from limelight import forking


class Rows:
    """Values by key. Each method happens at once, whatever other threads do.

    Args:
        shape: that of one value.
        dtype: its dtype.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.lock = threading.RLock()
        self.changes = 0
        self._places: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._array = np.empty((0, *shape), dtype)
        _alive.add(self)

    def __len__(self) -> int:
        return len(self._places)

    def put(self, keys: Sequence[Hashable], values: np.ndarray[Any, Any]) -> None:
        """Sets one value for each key; of equal keys the last one counts."""
        with self.lock:
            self.changes += 1
            places: list[Any] = list(map(self._places.get, keys))
            fresh: dict[Hashable, int] = {}
            if None in places:
                new = dict.fromkeys([key for key, place in zip(keys, places, strict=True) if place is None])
                self._grow(len(new) - len(self._free))
                fresh = dict(zip(new, reversed(self._free[-len(new) :]), strict=True))
                if len(fresh) == len(keys):  # all are new, and each is there once: the quickest way to build a table
                    places = list(fresh.values())
                else:
                    places = [fresh[key] if place is None else place for key, place in zip(keys, places, strict=True)]
            self._array[places] = values  # of an index that is there twice the last value counts
            if fresh:  # after the values, lest an interrupt leave a key without one, or a place with two keys
                del self._free[-len(fresh) :]
                self._places.update(fresh)

    def _grow(self, by: int) -> None:
        if by <= 0:
            return
        before = len(self._array)
        after = max(2 * before, before + by, 8)
        array = np.empty((after, *self._array.shape[1:]), self._array.dtype)
        array[:before] = self._array
        self._array = array
        self._free = [*range(after - 1, before - 1, -1), *self._free]

    def get(self, keys: Sequence[Hashable], default: Any) -> tuple[np.ndarray[Any, Any], list[Any]]:
        """The values of keys, `default` for those that are not there; without one, these keys."""
        with self.lock:
            found = np.fromiter(map(self._places.get, keys, itertools.repeat(-1)), np.intp, len(keys))
            missing = found < 0
            if not missing.any():
                return self._array[found], []
            values = np.empty((len(keys), *self._array.shape[1:]), self._array.dtype)
            values[~missing] = self._array[found[~missing]]
            if default is not None:
                values[missing] = default
        return values, [keys[i] for i in np.flatnonzero(missing).tolist()] if default is None else []

    def drop(self, keys: Iterable[Hashable]) -> None:
        """Removes keys; what is not there is no error."""
        with self.lock:
            self.changes += 1
            for key in keys:
                place = self._places.pop(key, None)
                if place is not None:
                    self._free.append(place)

    def has(self, keys: Sequence[Hashable]) -> np.ndarray[Any, Any]:
        with self.lock:
            return np.fromiter(map(self._places.__contains__, keys), np.bool_, len(keys))

    def all(self) -> tuple[list[Any], np.ndarray[Any, Any]]:
        """All keys, in the order in which they came, and their values."""
        with self.lock:
            return list(self._places), self._array[list(self._places.values())]

    def replace(self, keys: Sequence[Hashable], values: np.ndarray[Any, Any]) -> None:
        """Takes these keys and values instead of all that there are."""
        with self.lock:
            self.changes += 1
            self._array = np.array(values)
            self._places, self._free = dict(zip(keys, range(len(keys)), strict=True)), []


_alive: Final[weakref.WeakSet[Rows]] = weakref.WeakSet()


def _renew_locks() -> None:
    """In a forked process: whoever held a lock is not in it."""
    for rows in _alive:
        rows.lock = threading.RLock()


forking.in_child(_renew_locks)

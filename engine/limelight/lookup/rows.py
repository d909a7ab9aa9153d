"""The contents of a table: rows of one array, and where the row of each key is."""

from __future__ import annotations

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
            new = len(set(keys) - self._places.keys()) - len(self._free)
            if new > 0:
                self._grow(new)
            for key, value in zip(keys, values, strict=True):
                place = self._places.get(key)
                if place is not None:
                    self._array[place] = value
                else:
                    place = self._free.pop()
                    self._array[place] = value  # before its key is there, lest an interrupt leave a key without one
                    self._places[key] = place

    def _grow(self, by: int) -> None:
        before = len(self._array)
        after = max(2 * before, before + by, 8)
        array = np.empty((after, *self._array.shape[1:]), self._array.dtype)
        array[:before] = self._array
        self._array = array
        self._free = [*range(after - 1, before - 1, -1), *self._free]

    def get(self, keys: Sequence[Hashable], default: Any) -> tuple[np.ndarray[Any, Any], list[Any]]:
        """The values of keys, `default` for those that are not there; and these keys."""
        with self.lock:
            places = [self._places.get(key, -1) for key in keys]
            found = np.array(places, np.intp)
            missing = found < 0
            if not missing.any():
                return self._array[found], []
            values = np.empty((len(keys), *self._array.shape[1:]), self._array.dtype)
            values[~missing] = self._array[found[~missing]]
            if default is not None:
                values[missing] = default
        return values, [key for key, place in zip(keys, places, strict=True) if place < 0]

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
            return np.array([key in self._places for key in keys], np.bool_)

    def all(self) -> tuple[list[Any], np.ndarray[Any, Any]]:
        """All keys, in the order in which they came, and their values."""
        with self.lock:
            return list(self._places), self._array[list(self._places.values())]

    def replace(self, keys: Sequence[Hashable], values: np.ndarray[Any, Any]) -> None:
        """Takes these keys and values instead of all that there are."""
        with self.lock:
            self.changes += 1
            self._array = np.array(values)
            self._places, self._free = {key: i for i, key in enumerate(keys)}, []


_alive: Final[weakref.WeakSet[Rows]] = weakref.WeakSet()


def _renew_locks() -> None:
    """In a forked process: whoever held a lock is not in it."""
    for rows in _alive:
        rows.lock = threading.RLock()


forking.in_child(_renew_locks)

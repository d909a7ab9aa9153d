"""Runs without effects: on copies of storages and generators, with what Python code changes put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from limelight.core import heap
from limelight.core.storage import Storage
from limelight.ops.random._draws import Source as Draws


class _Private(Storage):
    """The storage of a variable that is not there: nobody is told when it changes."""

    __slots__ = ()

    def set(self, array: Any) -> Any:
        self.array = array
        return array


def private(payload: Any, copies: dict[int, Any]) -> Any:
    """`payload`, or for what can change a copy: the same one for the same."""
    if isinstance(payload, Storage):
        fields = (payload.array, payload.device, payload.spec, payload.name, payload.uid)
        return copies.setdefault(id(payload), _Private(*fields))
    if isinstance(payload, Draws):
        return copies.setdefault(id(payload), Draws(payload.array))
    return payload


K = TypeVar("K", bound=type)
_stateful: Final[dict[type, str]] = {}
"""The attribute that the construction of each sets last."""


def put_back(*, last_set: str) -> Callable[[K], K]:
    """A class decorator: objects of this class are given back what they had, by their `__limelight_snapshot__`.

    It returns a function that does so, for iterators over data, say, which lie above this room. `last_set` is the
    attribute that the class's constructor sets last.
    """

    def registered(kind: K) -> K:
        _stateful[kind] = last_set
        return kind

    return registered


@contextmanager
def restored() -> Iterator[None]:
    """Gives all state back what it had, variables and generators first: Python code inside a graph may reach any."""
    alive: list[Any] = list(heap.living({Storage: "uid", Draws: "_forks", **_stateful}))
    before = [(x, x.array) for x in alive if isinstance(x, (Storage, Draws))]
    snapshots = [x.__limelight_snapshot__() for x in alive if not isinstance(x, (Storage, Draws))]
    try:
        yield
    finally:
        for x, array in before:
            if isinstance(x, Draws):
                x.set(array)
            elif x.array is not array:
                x.array = array
        for give_back in snapshots:
            give_back()

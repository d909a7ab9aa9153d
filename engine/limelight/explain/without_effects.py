"""Runs without effects: on copies of storages and generators, with what Python code changes put back."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from limelight.core.variable import Storage
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


@contextmanager
def restored() -> Iterator[None]:
    """Gives all variables and generators back what they had: Python code inside a graph may reach any of them."""
    alive = [x for x in gc.get_objects() if isinstance(x, (Storage, Draws))]
    before = [(x, x.array) for x in alive]
    try:
        yield
    finally:
        for x, array in before:
            if isinstance(x, Draws):
                x.set(array)
            elif x.array is not array:
                x.array = array

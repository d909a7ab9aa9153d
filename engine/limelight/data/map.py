"""Stages that run a function of the user's on each element: `map` and `filter`.

The function runs eagerly, outside of every trace and tape. With a seed it is also given a generator of random numbers,
which depends on the seed, the pass and the number of the element: so what it draws is the same wherever a run was
resumed, and on whichever thread it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limelight.data.element import Element, element_of, value_of
from limelight.data.epoch import Epoch
from limelight.data.sources import called
from limelight.data.stage import END, Counted, Cursor, End, Stage, State, View
from limelight.errors import ArgumentError
from limelight.ops.random._draws import state_from
from limelight.random import Generator
from limelight.random.stream import from_state
from limelight.user_code.given_functions import call_user_function


def call(op: str, function: Callable[..., Any], element: Element, *further: Any) -> Any:
    """`function` of an element: of the parts of a plain tuple, of anything else as it is."""
    value = value_of(element)
    given = value if type(value) is tuple else (value,)
    gets = "the parts of each element, which is a tuple" if type(value) is tuple else "each element"
    if further:
        gets += ", and a generator of random numbers"
    return called(call_user_function, op, "the function", gets, function, *given, *further)


class Map(Stage):
    """The results of a function of each element."""

    name = "map"

    def __init__(self, source: Stage, function: Callable[..., Any], seed: int | None) -> None:
        super().__init__(source)
        if not callable(function):
            raise ArgumentError(f"map: needs a function of an element, got {type(function).__name__}")
        self.function = function
        self.seed = seed
        self.settings = getattr(function, "__name__", type(function).__name__)
        if seed is not None:
            self.identity = f"seed={seed}"
            self.settings += f", {self.identity}"

    @property
    def size(self) -> float | None:
        return self.sources[0].size

    def view(self, epoch: Epoch) -> View | None:
        view = self.sources[0].view(epoch.below())
        return None if view is None else _Mapped(view, self, epoch)

    def cursor(self, epoch: Epoch) -> Cursor:
        view = self.view(epoch)
        return super().cursor(epoch) if view is not None else _Mapping(self, epoch)

    def key(self, epoch: Epoch) -> Any:
        """What the draws of a pass follow from, two words; None without a seed."""
        if self.seed is None:
            return None
        return np.random.SeedSequence(self.seed, spawn_key=epoch.numbers).generate_state(2, np.uint64)

    def result(self, element: Element, key: Any, number: int) -> Element:
        """What the function makes of the element of this number: its draws are a lane of the pass's generator."""
        draws = () if key is None else (from_state(Generator, state_from(key, number)),)
        return element_of(call("map", self.function, element, *draws), "map")


class _Mapped(View):
    def __init__(self, view: View, stage: Map, epoch: Epoch) -> None:
        super().__init__(view.size)
        self._view, self._stage, self._key = view, stage, stage.key(epoch)

    def item(self, i: int) -> Element:
        return self._stage.result(self._view.item(i), self._key, i)


class _Mapping(Counted):
    def __init__(self, stage: Map, epoch: Epoch) -> None:
        self._source = stage.sources[0].cursor(epoch.below())
        self._stage, self._key = stage, stage.key(epoch)
        self._at = 0

    def next(self) -> Element | End:
        element = self._source.next()
        if isinstance(element, End):
            return END
        self._at += 1
        return self._stage.result(element, self._key, self._at - 1)

    def skip(self, n: int) -> None:
        self._source.skip(n)
        self._at += n


class Filter(Stage):
    """The elements of which a function says True."""

    name = "filter"
    keeps_elements = True

    def __init__(self, source: Stage, predicate: Callable[..., Any]) -> None:
        super().__init__(source)
        if not callable(predicate):
            raise ArgumentError(f"filter: needs a function of an element, got {type(predicate).__name__}")
        self.predicate = predicate
        self.settings = getattr(predicate, "__name__", type(predicate).__name__)

    @property
    def size(self) -> float | None:
        return 0 if self.sources[0].size == 0 else None

    def cursor(self, epoch: Epoch) -> Cursor:
        return _Filtering(self.sources[0].cursor(epoch.below()), self.predicate)


class _Filtering(Cursor):
    def __init__(self, source: Cursor, predicate: Callable[..., Any]) -> None:
        self._source, self._predicate = source, predicate

    def next(self) -> Element | End:
        while not isinstance(element := self._source.next(), End):
            if called(bool, call("filter", self._predicate, element)):
                return element
        return END

    def state(self) -> State:
        return self._source.state()

    def restore(self, state: State) -> None:
        self._source.restore(state)

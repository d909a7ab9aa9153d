"""What a pipeline is made of: stages, the cursors that go along them, and views of those that know each element.

A stage is a description, and never changes. A cursor gives its elements one after the other and can say where it is, in
plain Python and arrays; set there, a new cursor gives exactly the elements that would have followed. A stage whose
elements can be had by number has a view as well, and needs no cursor of its own: a number says where it is.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from limelight.core.nest import Structure
from limelight.core.spec import TensorSpec
from limelight.data.element import Element
from limelight.data.epoch import Epoch

State = Any
"""Plain Python (dictionaries, lists, numbers, strings, None) with NumPy arrays: what a position is saved as."""


class End:
    """The type of `END`."""

    def __repr__(self) -> str:
        return "END"


Specs = tuple[Structure, tuple[TensorSpec | None, ...]]
"""The types of elements: their structure, and at each leaf the type, None for texts."""
END: Final = End()
"""What a cursor gives after its last element, again and again. No exception: one may come out of a user's code."""
UNKNOWN: Final = None
ENDLESS: Final = math.inf


class Cursor:
    """Goes along the elements of a stage, once."""

    def next(self) -> Element | End:
        """The next element."""
        raise NotImplementedError

    def skip(self, n: int) -> None:
        """Leaves out the next `n` elements."""
        for _ in range(n):
            self.next()

    def state(self) -> State:
        """Where it is: before the element that `next` would give."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        """Goes to where another cursor of such a stage was. To be called before `next`."""
        raise NotImplementedError


class Counted(Cursor):
    """Goes along another cursor, and counts its elements."""

    _source: Cursor
    _at: int

    def state(self) -> State:
        return {"at": self._at, "source": self._source.state()}

    def restore(self, state: State) -> None:
        self._at = int(state["at"])
        self._source.restore(state["source"])


class View:
    """The elements of a stage in one pass, by number.

    Args:
        size: how many there are.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def item(self, i: int) -> Element:
        """The element number `i`."""
        raise NotImplementedError

    def rows(self, places: np.ndarray[Any, Any] | slice) -> Element | None:
        """Several elements stacked along a new first axis, where that can be had at once; else None."""
        return None


class Stage:
    """One step of a pipeline; `name` and `settings` are how a `Dataset` shows it.

    Args:
        sources: the stages that it takes its elements from.
    """

    name = ""
    settings = ""
    identity = ""
    """Of the settings those without which a saved position means nothing."""

    keeps_elements = False
    """Whether its elements are some of its source's, as they are."""

    def __init__(self, *sources: Stage) -> None:
        self.sources = sources

    @property
    def size(self) -> float | None:
        """The number of elements of a pass: a whole number, ENDLESS, or UNKNOWN."""
        return UNKNOWN

    @property
    def ragged(self) -> frozenset[int]:
        """Sizes of batches, the last of which may be smaller."""
        return frozenset().union(*[source.ragged for source in self.sources])

    @property
    def uses_key(self) -> bool:
        """Whether its elements or their order depend on the iterator's key: whether a stage has no seed of its own."""
        return any(source.uses_key for source in self.sources)

    @property
    def declared(self) -> Specs | None:
        """What was declared of the types of the elements; steps that leave them as they are hand it on."""
        return self.sources[0].declared if self.keeps_elements else None

    def view(self, epoch: Epoch) -> View | None:
        """The elements of a pass by number; None where they can only be had in order."""
        return None

    def cursor(self, epoch: Epoch) -> Cursor:
        """A new cursor at the start of a pass."""
        view = self.view(epoch)
        assert view is not None, f"{type(self).__name__} has neither a view nor a cursor"
        return IndexCursor(view)

    def __str__(self) -> str:
        before = f"{self.sources[0]}." if len(self.sources) == 1 else ""
        return f"{before}{self.name}({self.settings})"

    def signature(self) -> str:
        """The pipeline as far as a saved position depends on it."""
        inner = ", ".join([source.signature() for source in self.sources])
        return f"{self.name}({', '.join(filter(None, [inner, self.identity]))})"


class IndexCursor(Cursor):
    """Goes along a view: its position is a number."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._at = 0

    def next(self) -> Element | End:
        if self._at >= self._view.size:
            return END
        element = self._view.item(self._at)
        self._at += 1
        return element

    def skip(self, n: int) -> None:
        self._at += n

    def state(self) -> State:
        return self._at

    def restore(self, state: State) -> None:
        self._at = int(state)


def places(indices: np.ndarray[Any, Any] | slice, size: int) -> np.ndarray[Any, Any]:
    """A slice of places as the places themselves."""
    return np.arange(size)[indices] if isinstance(indices, slice) else indices

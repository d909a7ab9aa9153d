"""Stages that choose, number, pair or repeat elements: `take`, `skip`, `enumerate`, `zip`, `repeat`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from limelight.core import shapes
from limelight.core.nest import Structure
from limelight.data.element import Element
from limelight.data.epoch import Epoch
from limelight.data.stage import END, ENDLESS, Counted, Cursor, End, Stage, State, View, places
from limelight.errors import ArgumentError


def _count(op: str, n: Any) -> int:
    count = shapes.whole(op, "the number of elements", n)
    if count < 0:
        raise ArgumentError(f"{op}: the number of elements must be at least 0, got {count}")
    return count


class Part(Stage):
    """The elements from number `start` on, at most `most` of them: `take` and `skip`."""

    keeps_elements = True

    def __init__(self, source: Stage, name: str, start: int, most: float) -> None:
        super().__init__(source)
        self.name = name
        self.start, self.most = start, most
        self.settings = self.identity = str(most if name == "take" else start)

    @staticmethod
    def taking(source: Stage, n: Any) -> Part:
        return Part(source, "take", 0, _count("take", n))

    @staticmethod
    def skipping(source: Stage, n: Any) -> Part:
        return Part(source, "skip", _count("skip", n), ENDLESS)

    @property
    def size(self) -> float | None:
        n = self.sources[0].size
        return None if n is None else max(0, min(n - self.start, self.most))

    def view(self, epoch: Epoch) -> View | None:
        view = self.sources[0].view(epoch.below())
        return None if view is None else _Section(view, self.start, int(max(0, min(view.size - self.start, self.most))))

    def cursor(self, epoch: Epoch) -> Cursor:
        view = self.view(epoch)
        if view is not None:
            return super().cursor(epoch)
        return _Counted(self.sources[0].cursor(epoch.below()), self.start, self.most)


class _Section(View):
    def __init__(self, view: View, start: int, size: int) -> None:
        super().__init__(size)
        self._view, self._start = view, start

    def item(self, i: int) -> Element:
        return self._view.item(self._start + i)

    def rows(self, indices: np.ndarray[Any, Any] | slice) -> Element | None:
        if isinstance(indices, slice):
            start, stop, _ = indices.indices(self.size)
            return self._view.rows(slice(self._start + start, self._start + stop))
        return self._view.rows(indices + self._start)


class _Counted(Counted):
    def __init__(self, source: Cursor, start: int, most: float) -> None:
        self._source, self._start, self._most = source, start, most
        self._at = 0  # elements of the source that were gone past

    def next(self) -> Element | End:
        if self._at < self._start:
            self._source.skip(self._start - self._at)
            self._at = self._start
        if self._at - self._start >= self._most:
            return END
        element = self._source.next()
        self._at += not isinstance(element, End)
        return element


class Enumerate(Stage):
    """Pairs of a number, from `start` on, and an element."""

    name = "enumerate"

    def __init__(self, source: Stage, start: int) -> None:
        super().__init__(source)
        self.start = start
        self.settings = str(start) if start else ""

    @property
    def size(self) -> float | None:
        return self.sources[0].size

    def view(self, epoch: Epoch) -> View | None:
        view = self.sources[0].view(epoch.below())
        return None if view is None else _Numbered(view, self)

    def cursor(self, epoch: Epoch) -> Cursor:
        view = self.view(epoch)
        return super().cursor(epoch) if view is not None else _Numbering(self.sources[0].cursor(epoch.below()), self)

    def pair(self, number: Any, element: Element) -> Element:
        """The element with a number before it, or a batch of them with their numbers."""
        leaf = np.asarray(number + self.start, np.int64)
        structure = Structure(tuple, (0, 1), (Structure(None, (), ()), element.structure))
        return Element(structure, [leaf, *element.leaves])


class _Numbered(View):
    def __init__(self, view: View, stage: Enumerate) -> None:
        super().__init__(view.size)
        self._view, self._stage = view, stage

    def item(self, i: int) -> Element:
        return self._stage.pair(i, self._view.item(i))

    def rows(self, indices: np.ndarray[Any, Any] | slice) -> Element | None:
        rows = self._view.rows(indices)
        return None if rows is None else self._stage.pair(places(indices, self.size), rows)


class _Numbering(Counted):
    def __init__(self, source: Cursor, stage: Enumerate) -> None:
        self._source, self._stage = source, stage
        self._at = 0

    def next(self) -> Element | End:
        element = self._source.next()
        if isinstance(element, End):
            return END
        self._at += 1
        return self._stage.pair(self._at - 1, element)

    def skip(self, n: int) -> None:
        self._source.skip(n)
        self._at += n


class Zip(Stage):
    """Elements of several stages side by side, to the end of the shortest.

    Args:
        sources: the stages.
        structure: how their elements are put together: a structure with one leaf for each.
    """

    name = "zip"

    def __init__(self, sources: list[Stage], structure: Structure) -> None:
        super().__init__(*sources)
        self.structure = structure

    @property
    def size(self) -> float | None:
        sizes = [source.size for source in self.sources]
        if 0 in sizes:
            return 0
        return None if None in sizes else min([n for n in sizes if n is not None])

    def __str__(self) -> str:
        return f"zip({', '.join(map(str, self.sources))})"

    def view(self, epoch: Epoch) -> View | None:
        views = [source.view(epoch.below(i)) for i, source in enumerate(self.sources)]
        known = [view for view in views if view is not None]
        return _SideBySide(known, self) if len(known) == len(views) else None

    def cursor(self, epoch: Epoch) -> Cursor:
        if self.view(epoch) is not None:
            return super().cursor(epoch)
        return _Zipping([source.cursor(epoch.below(i)) for i, source in enumerate(self.sources)], self)

    def joined(self, elements: list[Element]) -> Element:
        """One element of several."""
        feed = iter(elements)
        return Element(_filled(self.structure, feed), [leaf for element in elements for leaf in element.leaves])


def _filled(structure: Structure, feed: Any) -> Structure:
    """`structure` with the structures of the next elements at its leaves."""
    if structure.kind is None:
        inner: Structure = next(feed).structure
        return inner
    return Structure(structure.kind, structure.keys, tuple([_filled(child, feed) for child in structure.children]))


class _SideBySide(View):
    def __init__(self, views: list[View], stage: Zip) -> None:
        super().__init__(min(view.size for view in views))
        self._views, self._stage = views, stage

    def item(self, i: int) -> Element:
        return self._stage.joined([view.item(i) for view in self._views])

    def rows(self, indices: np.ndarray[Any, Any] | slice) -> Element | None:
        rows = [view.rows(places(indices, self.size)) for view in self._views]
        known = [x for x in rows if x is not None]
        return self._stage.joined(known) if len(known) == len(rows) else None


class _Zipping(Cursor):
    def __init__(self, sources: list[Cursor], stage: Zip) -> None:
        self._sources, self._stage = sources, stage
        self._ended = False

    def next(self) -> Element | End:
        elements: list[Element] = []
        for source in () if self._ended else self._sources:
            element = source.next()
            if isinstance(element, End):
                self._ended = True
                return END
            elements.append(element)
        return END if self._ended else self._stage.joined(elements)

    def skip(self, n: int) -> None:
        for source in self._sources:
            source.skip(n)

    def state(self) -> State:
        return [source.state() for source in self._sources]

    def restore(self, state: State) -> None:
        for source, position in zip(self._sources, state, strict=True):
            source.restore(position)


class Repeat(Stage):
    """The elements again and again: `times` passes, or without end, which is a pass that gives nothing."""

    name = "repeat"
    keeps_elements = True

    def __init__(self, source: Stage, times: int | None) -> None:
        super().__init__(source)
        self.times = ENDLESS if times is None else shapes.whole("repeat", "the number of passes", times)
        if self.times < 0:
            raise ArgumentError(f"repeat: the number of passes must be at least 0, or None for no end, got {times}")
        self.settings = "" if times is None else str(times)

    @property
    def size(self) -> float | None:
        n = self.sources[0].size
        if n == 0 or self.times == 0:
            return 0
        if n is None:
            return None
        return ENDLESS if math.inf in (n, self.times) else int(n * self.times)

    def cursor(self, epoch: Epoch) -> Cursor:
        return _Repeating(self.sources[0], self.times, epoch)


class _Repeating(Cursor):
    def __init__(self, source: Stage, times: float, epoch: Epoch) -> None:
        self._stage, self._times, self._epoch = source, times, epoch
        self._begin(0)

    def _begin(self, number: int) -> None:
        self._number = number
        self._source = self._stage.cursor(self._epoch.repeated(number).below())
        self._any = False  # whether this pass is known to give an element

    def next(self) -> Element | End:
        if not self._times:
            return END
        while isinstance(element := self._source.next(), End):
            if self._number + 1 >= self._times or (self._times == ENDLESS and self._is_empty()):
                return END
            self._begin(self._number + 1)
        self._any = True
        return element

    def _is_empty(self) -> bool:
        """Whether this pass gives nothing from its start: all that follow might be so, without end."""
        if self._any or self._stage.size is not None:
            return not self._any and self._stage.size == 0
        return isinstance(self._stage.cursor(self._epoch.repeated(self._number).below()).next(), End)

    def state(self) -> State:
        return {"epoch": self._number, "source": self._source.state()}

    def restore(self, state: State) -> None:
        self._begin(int(state["epoch"]))
        self._source.restore(state["source"])

"""`cache`: the elements of the first pass, kept in memory for all others.

They are kept by the dataset, for all its iterators. What is not there yet is made when it is asked for, as after a
position was restored in another process.
"""

from __future__ import annotations

from typing import Any, Final

from limelight.data.element import Element
from limelight.data.epoch import Epoch
from limelight.data.fork_safe_locks import lock_of
from limelight.data.stage import END, Cursor, End, IndexCursor, Stage, View

_FIRST: Final = (0,)
"""The numbers of the pass whose elements are kept."""


class Cache(Stage):
    """The elements of a source, each made once."""

    name = "cache"
    keeps_elements = True

    def __init__(self, source: Stage) -> None:
        super().__init__(source)
        self.lock = lock_of(self, "lock")
        self._key: int | None = None  # of what is kept
        self._forget(0)

    @property
    def size(self) -> float | None:
        return self.sources[0].size

    def view(self, epoch: Epoch) -> View | None:
        first = Epoch(epoch.key, _FIRST, epoch.place)
        view = self.sources[0].view(first.below())
        return None if view is None else _Kept(view, self, first)

    def cursor(self, epoch: Epoch) -> Cursor:
        view = self.view(epoch)
        if view is None:
            view = _Filled(self, Epoch(epoch.key, _FIRST, epoch.place))
        return IndexCursor(view)

    def __reduce__(self) -> Any:
        return (Cache, self.sources)

    def _forget(self, key: int) -> None:
        self._key = key
        self._by_number: dict[int, Element] = {}
        self._source: Cursor | None = None
        self._ended = False

    def kept(self, epoch: Epoch) -> dict[int, Element]:
        """What is there for a pass of this key; to be asked for and used under the lock."""
        if self._key != epoch.key and self.uses_key:
            self._forget(epoch.key)
        return self._by_number

    def read_on(self, epoch: Epoch) -> bool:
        """Keeps one more element of a source that has no numbers; False at its end."""
        if self._ended:
            return False
        source, self._source = self._source, None  # put back unless something is raised: then a new one is made
        if source is None:
            source = self.sources[0].cursor(epoch.below())
            source.skip(len(self._by_number))
        element = source.next()
        self._ended = isinstance(element, End)
        if not isinstance(element, End):
            self._by_number[len(self._by_number)] = element
        self._source = source
        return not self._ended


class _Kept(View):
    def __init__(self, view: View, stage: Cache, epoch: Epoch) -> None:
        super().__init__(view.size)
        self._view, self._stage, self._epoch = view, stage, epoch

    def item(self, i: int) -> Element:
        with self._stage.lock:
            kept = self._stage.kept(self._epoch)
            if i not in kept:
                kept[i] = self._view.item(i)
            return kept[i]


class _Filled(View):
    """A view whose size shows only when the source has ended."""

    def __init__(self, stage: Cache, epoch: Epoch) -> None:
        self._stage, self._epoch = stage, epoch

    @property
    def size(self) -> Any:  # type: ignore[override]  # as far as is known
        return float("inf")

    def item(self, i: int) -> Any:
        with self._stage.lock:
            kept = self._stage.kept(self._epoch)
            while i >= len(kept):
                if not self._stage.read_on(self._epoch):
                    return END
            return kept[i]

"""`batch`: several elements stacked along a new first axis, and what becomes of a last one that is not full."""

from __future__ import annotations

from typing import Any

from limelight.core import shapes
from limelight.data.element import Element, padded, stacked
from limelight.data.epoch import Epoch
from limelight.data.stage import END, Cursor, End, Stage, State, View
from limelight.errors import ArgumentError

_LAST = ("keep", "drop", "pad")


class Batch(Stage):
    """Batches of `rows` elements."""

    name = "batch"

    def __init__(self, source: Stage, rows: int, last: str, padding: Any) -> None:
        super().__init__(source)
        self.rows = shapes.whole("batch", "the number of elements of a batch", rows)
        if self.rows < 1:
            raise ArgumentError(f"batch: a batch has at least one element, got {rows}")
        if last not in _LAST:
            raise ArgumentError(f'batch: last must be "keep", "drop" or "pad", got {last!r}')
        self.last, self.padding = last, padding
        self.identity = str(self.rows)
        self.settings = str(rows) if last == "keep" else f'{rows}, last="{last}"'

    @property
    def size(self) -> float | None:
        n = self.sources[0].size
        if n is None or n == float("inf"):
            return n
        return int(n // self.rows) if self.last == "drop" else int(-(-n // self.rows))

    @property
    def ragged(self) -> frozenset[int]:
        n = self.sources[0].size
        full = self.last != "keep" or (n is not None and (n == float("inf") or n % self.rows == 0))
        return super().ragged if full else super().ragged | {self.rows}

    def view(self, epoch: Epoch) -> View | None:
        view = self.sources[0].view(epoch.below())
        return None if view is None else _Batched(view, self)

    def cursor(self, epoch: Epoch) -> Cursor:
        view = self.view(epoch)
        return super().cursor(epoch) if view is not None else _Batching(self.sources[0].cursor(epoch.below()), self)

    def whole(self, batch: Element) -> Element:
        """A batch, filled up where that was asked for."""
        n = len(batch.leaves[0]) if batch.leaves else self.rows
        return padded(batch, self.rows, self.padding) if n < self.rows and self.last == "pad" else batch


class _Batched(View):
    def __init__(self, view: View, stage: Batch) -> None:
        size = view.size // stage.rows if stage.last == "drop" else -(-view.size // stage.rows)
        super().__init__(size)
        self._view, self._stage = view, stage

    def item(self, i: int) -> Element:
        start = i * self._stage.rows
        stop = min(start + self._stage.rows, self._view.size)
        batch = self._view.rows(slice(start, stop))
        if batch is None:
            batch = stacked([self._view.item(k) for k in range(start, stop)])
        return self._stage.whole(batch)


class _Batching(Cursor):
    def __init__(self, source: Cursor, stage: Batch) -> None:
        self._source, self._stage = source, stage

    def next(self) -> Element | End:
        elements: list[Element] = []
        while len(elements) < self._stage.rows and not isinstance(element := self._source.next(), End):
            elements.append(element)
        if not elements or (len(elements) < self._stage.rows and self._stage.last == "drop"):
            return END
        return self._stage.whole(stacked(elements))

    def skip(self, n: int) -> None:
        self._source.skip(n * self._stage.rows)

    def state(self) -> State:
        return self._source.state()

    def restore(self, state: State) -> None:
        self._source.restore(state)

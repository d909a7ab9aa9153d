"""`shuffle`: elements in random order, which follows from a seed and the pass.

Where elements can be had by number, all are permuted (8 bytes for each). A stream goes through a window of so many
elements, of which one is drawn at a time and the next takes its place. A position in it is saved by the numbers of the
elements in the window and a position of the source from which they can be read again: so it is as small as a list of
numbers, whatever the elements are. Reading goes back to the oldest one in the window, mostly a few windows.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from limelight.core import shapes
from limelight.data.element import Element
from limelight.data.epoch import Epoch, Words
from limelight.data.stage import END, Cursor, End, Stage, State, View
from limelight.errors import ArgumentError


class Shuffle(Stage):
    """The elements in random order, another one in each pass."""

    name = "shuffle"
    keeps_elements = True

    def __init__(self, source: Stage, seed: int | None, window: int | None, reshuffle: bool) -> None:
        super().__init__(source)
        if seed is not None and (isinstance(seed, bool) or not hasattr(seed, "__index__") or int(seed) < 0):
            raise ArgumentError(f"shuffle: a seed is an int of at least 0, or None, got {seed!r}")
        if window is None and source.view(Epoch(0)) is None:
            raise ArgumentError(
                f"shuffle: the elements of {source} come one after the other, so they cannot all be permuted; write "
                "shuffle(window=1000) for a window of 1000, or shuffle before"
            )
        self.window = None if window is None else shapes.whole("shuffle", "the window", window)
        if self.window is not None and self.window < 1:
            raise ArgumentError(f"shuffle: a window has at least one element, got {window}")
        self.seed = None if seed is None else int(seed)
        self.reshuffle = reshuffle
        shown = {"seed": self.seed, "window": self.window, "reshuffle": None if reshuffle else False}
        self.settings = ", ".join(f"{name}={x}" for name, x in shown.items() if x is not None)
        self.identity = self.settings

    @property
    def size(self) -> float | None:
        return self.sources[0].size

    @property
    def uses_key(self) -> bool:
        return self.seed is None or super().uses_key

    def view(self, epoch: Epoch) -> View | None:
        view = None if self.window is not None else self.sources[0].view(epoch.below())
        return None if view is None else _Permuted(view, self._words(epoch))

    def cursor(self, epoch: Epoch) -> Cursor:
        return super().cursor(epoch) if self.window is None else _Window(self, epoch)

    def _words(self, epoch: Epoch, at: int = 0) -> Words:
        return Words(epoch.seeds(self.seed, self.reshuffle), at)


class _Permuted(View):
    def __init__(self, view: View, words: Words) -> None:
        super().__init__(view.size)
        self._view = view
        self._order: Any = None
        self._words = words

    @property
    def order(self) -> np.ndarray[Any, Any]:
        """The permutation, made when the first element is asked for."""
        if self._order is None:
            self._order = self._words.permutation(self.size)
        order: np.ndarray[Any, Any] = self._order
        return order

    def item(self, i: int) -> Element:
        return self._view.item(int(self.order[i]))

    def rows(self, places: np.ndarray[Any, Any] | slice) -> Element | None:
        return self._view.rows(self.order[places])


class _Window(Cursor):
    """`_held` are the elements of the window with their numbers; `_kept` positions of the source, with theirs."""

    def __init__(self, stage: Shuffle, epoch: Epoch) -> None:
        assert stage.window is not None
        self._size: int = stage.window
        self._stage, self._epoch = stage, epoch
        self._source = stage.sources[0].cursor(epoch.below())
        self._words = stage._words(epoch)
        self._held: list[tuple[int, Element]] = []
        self._kept: deque[tuple[int, State]] = deque()
        self._read = 0
        self._ended = False

    def next(self) -> Element | End:
        while len(self._held) < self._size and not self._ended:
            self._take()
        if not self._held:
            return END
        place = self._words.below(len(self._held))
        self._held[place], self._held[-1] = self._held[-1], self._held[place]
        return self._held.pop()[1]

    def _take(self) -> None:
        if self._read % self._size == 0:
            self._keep_position()
        element = self._source.next()
        if isinstance(element, End):
            self._ended = True
        else:
            self._held.append((self._read, element))
            self._read += 1

    def _keep_position(self) -> None:
        """Keeps where the source is, and of the positions so far those that the window needs."""
        oldest = min([number for number, _ in self._held], default=self._read)
        self._kept.append((self._read, self._source.state()))
        while len(self._kept) > 1 and self._kept[1][0] <= oldest:
            self._kept.popleft()

    def state(self) -> State:
        if not self._kept:
            self._keep_position()
        number, position = self._kept[0]
        held = np.array([number for number, _ in self._held], np.int64)
        return {"read": self._read, "held": held, "number": number, "source": position}

    def restore(self, state: State) -> None:
        numbers = [int(number) for number in state["held"]]
        self._source.restore(state["source"])
        self._kept = deque([(int(state["number"]), state["source"])])
        wanted, found = set(numbers), {}
        for number in range(int(state["number"]), int(state["read"])):
            if number % self._size == 0 and number > self._kept[-1][0]:
                self._kept.append((number, self._source.state()))
            element = self._source.next()
            if number in wanted and not isinstance(element, End):
                found[number] = element
        if len(found) != len(wanted):
            raise ArgumentError("shuffle: the source has other elements than when the position was saved")
        self._held = [(number, found[number]) for number in numbers]
        self._read = int(state["read"])
        self._words = self._stage._words(self._epoch, self._read - len(self._held))

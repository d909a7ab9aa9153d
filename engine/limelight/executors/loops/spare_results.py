"""The memory of a table's results, for what is no longer needed when they are written.

In a training step the new values of the parameters are written at the end: until then what the forward pass keeps for
the gradients may lie in their place.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Iterable, Mapping, Sequence

from limelight.executors.loops.arena import LARGE, Gaps
from limelight.executors.loops.blocks import Run
from limelight.executors.loops.control_marks import Mark
from limelight.executors.loops.instructions import Instruction
from limelight.executors.loops.layout import Buffer


class SpareResults:
    """Places for large buffers in results that are not written yet.

    Where loops are about, in which what is written later is also written before, there are none.

    Args:
        items: of the table.
        inside: the results, and the buffers that have the place of one.
        where: the places of these.
    """

    def __init__(
        self,
        items: Sequence[Instruction | Mark | Run],
        inside: Iterable[Buffer],
        where: Mapping[Buffer, tuple[int, int]],
    ) -> None:
        self._gaps: dict[int, Gaps] = {}
        self._begin: dict[int, int] = {}  # the first item for which the place of a result is needed
        self._in_order: list[tuple[int, int]] = []
        if any(type(item) is Mark and item.name == "begin" for item in items):
            return
        place_of = {buffer: where[buffer][0] for buffer in inside if buffer.nbytes >= LARGE}
        for i, item in enumerate(items):
            for x in item.operands:
                place = place_of.get(x.buffer)
                if place is not None and place not in self._begin:
                    self._begin[place] = i
                    self._gaps[place] = Gaps(x.buffer.nbytes)
                    insort(self._in_order, (i, place))

    def take(self, nbytes: int, last: int) -> tuple[int, int] | None:
        """Place and offset for a buffer that is needed up to an item; None where there are none.

        Results that are written soon are taken first, since others can hold what is needed longer.
        """
        for _, place in self._in_order[bisect(self._in_order, (last + 1,)) :]:
            offset = self._gaps[place].take(nbytes)
            if offset is not None:
                return place, offset
        return None

    def is_free(self, place: int, last: int) -> bool:
        """Whether a place is no result's, or one's that is written behind an item."""
        return place not in self._begin or last < self._begin[place]

    def give_back(self, nbytes: int, place: int, offset: int) -> None:
        """Says that nobody uses a buffer any more, which was taken."""
        self._gaps[place].give_back(nbytes, offset)

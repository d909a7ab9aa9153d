"""One piece of memory for all intermediates of a table: who lies where, and whose place is free again."""

from __future__ import annotations

from bisect import bisect
from typing import Final

ALIGNMENT: Final = 64
"""Of each buffer, in bytes: a line of the cache, and what vector instructions like."""
LARGE: Final = 1 << 15
"""Bytes of a buffer that may lie in a part of what others have left, or in what several have."""
_STEPS: Final = 8  # sizes are rounded up by at most an eighth, so that a freed place fits the next buffer


class Gaps:
    """What is free of a piece of memory. Buffers take the smallest gap that they fit into; neighbouring gaps are one.

    Args:
        nbytes: how much is free at first.
    """

    def __init__(self, nbytes: int = 0) -> None:
        self.list = [(0, nbytes)] if nbytes else []  # begin and end of each, in order

    def take(self, nbytes: int) -> int | None:
        """The offset of a new buffer; None where no gap is as large."""
        size = _aligned(nbytes)
        fitting = [(end - begin, i) for i, (begin, end) in enumerate(self.list) if end - begin >= size]
        if not fitting:
            return None
        i = min(fitting)[1]
        begin, end = self.list[i]
        self.list[i : i + 1] = [(begin + size, end)] if end - begin > size else []
        return begin

    def give_back(self, nbytes: int, begin: int) -> None:
        """Says that nobody uses a buffer any more, which was taken."""
        end = begin + _aligned(nbytes)
        i = j = bisect(self.list, (begin, end))
        if i and self.list[i - 1][1] == begin:
            i -= 1
            begin = self.list[i][0]
        if j < len(self.list) and self.list[j][0] == end:
            end = self.list[j][1]
            j += 1
        self.list[i:j] = [(begin, end)]


class Arena:
    """Places for buffers. What small ones freed last is taken first: it is in the cache.

    Large ones take gaps. With a list for each size, as small ones have, a step of a transformer takes 1.7 times what
    lives in it at once.

    `nbytes` is what all of them need together. `free` has the offsets of small ones by their bytes; limelight-native
    takes from these lists and puts back as well (`write_calls`).
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self.free: dict[int, list[int]] = {}  # by the bytes of a buffer; those that are rounded alike share a list
        self._gaps = Gaps()

    def take(self, nbytes: int) -> int:
        """The offset of a new buffer."""
        if nbytes >= LARGE:
            return self._take_large(nbytes)
        free = self.free.get(nbytes)
        if free is None:
            size = rounded(nbytes)
            free = self.free[nbytes] = self.free.setdefault(size, [])
        if free:
            return free.pop()
        offset = self.nbytes
        self.nbytes = offset + rounded(nbytes)
        return offset

    def give_back(self, nbytes: int, offset: int) -> None:
        """Says that nobody uses a buffer any more, which was taken."""
        if nbytes >= LARGE:
            self._gaps.give_back(nbytes, offset)
        else:
            self.free[nbytes].append(offset)

    def _take_large(self, nbytes: int) -> int:
        offset = self._gaps.take(nbytes)
        if offset is None:
            last = self._gaps.list[-1:]
            offset = self._gaps.list.pop()[0] if last and last[0][1] == self.nbytes else self.nbytes
            self.nbytes = offset + _aligned(nbytes)
        return offset


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def rounded(nbytes: int) -> int:
    """The bytes that a small buffer gets: a multiple of the alignment, of which there are few different ones."""
    step = max(ALIGNMENT, (1 << max(0, nbytes - 1).bit_length()) // _STEPS // 2)
    return -(-nbytes // step) * step

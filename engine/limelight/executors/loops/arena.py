"""One piece of memory for all intermediates of a table: who lies where, and whose place is free again."""

from __future__ import annotations

from typing import Final

ALIGNMENT: Final = 64
"""Of each buffer, in bytes: a line of the cache, and what vector instructions like."""
_STEPS: Final = 8  # sizes are rounded up by at most an eighth, so that a freed place fits the next buffer


class Arena:
    """Places for buffers. What was freed last is taken first: it is in the cache.

    `nbytes` is what all of them need together.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self._free: dict[int, list[int]] = {}  # by the bytes of a buffer; those that are rounded alike share a list

    def take(self, nbytes: int) -> int:
        """The offset of a new buffer."""
        free = self._free.get(nbytes)
        if free is None:
            size = rounded(nbytes)
            free = self._free[nbytes] = self._free.setdefault(size, [])
        if free:
            return free.pop()
        offset = self.nbytes
        self.nbytes = offset + rounded(nbytes)
        return offset

    def give_back(self, nbytes: int, offset: int) -> None:
        """Says that nobody uses a buffer any more, which was taken."""
        self._free[nbytes].append(offset)


def rounded(nbytes: int) -> int:
    """The bytes that a buffer gets: a multiple of the alignment, of which there are few different ones."""
    step = max(ALIGNMENT, (1 << max(0, nbytes - 1).bit_length()) // _STEPS // 2)
    return -(-nbytes // step) * step

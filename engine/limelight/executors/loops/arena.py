"""One piece of memory for all intermediates of a table: who lies where, and whose place is free again."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from limelight.executors.loops.layout import Buffer

ALIGNMENT: Final = 64
"""Of each buffer, in bytes: a line of the cache, and what vector instructions like."""
_STEPS: Final = 8  # sizes are rounded up by at most an eighth, so that a freed place fits the next buffer


def place_buffers(uses: Sequence[Sequence[Buffer]], loops: Sequence[tuple[int, int]] = ()) -> int:
    """Gives each buffer its offset, and says how many bytes they need together.

    The place of a buffer is free after its last use, and what was freed last is taken first: it is in the cache. A
    result never lies where an operand of its own instruction does.

    Args:
        uses: for each instruction the buffers of the arena that it reads or writes.
        loops: the first and last instruction of each loop, inner ones before those around them. What was there when
            one began is there until it ends, since the next step may need it.
    """
    last = {buffer: i for i, buffers in enumerate(uses) for buffer in buffers}
    if loops:
        first = {buffer: i for i, buffers in reversed([*enumerate(uses)]) for buffer in buffers}
        for begin, end in loops:
            for i in range(begin, end + 1):
                last.update({buffer: max(end, last[buffer]) for buffer in uses[i] if first[buffer] <= begin})
    ending: dict[int, list[Buffer]] = defaultdict(list)
    for buffer, i in last.items():
        ending[i].append(buffer)
    free: dict[int, list[int]] = defaultdict(list)
    sizes: dict[Buffer, int] = {}
    top = 0
    for i, buffers in enumerate(uses):
        for buffer in buffers:
            if buffer not in sizes:
                size = sizes[buffer] = rounded(buffer.nbytes)
                if free[size]:
                    buffer.offset = free[size].pop()
                else:
                    buffer.offset, top = top, top + size
        for buffer in ending.get(i, ()):
            free[sizes[buffer]].append(buffer.offset)
    return top


@functools.lru_cache(maxsize=4096)
def rounded(nbytes: int) -> int:
    """The bytes that a buffer gets: a multiple of the alignment, of which there are few different ones."""
    step = max(ALIGNMENT, (1 << max(0, nbytes - 1).bit_length()) // _STEPS // 2)
    return -(-nbytes // step) * step

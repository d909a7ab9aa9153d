"""Runs of elementwise instructions over large arrays, block by block: what one writes is in the cache for the next.

A chain of 21 functions over a million float32 numbers then reads and writes main memory once instead of 21 times, and
what lies between its steps needs the memory of one block. An instruction belongs to a run where it goes through as many
elements as the others, one after the other, and where nothing that the run writes is seen otherwise in it than as it is
written: so the numbers stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, final

from limelight.core.cores import threads
from limelight.executors.loops.control_marks import Mark
from limelight.executors.loops.instructions import Instruction
from limelight.executors.loops.layout import Buffer, View

BLOCK: Final = 1024
"""Elements of a block: a handful of operands fit into a first-level cache of 32 KiB, in 4 or 8 bytes each."""
SMALLEST: Final = 8 * BLOCK
"""Elements of an array that is worth it."""
WORTH: Final = 1 << 19
"""Elements that the instructions of a run go through, all together, from which on threads share its blocks."""
MOST_THREADS: Final = 64
"""That limelight-native shares work among."""
BLOCKS_OF_TASK: Final = 16
"""That a thread takes at a time there."""
MOST_SCRATCH: Final = 1 << 24
"""Bytes of all threads together, where more than one is at work."""


@final
class Run(NamedTuple):
    """Instructions that go block by block.

    Args:
        members: the instructions.
        total: the elements of each.
        scratch: buffers of which one block is enough, for each thread.
    """

    members: list[Instruction]
    total: int
    scratch: frozenset[Buffer]

    @property
    def threads(self) -> int:
        """How many may share its blocks: each has a task, and room for the scratch of one block."""
        if len(self.members) * self.total < WORTH:
            return 1
        room = BLOCK * max(1, sum(x.nbytes // self.total for x in self.scratch))
        return max(1, min(threads(), MOST_THREADS, -(-self.total // (BLOCK * BLOCKS_OF_TASK)), MOST_SCRATCH // room))

    @property
    def operands(self) -> list[View]:
        return [x for one in self.members for x in one.operands]


def in_runs(instructions: Sequence[Instruction | Mark], results: Iterable[Buffer]) -> list[Instruction | Mark | Run]:
    """The instructions in their order, those of a run as one.

    Args:
        instructions: those of a table.
        results: buffers that are seen outside of it.
    """
    if not any(one[2][0] >= SMALLEST for one in instructions if type(one) is Instruction):
        return list(instructions)
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for i, one in enumerate(instructions):
        for x in one.operands:
            first.setdefault(x.buffer, i)
            last[x.buffer] = i
    kept = set(results)
    items: list[Instruction | Mark | Run] = []
    start = 0
    while start < len(instructions):
        stop = _end_of_run(instructions, start)
        if stop - start < 2:
            items.append(instructions[start])
            start += 1
            continue
        members = [one for one in instructions[start:stop] if isinstance(one, Instruction)]
        total = _total(members[0])
        whole = [x.buffer for one in members for x in one.operands if x.buffer.nbytes == total * x.dtype.itemsize]
        buffers = {buffer for buffer in whole if buffer.is_made}
        inner = {buffer for buffer in buffers - kept if start <= first[buffer] and last[buffer] < stop}
        items.append(Run(members, total, frozenset(inner)))
        start = stop
    return items


def _total(one: Instruction | Mark) -> int:
    """How many elements an instruction goes through evenly; 0 where it does not, or where they are few."""
    if not isinstance(one, Instruction) or one.axes or len(one.dims) != 1 or one.dims[0] < SMALLEST:
        return 0
    dense = all(step in (0, x.dtype.itemsize) for step, x in zip(one.steps, one.operands, strict=True))
    return one.dims[0] if dense and one.steps[-1] else 0


def _end_of_run(instructions: Sequence[Instruction | Mark], start: int) -> int:
    """Where a run ends that begins here."""
    total = _total(instructions[start])
    written: dict[Buffer, tuple[int, int]] = {}  # the offset and stride at which the run writes it
    seen: dict[Buffer, set[tuple[int, int]]] = {}
    for i in range(start, len(instructions) if total else start):
        one = instructions[i]
        if not isinstance(one, Instruction) or _total(one) != total:
            return i
        ways = [(x.buffer, (x.offset, step)) for x, step in zip(one.operands, one.steps, strict=True)]
        into, way = ways[-1]
        if any(written.get(buffer, here) != here for buffer, here in ways) or seen.get(into, set()) - {way}:
            return i
        written[into] = way
        for buffer, here in ways:
            seen.setdefault(buffer, set()).add(here)
    return len(instructions) if total else start

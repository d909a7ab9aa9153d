"""Results of large elementwise instructions in the place of an operand that nobody needs any more.

Over large arrays that is a third of the memory traffic less. Where the result is one of the table, which has memory of
its own, that is the operand's from the beginning: so a parameter's gradient needs no memory besides its new value's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from limelight.executors.loops.blocks import SMALLEST, Run
from limelight.executors.loops.control_marks import Mark
from limelight.executors.loops.instructions import Instruction
from limelight.executors.loops.layout import Buffer, View


def replaceable(members: Sequence[Instruction], k: int, dying: Collection[Buffer]) -> Buffer | None:
    """The buffer in whose place the result of a member of a run can be; None where there is none.

    Complex numbers are left out as in plans.

    Args:
        members: instructions that go block by block; or one.
        k: the number of that member.
        dying: buffers that nobody needs behind the run.
    """
    one = members[k]
    out = one.operands[-1]
    if len(one.dims) > 1 or not out.is_whole or out.dtype.kind == "c":
        return None
    before = members[: k + 1]
    buffers: list[Buffer] = [x.buffer for other in reversed(before) for x in other.operands]
    for buffer in buffers:
        if buffer in dying and _all_alike(buffer, one, before) and not _uses(buffer, members[k + 1 :]):
            return buffer
    return None


def _all_alike(buffer: Buffer, as_one: Instruction, members: Iterable[Instruction]) -> bool:
    """Whether instructions go through all of a buffer as one goes through its result."""
    out, step = as_one.operands[-1], as_one.steps[-1]
    for one in members:
        for x, own in zip(one.operands, one.steps, strict=False):
            if x.buffer is buffer and not (x.is_whole and own == step and _same_places(x, out, bool(one.axes))):
                return False
    return True


def _same_places(x: View, out: View, has_axes: bool) -> bool:
    if has_axes:
        return x[1:] == out[1:]
    return x.offset == out.offset and x.dtype == out.dtype and x.buffer.nbytes == out.buffer.nbytes


def _uses(buffer: Buffer, members: Iterable[Instruction]) -> bool:
    return any(x.buffer is buffer for one in members for x in one.operands)


def made_in_results(
    items: Sequence[Instruction | Mark | Run], last: Mapping[Buffer, int], results: Iterable[Buffer]
) -> dict[Buffer, Buffer]:
    """For each buffer that can be in the place of a result of the table from the beginning, that result.

    Args:
        items: of the table.
        last: the last item that needs each buffer.
        results: of the table.
    """
    large = [i for i, item in enumerate(items) if type(item) is Run or (type(item) is Instruction and _is_large(item))]
    if not large:
        return {}
    first: dict[Buffer, int] = {}
    for i, item in enumerate(items):
        for x in item.operands:
            first.setdefault(x.buffer, i)
    place_of = {buffer: buffer for buffer in results}
    for i in reversed(large):  # so that what is made in a result may have been made in place itself
        item = items[i]
        assert not isinstance(item, Mark), "a mark is not large"
        members = item.members if isinstance(item, Run) else [item]
        ending = {x.buffer for x in item.operands if last[x.buffer] == i and first[x.buffer] < i and x.buffer.is_made}
        ending -= place_of.keys()
        for k, one in enumerate(members):
            out = one.operands[-1].buffer
            if ending and out in place_of and first[out] == i and (buffer := replaceable(members, k, ending)):
                place_of[buffer] = place_of[out]
                ending.remove(buffer)
    return {buffer: place for buffer, place in place_of.items() if buffer is not place}


def _is_large(one: Instruction) -> bool:
    return one.dims[0] >= SMALLEST

"""A table's program: its instructions one after the other, loops and branches as jumps, each buffer with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from limelight.executors.loops.arena import LARGE, Arena
from limelight.executors.loops.blocks import BLOCK, SMALLEST, Run, in_runs
from limelight.executors.loops.control_marks import Label, Mark, in_order
from limelight.executors.loops.in_place import made_in_results, replaceable
from limelight.executors.loops.instructions import AnyInstruction, Instruction
from limelight.executors.loops.layout import Buffer, Sizes, View
from limelight.executors.loops.native_records import native
from limelight.executors.loops.spare_results import SpareResults

_ROWS_IN: Final = ("begin", "again")
Item: TypeAlias = Instruction | Mark | Run
Where: TypeAlias = dict[Buffer, tuple[int, int]]
"""The place of each buffer, and its offset there."""


class Write(NamedTuple):
    """A result that becomes the value of a variable.

    Args:
        input: the number of the variable among the inputs.
        result: that of the value among the results.
        exchanges: whether it was computed from the value that the variable had, and must be again if that has changed.
    """

    input: int
    result: int
    exchanges: bool


def table(
    inputs: Sequence[View | None],
    results: Sequence[View],
    instructions: Sequence[AnyInstruction],
    otherwise: Callable[..., Any],
    storages: Iterable[int] = (),
    writes: Sequence[Write] = (),
) -> Any:
    """The native table.

    Args:
        inputs: what it takes; None for a variable that is only assigned.
        results: what it returns.
        instructions: what it does.
        otherwise: what is called where it does not fit.
        storages: the numbers of inputs that are variables.
        writes: their assignments, in program order.
    """
    order = in_order(instructions)
    items = in_runs(order, [x.buffer for x in results])
    last: dict[Buffer, int] = native().last_uses(items)
    constants = [buffer for buffer in last if buffer.array is not None]
    places = [*[None if x is None else x.buffer for x in inputs], *constants, *[x.buffer for x in results]]
    marks = [item for item in items if type(item) is Mark]
    rows = list(dict.fromkeys([row for mark in marks for row in mark.rows]))
    where: Where = {buffer: (i, 0) for i, buffer in enumerate([*places, None, *rows]) if buffer is not None}
    arena = Arena()
    written = _Writer(where, arena, len(places), items).written(last, [x.buffer for x in results])
    return native().Table(
        tuple([None if x is None else _spec(x) for x in inputs]),
        tuple([buffer.array for buffer in constants]),
        tuple([_spec(view) for view in results]),
        arena.nbytes,
        written,
        otherwise,
        tuple([row.nbytes for row in rows]),
        sum(mark.name == "begin" for mark in marks),
        tuple(storages),
        tuple(map(tuple, writes)),
    )


def _spec(view: View) -> tuple[int, Sizes, Sizes]:
    return (view.dtype.num, view.shape, view.strides)


def _block_of(buffer: Buffer, run: Run) -> int:
    """The bytes of a block of a buffer that a run goes through."""
    return buffer.nbytes // run.total * BLOCK


class _Writer:
    """Writes items as the table takes them (see the README of limelight-native), and finds places in the arena.

    A buffer has its place from the first item that it is in to the last one. Only results of large elementwise
    instructions may lie where an operand of theirs does (`in_place`).

    Args:
        where: the buffers that have a place, to which those of the arena are added.
        arena: where the others are.
        place: that of the arena.
        items: what is written.
    """

    def __init__(self, where: Where, arena: Arena, place: int, items: Sequence[Item]) -> None:
        self._where = where
        self._arena = arena
        self._place = place
        self._items = items
        self._last: dict[Buffer, int] = {}
        self._spare: SpareResults | None = None
        self._scratch: dict[Buffer, int] = {}  # the bytes of buffers of which a block for each thread is enough
        self._targets: dict[Label, int] = {}

    def written(self, last: dict[Buffer, int], results: Sequence[Buffer]) -> list[tuple[Any, ...]]:
        """All items.

        Args:
            last: the last item of each buffer.
            results: the buffers that the table returns.
        """
        items, where = self._items, self._where
        if any(type(item) is Run or (type(item) is Mark and item.name != "guard") for item in items):
            self._look_ahead(last)
        self._last = last
        if any(buffer.nbytes >= LARGE for buffer in last):
            inside = made_in_results(items, last, results)
            where.update({buffer: where[result] for buffer, result in inside.items()})
            self._spare = SpareResults(items, [*results, *inside], where)
        ending: list[list[Buffer] | None] = native().endings(last, where, len(items))
        tuples: list[tuple[Any, ...]] = []
        done = 0
        while (done := self._write_calls(done, ending, tuples)) < len(items):
            dying = ending[done] or []
            tuples += self._written(items[done], dying)
            for buffer in dying:
                self._give_back(buffer)
            done += 1
        return tuples

    def _write_calls(self, start: int, ending: list[list[Buffer] | None], tuples: list[tuple[Any, ...]]) -> int:
        """Writes items from `start` on, nearly all of a table, up to one for `_written`; returns its number."""
        arena = self._arena
        given = (self._items, start, self._where, ending, arena.free, self._place, LARGE, SMALLEST)
        stop: int = native().write_calls(*given, self._new, self._give_back, tuples)
        return stop

    def _written(self, item: Item, dying: list[Buffer]) -> list[tuple[Any, ...]]:
        """An item over many elements, or that is no instruction; what it may overwrite is taken from `dying`."""
        if type(item) is not Mark:
            self._take_over(item.members if type(item) is Run else (item,), dying)
        words: list[int] = []
        for x in item.operands:
            at = self._where.get(x[0]) or self._new(x[0])
            words += (at[0], at[1] + x[1])
        if type(item) is Instruction:
            return [(item.loop, tuple(words), item.dims, item.steps, item.axes)]
        if type(item) is Run:
            return [self._run(item)]
        assert type(item) is Mark
        return [] if item.name == "label" else [self._mark(item, words)]

    def _take_over(self, members: Sequence[Instruction], dying: list[Buffer]) -> None:
        """Has results of a run, or of one instruction, lie where operands do that nobody needs any more."""
        where = self._where
        there = {buffer for buffer in dying if buffer in where}  # before: not what begins and ends within a run
        for k, one in enumerate(members):
            out = one.operands[-1].buffer
            if not there or out in where or out in self._scratch:
                continue
            buffer = replaceable(members, k, there)
            if buffer and (self._spare is None or self._spare.is_free(where[buffer][0], self._last[out])):
                where[out] = where[buffer]
                there.remove(buffer)
                dying.remove(buffer)

    def _nbytes(self, buffer: Buffer) -> int:
        return (self._scratch and self._scratch.get(buffer)) or buffer.nbytes

    def _new(self, buffer: Buffer) -> tuple[int, int]:
        assert buffer.value is None, "an input that no node of the stretch has"
        nbytes = self._nbytes(buffer)
        at = self._spare.take(nbytes, self._last[buffer]) if self._spare is not None and nbytes >= LARGE else None
        at = self._where[buffer] = at or (self._place, self._arena.take(nbytes))
        return at

    def _give_back(self, buffer: Buffer) -> None:
        place, offset = self._where[buffer]
        if place == self._place:
            self._arena.give_back(self._nbytes(buffer), offset)
        else:
            assert self._spare is not None, "a buffer in no memory of the table"
            self._spare.give_back(self._nbytes(buffer), place, offset)

    def _look_ahead(self, last: dict[Buffer, int]) -> None:
        """Finds targets and scratch buffers; what was there when a loop began is there until it ends.

        For the next step may need it. Inner loops come before those around them.
        """
        first: dict[Buffer, int] = {}
        begun: dict[int, int] = {}
        number = 0
        for i, item in enumerate(self._items):
            for x in item.operands:
                first.setdefault(x[0], i)
            if type(item) is Run:
                self._scratch.update({buffer: _block_of(buffer, item) * item.threads for buffer in item.scratch})
            elif type(item) is Mark and item.label is not None and item.name == "label":
                self._targets[item.label] = number
                continue
            elif type(item) is Mark and item.name == "begin":
                begun[item.counter] = i
            elif type(item) is Mark and item.name == "again":
                start = begun[item.counter]
                inside = {x[0] for one in self._items[start : i + 1] for x in one.operands}
                last.update({buffer: max(i, last[buffer]) for buffer in inside if first[buffer] <= start})
            number += 1

    def _run(self, run: Run) -> tuple[Any, ...]:
        members = []
        for one in run.members:
            words = [word for x in one.operands for word in (self._where[x[0]][0], self._where[x[0]][1] + x[1])]
            advances = [0 if x[0] in run.scratch else step for x, step in zip(one.operands, one.steps, strict=True)]
            lanes = [_block_of(x[0], run) if x[0] in run.scratch else 0 for x in one.operands]
            members.append(((one.loop, tuple(words), (BLOCK,), one.steps, one.axes), tuple(advances), tuple(lanes)))
        return (BLOCK, run.total, tuple(members), run.threads)

    def _mark(self, mark: Mark, operands: list[int]) -> tuple[Any, ...]:
        words: list[int] = []
        if mark.name in ("guard", "branch"):
            words += operands
        elif mark.name in _ROWS_IN:
            words.append(mark.counter)
            words += [mark.steps] if mark.name == "again" else []
        if mark.label is not None:
            words.append(self._targets[mark.label])
        for buffer in mark.rows:
            row = buffer.row
            assert row is not None
            place, offset = self._where[row.buffer.root]
            words += [self._where[buffer][0], place, offset + row.offset, row.stride]
        return (mark.name, *words)

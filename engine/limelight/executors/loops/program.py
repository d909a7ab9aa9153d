"""A table's program: its instructions one after the other, loops and branches as jumps, each buffer with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from limelight.executors.loops import native_loops
from limelight.executors.loops.arena import place_buffers
from limelight.executors.loops.blocks import BLOCK, Run, in_runs
from limelight.executors.loops.control_marks import Label, Mark, in_order
from limelight.executors.loops.instructions import AnyInstruction, Instruction
from limelight.executors.loops.layout import Buffer, Sizes, View

_ROWS_IN: Final = ("begin", "again")
Item: TypeAlias = Instruction | Mark | Run


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
    constants = dict.fromkeys([x.buffer for one in order for x in one.operands if x.buffer.array is not None])
    places: list[Buffer | None] = [None if x is None else x.buffer for x in inputs]
    places += [*constants, *[x.buffer for x in results]]
    arena = len(places)
    rows = list(dict.fromkeys([row for one in order if isinstance(one, Mark) for row in one.rows]))
    for place, buffer in enumerate([*places, None, *rows]):
        if buffer is not None:
            buffer.place = place
    items: list[Item] = in_runs(order, [x.buffer for x in results])
    nbytes = _place_others(items, arena)
    targets = _targets(items)
    return native_loops.native().Table(
        tuple([None if x is None else _spec(x) for x in inputs]),
        tuple([buffer.array for buffer in constants]),
        tuple([_spec(view) for view in results]),
        nbytes,
        [_written(item, targets) for item in items if not _is_label(item)],
        otherwise,
        tuple([row.nbytes for row in rows]),
        sum(isinstance(item, Mark) and item.name == "begin" for item in items),
        tuple(storages),
        tuple(map(tuple, writes)),
    )


def _place_others(items: Sequence[Item], arena: int) -> int:
    """Gives the buffers that have no place theirs in the arena; returns its size."""
    mine = [
        [x.buffer for x in (item.operands if type(item) is Instruction else _operands(item)) if x.buffer.place < 0]
        for item in items
    ]
    begun: dict[int, int] = {}
    loops: list[tuple[int, int]] = []
    for i, item in enumerate(items):
        if type(item) is Instruction:
            continue
        if isinstance(item, Run):
            for buffer in item.scratch:
                buffer.nbytes = buffer.nbytes // item.total * BLOCK
        elif item.name == "begin":  # type: ignore[union-attr]  # a mark
            begun[item.counter] = i  # type: ignore[union-attr]
        elif item.name == "again":  # type: ignore[union-attr]
            loops.append((begun[item.counter], i))  # type: ignore[union-attr]
    nbytes = place_buffers(mine, loops)
    for buffer in {buffer for buffers in mine for buffer in buffers}:
        assert buffer.is_made, "an input that no node of the stretch has"
        buffer.place = arena
    return nbytes


def _operands(item: Item) -> Sequence[View]:
    return [x for one in item.members for x in one.operands] if isinstance(item, Run) else item.operands


def _is_label(item: Item) -> bool:
    return isinstance(item, Mark) and item.name == "label"


def _targets(items: Sequence[Item]) -> dict[Label, int]:
    """The number of the instruction behind each label."""
    targets: dict[Label, int] = {}
    number = 0
    for item in items:
        if isinstance(item, Mark) and item.name == "label":
            assert item.label is not None
            targets[item.label] = number
        else:
            number += 1
    return targets


def _spec(view: View) -> tuple[int, Sizes, Sizes]:
    return (view.dtype.num, view.shape, view.strides)


def _written(item: Item, targets: dict[Label, int]) -> tuple[Any, ...]:
    """An item as the table takes it: see the README of limelight-native."""
    if type(item) is Instruction:
        return _written_call(item)
    if isinstance(item, Run):
        return _written_run(item)
    return _written_mark(item, targets) if isinstance(item, Mark) else _written_call(item)


def _written_call(one: Instruction) -> tuple[Any, ...]:
    loop, views, dims, steps, axes = one
    words: list[int] = []
    for x in views:
        buffer = x.buffer
        words += (buffer.place, buffer.offset + x.offset)
    return (loop, tuple(words), dims, steps, axes)


def _written_run(run: Run) -> tuple[Any, ...]:
    members = []
    for one in run.members:
        advances = [0 if x.buffer in run.scratch else step for x, step in zip(one.operands, one.steps, strict=True)]
        members.append((_written_call(one._replace(dims=(BLOCK,))), tuple(advances)))
    return (BLOCK, run.total, tuple(members))


def _written_mark(mark: Mark, targets: dict[Label, int]) -> tuple[Any, ...]:
    words: list[int] = []
    if mark.name in ("guard", "branch"):
        (condition,) = mark.operands
        words += [condition.buffer.place, condition.buffer.offset + condition.offset]
    elif mark.name in _ROWS_IN:
        words.append(mark.counter)
        words += [mark.steps] if mark.name == "again" else []
    if mark.label is not None:
        words.append(targets[mark.label])
    for buffer in mark.rows:
        row = buffer.row
        assert row is not None
        base = row.buffer.root
        words += [buffer.place, base.place, base.offset + row.offset, row.stride]
    return (mark.name, *words)

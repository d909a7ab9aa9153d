"""Control flow in a table: branches and loops as jumps, carried values and stacks in places of their own.

A loop's carried values lie where each step finds them, and are copied there at the end of a step; rows of scanned
tensors and of stacks are places that move on with the step, so what a step makes for the backward pass is written where
it stays. A called function's nodes are those of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from limelight.executors.loops.instructions import (
    AnyInstruction,
    Choice,
    Instructions,
    NotLowered,
    Repetition,
    new_array,
)
from limelight.executors.loops.layout import Buffer, View, row_of
from limelight.executors.loops.loop_state import Cell, changed_cells, repeated
from limelight.executors.loops.traced_array import TracedArray
from limelight.graph.ir import Node

RunFunction: TypeAlias = Callable[[Any, Sequence[Any]], list[TracedArray]]
"""Appends the instructions of a called function for its arguments; returns its results."""

_FOREVER: Final = 2**62


def _scan(node: Node, operands: Sequence[Any], to: Instructions, run: RunFunction) -> list[TracedArray]:
    body, n, m, length, reverse = node.params[:5]
    carry, scanned, captures = operands[:n], operands[n : n + m], operands[n + m :]
    steps = {x.shape[0] for x in scanned} | ({length} if length is not None else set())
    if len(steps) != 1 or 0 in steps:
        raise NotLowered("the number of its steps is 0, or not one")
    (count,) = steps
    cells = changed_cells(node, operands)
    carried = initial_places(carry, cells, to)
    rows = [row_of(x.view, reverse) for x in scanned]
    with to.nested() as instructions, repeated(captures, count) as drawn:
        results = run(body, [*carried[:n], *[TracedArray(row, to) for row in rows], *captures])
        stacks, stack_rows = stacked(results[n:], count, reverse, carried, instructions, to)
        carry_on(carried, [*results[:n], *[cell.now for cell in cells]], to)
    leave(cells, carried)
    moving = moving_rows(rows, stack_rows, drawn, instructions)
    written = (*[x.view for x in carried], *stacks)
    to.list.append(Repetition(count, [], None, instructions, moving, written))
    return [*carried[:n], *[TracedArray(stack, to) for stack in stacks]]


def _while_loop(node: Node, operands: Sequence[Any], to: Instructions, run: RunFunction) -> list[TracedArray]:
    condition, body, n, limit = node.params[:4]
    if limit == 0:
        raise NotLowered("it makes no step")
    captures = operands[n:]
    cells = changed_cells(node, operands)
    carried = initial_places(operands[:n], cells, to)
    with repeated(captures, None):
        with to.nested() as check:
            holds = holding(run, condition, [*carried[:n], *captures], cells)
        with to.nested() as instructions:
            results = run(body, [*carried[:n], *captures])
            carry_on(carried, [*results, *[cell.now for cell in cells]], to)
    leave(cells, carried)
    written = tuple([x.view for x in carried])
    to.list.append(Repetition(limit or _FOREVER, check, holds, instructions, (), written))
    return carried[:n]


def _cond(node: Node, operands: Sequence[Any], to: Instructions, run: RunFunction) -> list[TracedArray]:
    condition, *captures = operands
    branches = [partial(run, function, captures) for function in node.params[:2]]
    with repeated(captures, None):
        return _chosen(boolean(condition), branches, to, changed_cells(node, operands))


def _switch(node: Node, operands: Sequence[Any], to: Instructions, run: RunFunction) -> list[TracedArray]:
    """As many choices between two as it takes; the run ends where the number is that of no branch."""
    index, *captures = operands
    number: Any = index.reshape(())  # of which NumPy's functions ask what they do
    functions = node.params[0]
    cells = changed_cells(node, operands)
    is_there: Any = np.logical_and(np.greater_equal(number, 0), np.less(number, len(functions)))
    to.guard(is_there.view)

    def from_branch(i: int) -> list[TracedArray]:
        first = partial(run, functions[i], captures)
        if i == len(functions) - 1:
            return first()
        is_this: Any = np.equal(number, i)
        return _chosen(boolean(is_this), [first, partial(from_branch, i + 1)], to, cells)

    with repeated(captures, None):
        return from_branch(0)


def _chosen(
    condition: View, branches: Sequence[Callable[[], list[TracedArray]]], to: Instructions, cells: Sequence[Cell]
) -> list[TracedArray]:
    """What one of two branches returns, which append their instructions, and may assign `cells`."""
    parts: list[list[AnyInstruction]] = []
    values: list[list[TracedArray]] = []
    before = [cell.now for cell in cells]
    for branch in branches:
        leave(cells, before)
        with to.nested() as instructions:
            values.append([*branch(), *[cell.now for cell in cells]])
        parts.append(instructions)
    results = [new_array(x.shape, x.dtype) for x in values[0]]
    for instructions, own in zip(parts, values, strict=True):
        for x, result in zip(own, results, strict=True):
            if x.shape != result.shape or x.dtype != result.dtype:
                raise NotLowered("its branches differ in a shape")
            _check_order(x)
        with to.nested() as copies:
            _hand_over([x.view for x in own], results, _made_by(instructions), to)
        instructions.extend(copies)
    to.list.append(Choice(condition, (parts[0], parts[1]), tuple(results)))
    chosen = [TracedArray(result, to) for result in results]
    leave(cells, chosen)
    return chosen[: len(chosen) - len(cells)]


def _call(node: Node, operands: Sequence[Any], to: Instructions, run: RunFunction) -> list[TracedArray]:
    return run(node.params[0], operands)


LOWERINGS: Final[dict[str, Callable[..., list[TracedArray]]]] = {
    "scan": _scan,
    "scan_forward": _scan,
    "while_loop": _while_loop,
    "while_detached": _while_loop,
    "cond": _cond,
    "cond_forward": _cond,
    "switch": _switch,
    "switch_forward": _switch,
    "call": _call,
    "call_forward": _call,
}
"""By the name of the op: appends its instructions, and returns its results."""


def initial_place(x: TracedArray, to: Instructions) -> TracedArray:
    """The place of a carried value, which it begins with."""
    _check_order(x)
    place = new_array(x.shape, x.dtype)
    to.copy(x.view, place)
    return TracedArray(place, to)


def initial_places(carry: Sequence[TracedArray], cells: Sequence[Cell], to: Instructions) -> list[TracedArray]:
    """The places of carried values and of variables that a loop assigns, which have them from now on."""
    carried = [initial_place(x, to) for x in (*carry, *[cell.now for cell in cells])]
    leave(cells, carried)
    return carried


def leave(cells: Sequence[Cell], values: Sequence[TracedArray]) -> None:
    """Has variables have the last of these values."""
    for cell, x in zip(cells, values[len(values) - len(cells) :], strict=True):
        cell.now = x


def holding(run: RunFunction, condition: Any, arguments: Sequence[Any], cells: Sequence[Cell]) -> View:
    """Whether a loop makes another step. Raises NotLowered for a condition that assigns."""
    before = [cell.now for cell in cells]
    (holds,) = run(condition, arguments)
    if any(cell.now is not x for cell, x in zip(cells, before, strict=True)):
        raise NotLowered("its condition assigns")
    return boolean(holds)


def moving_rows(
    rows: Sequence[View], stack_rows: Sequence[View], drawn: Sequence[Buffer], instructions: Sequence[AnyInstruction]
) -> tuple[Buffer, ...]:
    """The buffers that move on with a step: of scanned rows those that it reads, of stacks and draws all."""
    used = {x.buffer for one in instructions for x in one.operands}
    read = [row.buffer for row in rows if row.buffer in used]
    return (*read, *[row.buffer for row in stack_rows], *drawn)


def _check_order(x: TracedArray) -> None:
    """What is not in C order in the plan would be here: sums and products of it might take another order."""
    if not x.view.is_contiguous:
        raise NotLowered("a value that it hands on is not in C order")


def boolean(x: TracedArray) -> View:
    if x.size != 1 or x.dtype != bool:
        raise NotLowered("its condition is no boolean")
    return x.view


def stacked(
    results: Sequence[TracedArray],
    count: int,
    reverse: bool,
    carried: Sequence[TracedArray],
    instructions: Sequence[AnyInstruction],
    to: Instructions,
) -> tuple[list[View], list[View]]:
    """The stacks of what a step returns besides the carried values, and their rows, which a step writes.

    Args:
        results: what the step returns.
        count: the number of steps.
        reverse: whether the last row comes first.
        carried: the places of carried values, which are no step's own.
        instructions: those of the step.
        to: where copies are appended.
    """
    stacks = [new_array((count, *x.shape), x.dtype) for x in results]
    rows = [row_of(stack, reverse) for stack in stacks]
    _hand_over([x.view for x in results], rows, _made_by(instructions) - {x.view.buffer for x in carried}, to)
    return stacks, rows


def carry_on(carried: Sequence[TracedArray], results: Sequence[TracedArray], to: Instructions) -> None:
    """Copies what a step returns to the places of the carried values, which it may still read: those come first."""
    places = {x.view.buffer for x in carried}
    moves: list[tuple[View, View]] = []
    for place, x in zip(carried, results, strict=True):
        if x.shape != place.shape or x.dtype != place.dtype:
            raise NotLowered("a carried value changes its shape")
        _check_order(x)
        if x.view.buffer is place.view.buffer and x.view.offset == 0:
            continue
        moves.append((to.copied(x.view) if x.view.buffer in places else x.view, place.view))
    for source, target in moves:
        to.copy(source, target)


def _made_by(instructions: Sequence[AnyInstruction]) -> set[Buffer]:
    return {x.buffer for one in instructions for x in one.written}


def _hand_over(results: Sequence[View], places: Sequence[View], made: set[Buffer], to: Instructions) -> None:
    """Has results in these places: what has a buffer to itself has its buffer there, of others there is a copy.

    Args:
        results: the results.
        places: views of whole buffers, in C order.
        made: the buffers that may be put elsewhere.
        to: where copies are appended.
    """
    for view, place in zip(results, places, strict=True):
        if view.buffer in made and view.is_whole and view.is_contiguous and view.buffer.same is None:
            view.buffer.same = place.buffer
        else:
            to.copy(view, place)

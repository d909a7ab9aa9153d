"""Loops whose number of steps only the run knows: a table makes as many steps as it has room for, as often as it takes.

That is the case for a `while_loop` that keeps rows for its gradient, and for a scan over rows whose number is unknown,
such as that gradient. Carried values go from one run of the table to the next; the rows that were made are joined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core.collector import collector_paused
from limelight.core.devices import CPU0
from limelight.core.op import Effect, Op
from limelight.core.spec import Spec, TensorSpec
from limelight.executors.loops.control_flow import carry_on, holding, initial_places, leave, moving_rows, stacked
from limelight.executors.loops.instructions import Instructions, NotLowered, Repetition
from limelight.executors.loops.layout import GivenBuffer, View, row_of
from limelight.executors.loops.loop_state import Cell, new_input, repeated
from limelight.executors.loops.lowering import Lowering, lowered_function, unfit
from limelight.executors.loops.program import table
from limelight.executors.loops.traced_array import TracedArray
from limelight.executors.plan.kernel_calls import KernelCalls
from limelight.executors.plan.specialised_kernels import specialised
from limelight.graph.build import Rewriter
from limelight.graph.effects import effects_of
from limelight.graph.ir import Graph, Node

ROOM: Final = (16, 128, 1024)
"""Steps that a table has room for; there is one for each that was needed."""
LARGEST: Final = 1 << 25
"""Bytes of rows that a table makes at most."""


class OpenLoop(NamedTuple):
    """What is repeated.

    Args:
        condition: the function that says whether another step is made; None where the rows say it.
        body: the function of a step. Its inputs: carried values, rows, captures; its results: carried values, rows.
        n: the number of carried values.
        m: the number of scanned tensors.
        reverse: whether the last row comes first.
    """

    condition: Any
    body: Any
    n: int
    m: int
    reverse: bool

    @staticmethod
    def of(node: Node) -> OpenLoop | None:
        """The loop that a node is; None for one whose number of steps is known, and for what is no loop."""
        name, params = node.op.name, node.params
        if name == "while_forward":
            return OpenLoop(params[0], params[1], params[2], 0, False)
        if name in ("scan", "scan_forward"):
            body, n, m, length, reverse = params[:5]
            sizes = {_first_size(x.spec) for x in node.inputs[n : n + m]}
            if length is None and None in sizes:
                return OpenLoop(None, body, n, m, reverse)
        return None


def _first_size(spec: Spec) -> int | None:
    return spec.shape[0] if isinstance(spec, TensorSpec) and spec.shape else None


def with_open_loops(graph: Graph) -> Graph:
    """The graph with each such loop that tables can run as a node that has them do it."""
    loops = {node: loop for node in graph.nodes if (loop := _eligible(node)) is not None}
    if not loops:
        return graph
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if node not in loops:
            rewriter.keep(node)
            continue
        made = _made(node, loops[node])
        if made is None:
            rewriter.keep(node)
        else:
            specs = [value.spec for value in node.outputs]
            rewriter.stand_in(node, rewriter.add(node, made, rewriter.inputs(node), (), specs))
    return rewriter.finish()


def _eligible(node: Node) -> OpenLoop | None:
    if not node.op.higher_order or node.device not in (None, CPU0):
        return None
    loop = OpenLoop.of(node)
    return None if loop is None or effects_of(node).changes else loop


def _made(node: Node, loop: OpenLoop) -> OpenLoopOp | None:
    runs = _Runs(node, loop)
    try:
        runs.table(ROOM[0])
    except NotLowered:
        return None
    return OpenLoopOp(node, runs)


class OpenLoopOp(Op):
    """The op of a loop whose kernel has tables run the steps; `effect` is what a step does besides."""

    def __init__(self, node: Node, runs: Callable[..., Any], effect: Effect = None) -> None:
        specs = tuple([value.spec for value in node.outputs])
        super().__init__(
            node.op.name,
            inputs="*xs:any",
            infer=lambda *xs: specs,
            kernel=lambda xp, *xs: runs(*xs),
            multiple=True,
            higher_order=True,
            effect=effect,
            why_no_gradient="only graphs that are about to run have it",
        )
        self.node = node
        self.runs = runs

    def kernel_on(self, backend: str) -> Callable[..., Any]:
        return self.runs


class Refused(Exception):  # noqa: N818  # no error: the plan's kernel runs the loop instead
    """A table does not fit, or a step did what no table does."""


def refuse(*arrays: Any) -> Any:
    raise Refused


class _Runs:
    """Runs a loop by tables.

    Args:
        node: that of the loop.
        loop: the same as data.
    """

    def __init__(self, node: Node, loop: OpenLoop) -> None:
        self._loop = loop
        self._limit = node.params[3] if loop.condition is not None else None
        self._specs = [value.spec for value in node.inputs]
        self._kernel = functools.partial(_with_params, node.op.kernel_on("numpy"), node.params)
        self._tables: dict[tuple[int, Layout], Any] = {}
        self._expected = ROOM[1]  # steps of a run, by what the last one has made

    def __call__(self, *data: Any) -> tuple[Any, ...]:
        try:
            results = self._in_tables(data)
        except Refused:
            results = None
        return self._kernel(data) if results is None else results

    def table(self, room: int, layout: Layout = ()) -> Any:
        """The table that makes up to `room` steps. Raises NotLowered where there is none."""
        made = self._tables.get((room, layout))
        if made is None:
            if len(self._tables) >= MOST_LAYOUTS * len(ROOM):
                raise NotLowered("its operands have ever new layouts")
            with collector_paused():
                made = self._tables[room, layout] = self._table(room, layout)
        return made

    def _table(self, room: int, layout: Layout) -> Any:
        to = Instructions()
        n, m = self._loop.n, self._loop.m
        strides = [*[None] * (n + m), *(layout or [None] * (len(self._specs) - n - m))]
        inputs = [input_for(spec, room if n <= i < n + m else None, strides[i]) for i, spec in enumerate(self._specs)]
        most = new_input((), np.dtype(np.int64))
        arrays = [TracedArray(view, to) for view in (*inputs, most)]
        results = steps(self._loop, arrays[:-1], arrays[-1], room, to)
        if sum(x.view.buffer.nbytes for x in results) > LARGEST and room > ROOM[0]:
            raise NotLowered("its rows are large")
        return table([*inputs, most], [x.view for x in results], to.list, refuse)

    def _room(self, steps: int, layout: Layout) -> int:
        """The room of the table for so many steps."""
        fitting = next((room for room in ROOM if room >= steps), ROOM[-1])
        for room in ROOM[: ROOM.index(fitting) + 1][::-1]:
            try:
                self.table(room, layout)
            except NotLowered:
                continue
            return room
        raise Refused

    def _in_tables(self, data: Sequence[Any]) -> tuple[Any, ...] | None:
        """The results; None for a loop without steps, whose rows have sizes that the kernel knows."""
        n, m, reverse = self._loop.n, self._loop.m, self._loop.reverse
        carry, scanned, captures = data[:n], data[n : n + m], data[n + m :]
        layout = layout_of(captures)
        total = self._limit
        if m:
            total = len(scanned[0])
            if any(len(x) != total for x in scanned):
                return None
        made: list[tuple[Any, ...]] = []
        done = 0
        while total is None or done < total:
            left = self._expected if total is None else total - done
            room = self._room(min(left, self._expected) if m == 0 else left, layout)
            most = room if total is None else min(room, total - done)
            rows = [part(x, done, most, room, reverse) for x in scanned]
            results = self.table(room, layout)(*carry, *rows, *captures, np.int64(most))
            count = int(results[n])
            carry = results[:n]
            if count:
                made.append(tuple([rows_made(x, count, reverse) for x in results[n + 1 :]]))
            done += count
            if count < most:
                break
            self._expected = max(self._expected, 2 * done)
        if not done:
            return None
        self._expected = done
        ordered = made[::-1] if reverse else made
        stacks = [column[0] if len(column) == 1 else np.concatenate(column) for column in zip(*ordered, strict=True)]
        live = () if m else (np.ones(done, np.bool_),)
        return (*carry, *live, *stacks)


def _with_params(kernel: Callable[..., Any], params: Sequence[Any], data: Sequence[Any]) -> Any:
    return kernel(*data, *params)


def steps(
    loop: OpenLoop,
    operands: Sequence[Any],
    most: TracedArray,
    room: int,
    to: Instructions,
    cells: Sequence[Cell] = (),
) -> list[TracedArray]:
    """Some steps: as many as there is room for, unless the condition ends the loop before, or `most` are made.

    Args:
        loop: the loop.
        operands: its operands, `room` rows of scanned ones; for variables `Cell`s, for generators `Generator`s.
        most: the number of steps after which the run ends, an int64.
        room: the number of steps that there is memory for.
        to: where instructions are appended.
        cells: the variables that the body assigns.

    Returns:
        The carried values; the number of steps, an int64; the stacks, in which the rows of steps that were not made are
        anything: the last ones, or the first ones of a reversed loop.
    """
    n, m = loop.n, loop.m
    run = functools.partial(lowered_function, to=to, calls=Lowering(KernelCalls(specialised)))
    scanned, captures = operands[n : n + m], operands[n + m :]
    zero = TracedArray(to.constant(np.zeros((), np.int64)), to)
    carried = initial_places([*operands[:n], zero], cells, to)
    count = carried[n]
    rows = [row_of(x.view, loop.reverse) for x in scanned]
    numbers: Any = np  # its functions ask their operands, which stand for arrays
    with to.nested() as check:
        holds = numbers.less(count, most).view
        if loop.condition is not None:
            with repeated(captures, None):
                goes_on = holding(run, loop.condition, [*carried[:n], *captures], cells)
            holds = numbers.logical_and(TracedArray(holds, to), TracedArray(goes_on, to).reshape(())).view
    with to.nested() as instructions, repeated(captures, room) as drawn:
        results = run(loop.body, [*carried[:n], *[TracedArray(row, to) for row in rows], *captures])
        stacks, stack_rows = stacked(results[n:], room, loop.reverse, carried, instructions, to)
        carry_on([*carried[:n], *carried[n + 1 :]], [*results[:n], *[cell.now for cell in cells]], to)
        numbers.add(count, 1, out=count)
    leave(cells, carried)
    moving = moving_rows(rows, stack_rows, drawn, instructions)
    written = (*[x.view for x in carried], *stacks)
    to.list.append(Repetition(room, check, holds, instructions, moving, written))
    return [*carried[: n + 1], *[TracedArray(stack, to) for stack in stacks]]


Layout = tuple[tuple[int, ...] | None, ...]
"""For each capture of a loop its strides, or None for C order: a transposed matrix stays one in each step."""
MOST_LAYOUTS: Final = 4


def layout_of(captures: Sequence[Any]) -> Layout:
    """The layout of captures; what is no array has none."""
    return tuple([None if _in_c_order(x) else x.strides for x in captures])


def _in_c_order(x: Any) -> bool:
    flags = getattr(x, "flags", None)
    return flags is None or flags.c_contiguous


def input_for(spec: Spec, rows: int | None, strides: Any = None) -> View:
    """What stands for an operand.

    Args:
        spec: that of the operand.
        rows: the number of rows of a scanned one.
        strides: of one that is not in C order.
    """
    if not isinstance(spec, TensorSpec):
        raise NotLowered("it takes something that is no array")
    shape: Any = spec.shape if rows is None else (rows, *spec.shape[1:])
    if reason := unfit(TensorSpec(shape, spec.dtype)):
        raise NotLowered(reason)
    view = new_input(shape, spec.dtype)
    if strides is None:
        return view
    if min(strides) < 0:
        raise NotLowered("an operand runs backwards")
    extent = spec.dtype.itemsize + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    return view._replace(buffer=GivenBuffer(extent, value=shape), strides=strides)


def part(x: Any, done: int, most: int, room: int, reverse: bool) -> Any:
    """The next rows of a tensor, filled up to `room` by rows that no step reads."""
    start = len(x) - done - most if reverse else done
    rows = x[start : start + most]
    if not _in_c_order(rows):  # a copy in C order would add up in another order than the plan
        raise Refused
    if most == room:
        return rows
    filled = np.empty((room, *rows.shape[1:]), rows.dtype)
    filled[room - most if reverse else 0 : room if reverse else most] = rows
    return filled


def rows_made(stack: Any, count: int, reverse: bool) -> Any:
    """The rows of steps that were made; a copy where the others would keep much memory alive."""
    rows = stack[len(stack) - count :] if reverse else stack[:count]
    return rows.copy() if 4 * count < len(stack) else rows

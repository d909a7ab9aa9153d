"""Loops whose steps assign variables or draw numbers: tables make some steps at a time, and others look on between.

A table computes the variables' values and assigns them at its end; the numbers that its steps draw are drawn before it
begins, in program order. It makes as many steps as take some milliseconds: so other threads see what a loop assigns,
and whoever interrupts it finds the variables and generators as they were before or after one of its steps. What a table
cannot do ends them, and the plan makes the other steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final

import numpy as np

from limelight.core import storage
from limelight.core.collector import collector_paused
from limelight.core.devices import CPU0
from limelight.core.spec import GeneratorSpec, VariableSpec
from limelight.executors.loops.instructions import Instructions, NotLowered
from limelight.executors.loops.loop_state import Cell, Draws, Generator, changed_cells, new_input
from limelight.executors.loops.open_loops import (
    LARGEST,
    MOST_LAYOUTS,
    ROOM,
    Layout,
    OpenLoop,
    OpenLoopOp,
    Refused,
    input_for,
    layout_of,
    part,
    refuse,
    rows_made,
    steps,
)
from limelight.executors.loops.program import Write, table
from limelight.executors.loops.traced_array import TracedArray
from limelight.graph.build import Rewriter
from limelight.graph.effects import WRITES, effects_of
from limelight.graph.ir import Graph, Node
from limelight.ops.random._draws import alone, return_to

SECONDS: Final = 0.02
"""How long a table runs, about: so much is lost by an interrupt."""
_WHILE: Final = ("while_loop", "while_detached", "while_forward")
_SCANS: Final = ("scan", "scan_forward")


def with_stateful_loops(graph: Graph, reasons: dict[Any, str] | None = None) -> Graph:
    """The graph with each such loop that tables can run as a node that has them do it.

    Args:
        graph: the graph.
        reasons: where it is noted, by a loop's body, why none can.
    """
    if not any(map(_is_one, graph.nodes)):
        return graph
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        made = _made(node, {} if reasons is None else reasons) if _is_one(node) else None
        if made is None:
            rewriter.keep(node)
        else:
            specs = [value.spec for value in node.outputs]
            rewriter.stand_in(node, rewriter.add(node, made, rewriter.inputs(node), (), specs))
    return rewriter.finish()


def _is_one(node: Node) -> bool:
    if not node.op.higher_order or node.device not in (None, CPU0) or node.op.name not in (*_WHILE, *_SCANS):
        return False
    effects = effects_of(node)
    return effects.changes and not effects.chains


def _made(node: Node, reasons: dict[Any, str]) -> StatefulLoopOp | None:
    runs = _Runs(node)
    try:
        runs.table(runs.rooms[0])
    except NotLowered as refusal:
        reasons[runs.body] = str(refusal)
        return None
    return StatefulLoopOp(node, runs)


class StatefulLoopOp(OpenLoopOp):
    """The op of a loop whose steps assign or draw."""

    def __init__(self, node: Node, runs: _Runs) -> None:
        super().__init__(node, runs, WRITES)


class _Runs:
    """Runs a loop by tables.

    Args:
        node: that of the loop.
    """

    def __init__(self, node: Node) -> None:
        params = node.params
        self._node = node
        self._is_while = node.op.name in _WHILE
        if self._is_while:
            self._loop = OpenLoop(params[0], params[1], params[2], 0, False)
        else:
            self._loop = OpenLoop(None, params[0], params[1], params[2], params[4])
        self._length: int | None = params[3]
        self._keeps_rows = node.op.name == "while_forward"  # and flags of its steps
        self._kernel = node.op.kernel_on("numpy")
        specs = [value.spec for value in node.inputs]
        self._generators = [i for i, spec in enumerate(specs) if isinstance(spec, GeneratorSpec)]
        self._storages = [
            i for i, spec in enumerate(specs) if isinstance(spec, VariableSpec) and i not in self._generators
        ]
        self._tables: dict[tuple[int, Layout], tuple[Any, Draws]] = {}
        known = self._known_steps()
        self.rooms = ROOM if known is None else tuple(sorted({min(room, max(known, 1)) for room in ROOM}))
        self._pace = 1  # steps that take the time that is allowed
        self._expected = 0  # steps of a run, by what the last one has made

    @property
    def body(self) -> Any:
        """The function of a step."""
        return self._loop.body

    def _known_steps(self) -> int | None:
        n, m = self._loop.n, self._loop.m
        scanned = [value.spec for value in self._node.inputs[n : n + m]]
        sizes = [getattr(spec, "shape", (None,))[0] for spec in scanned]
        return next((size for size in (*sizes, self._length) if size is not None), None)

    def table(self, room: int, layout: Layout = ()) -> tuple[Any, Draws]:
        """The table that makes up to `room` steps, and its draws. Raises NotLowered where there is none."""
        made = self._tables.get((room, layout))
        if made is None:
            if len(self._tables) >= MOST_LAYOUTS * len(ROOM):
                raise NotLowered("its operands have ever new layouts")
            with collector_paused():
                made = self._tables[room, layout] = self._table(room, layout)
        return made

    def _table(self, room: int, layout: Layout) -> tuple[Any, Draws]:
        to, draws, loop = Instructions(), Draws(room), self._loop
        n, m = loop.n, loop.m
        strides = [*[None] * (n + m), *(layout or [None] * len(self._node.inputs))]
        inputs: list[Any] = []
        operands: list[Any] = []
        for i, value in enumerate(self._node.inputs):
            if i in self._generators:
                operands.append(Generator(self._generators.index(i), draws))
                continue
            spec = value.spec.value if isinstance(value.spec, VariableSpec) else value.spec
            inputs.append(input_for(spec, room if n <= i < n + m else None, strides[i]))
            array = TracedArray(inputs[-1], to)
            operands.append(Cell(array) if i in self._storages else array)
        most = new_input((), np.dtype(np.int64))
        cells = changed_cells(self._node, operands)
        made = steps(loop, operands, TracedArray(most, to), room, to, cells)
        results = [x.view for x in (*made, *[cell.now for cell in cells])]
        every = [*inputs, *draws.tensors, most]
        if sum(x.buffer.nbytes for x in (*results, *draws.tensors)) > LARGEST and room > self.rooms[0]:
            raise NotLowered("its rows are large")
        place = self._place_of_input
        numbers = {x: i for i, x in enumerate(operands) if type(x) is Cell}
        writes = [Write(place(numbers[cell]), len(made) + k, True) for k, cell in enumerate(cells)]
        return table(every, results, to.list, refuse, [place(i) for i in self._storages], writes), draws

    def _place_of_input(self, i: int) -> int:
        """Tables take no generators."""
        return i - sum(k < i for k in self._generators)

    # Running

    def __call__(self, *data: Any) -> tuple[Any, ...]:
        storages = [data[i] for i in self._storages]
        if (storages and storage.told) or len(set(map(id, storages))) < len(storages):
            return self._rest(data, data, self._length)  # who listens hears of each assignment
        n, m = self._loop.n, self._loop.m
        total = len(data[n]) if m else None if self._is_while else self._length
        if any(len(x) != total for x in data[n : n + m]):
            return self._rest(data, data, self._length)
        limit = self._length if self._is_while else total
        carry, done = data[:n], 0
        made: list[tuple[Any, ...]] = []
        layout = layout_of(data[n + m :])
        while limit is None or done < limit:
            try:
                room, wanted = self._wanted(done, limit, layout)
                carry, count, stacks = self._some(carry, data, done, wanted, self.table(room, layout), room)
            except Refused:
                return self._joined(made, self._rest((*carry, *data[n:]), data, limit, done), done)
            done += count
            if count:
                made.append(stacks)
            if count < wanted:
                break
        self._expected = done
        if not done:
            return self._rest(data, data, self._length)
        live = (np.ones(done, np.bool_),) if self._keeps_rows else ()
        return (*carry, *live, *self._stacks(made))

    def _wanted(self, done: int, limit: int | None, layout: Layout) -> tuple[int, int]:
        """The room of the next table, and how many steps it is to make. Raises Refused where there is none."""
        left = self._expected - done if limit is None else limit - done
        wanted = min(self._pace, left) if left > 0 else self._pace
        while self.rooms:
            room = next((room for room in self.rooms if room >= wanted), self.rooms[-1])
            try:
                self.table(room, layout)
            except NotLowered:  # with so much room its rows are large, or it is for other layouts alone
                if any(one is not None for one in layout):
                    raise Refused from None
                self.rooms = tuple([one for one in self.rooms if one < room])
                continue
            return room, min(wanted, room)
        raise Refused

    def _some(
        self, carry: Any, data: Any, done: int, wanted: int, made: tuple[Any, Draws], room: int
    ) -> tuple[Any, int, tuple[Any, ...]]:
        """Makes up to `wanted` steps; the carried values, their number, and the rows of each stack.

        Args:
            carry: the values that are carried now.
            data: the operands of the loop.
            done: how many steps were made before.
            wanted: how many are to be made.
            made: the table, and its draws.
            room: the number of steps that the table has room for.

        Raises:
            Refused: nothing was done; the plan has to make the steps.
        """
        n, m, reverse = self._loop.n, self._loop.m, self._loop.reverse
        run, draws = made
        rows = [part(x, done, wanted, room, reverse) for x in data[n : n + m]]
        captures = [x for i, x in enumerate(data[n + m :], n + m) if i not in self._generators]
        generators = [data[i] for i in self._generators]
        held = [(data[i], data[i].array) for i in self._storages]
        start = perf_counter()
        before: list[Any] = []
        after: list[Any] = []
        try:
            drawn = _drawn(draws, generators, wanted, before, after)
            results = run(*carry, *rows, *captures, *drawn, np.int64(wanted))
        except Refused:  # also because somebody else has assigned: the table has not
            _draw_again(draws, generators, before, after, 0)
            raise
        except BaseException:
            if not held or all(one.array is array for one, array in held):  # nothing was assigned
                _draw_again(draws, generators, before, after, 0)
            raise
        count = int(results[n])
        if count < wanted:
            _draw_again(draws, generators, before, after, count)
        self._note_time(perf_counter() - start, wanted)
        stacks = results[n + 1 : n + 1 + self._stack_count]
        return results[:n], count, tuple([rows_made(x, count, reverse) for x in stacks])

    @property
    def _stack_count(self) -> int:
        return len(self._loop.body.graph.outputs) - self._loop.n

    def _note_time(self, seconds: float, made: int) -> None:
        pace = int(SECONDS * made / max(seconds, 1e-9))
        self._pace = max(1, min(pace, 8 * made, ROOM[-1]))

    def _rest(self, data: Any, whole: Any, limit: int | None, done: int = 0) -> tuple[Any, ...]:
        """What the plan's kernel makes of the steps behind the first `done`.

        Args:
            data: the operands, with the values that are carried now.
            whole: the operands of the loop.
            limit: the number of steps, or the most.
            done: how many are made.
        """
        n, m = self._loop.n, self._loop.m
        params = list(self._node.params)
        if limit is not None and params[3] is not None:
            params[3] = limit - done
        rows = [x[: len(x) - done] if self._loop.reverse else x[done:] for x in whole[n : n + m]]
        return self._kernel(*data[:n], *rows, *data[n + m :], *params)  # type: ignore[no-any-return]  # a tuple

    def _joined(self, made: list[Any], rest: tuple[Any, ...], done: int) -> tuple[Any, ...]:
        """The results of all steps, from the stacks of those that tables have made and what the plan has returned."""
        if not made:
            return rest
        n, first = self._loop.n, len(rest) - self._stack_count
        behind = rest[first:]
        live = (np.concatenate([np.ones(done, np.bool_), rest[n]]),) if self._keeps_rows else ()
        return (*rest[:n], *live, *self._stacks([*made, behind] if behind and len(behind[0]) else made))

    def _stacks(self, made: Sequence[Any]) -> list[Any]:
        ordered = made[::-1] if self._loop.reverse else made
        return [column[0] if len(column) == 1 else np.concatenate(column) for column in zip(*ordered, strict=True)]


def _drawn(draws: Draws, generators: Sequence[Any], steps: int, before: list[Any], after: list[Any]) -> list[Any]:
    """What so many steps draw; notes where the generators were before and behind that.

    Raises Refused where a draw fails: the plan says so at the draw, if the loop comes to it, behind what it assigns.
    """
    if not generators:
        return draws.make(generators, steps)
    with alone(generators):
        before += [one.position() for one in generators]
        try:
            drawn = draws.make(generators, steps)
            after += [one.position() for one in generators]
        except BaseException as error:
            return_to(generators, before)
            before.clear()
            if isinstance(error, Exception):
                raise Refused from None
            raise
        return drawn


def _draw_again(draws: Draws, generators: Sequence[Any], before: list[Any], after: list[Any], steps: int) -> None:
    """Has generators stand where `steps` steps leave them, unless others have drawn from one."""
    if not before:
        return
    with alone(generators):
        if not all(one.is_at(position) for one, position in zip(generators, after, strict=False)):
            return
        try:
            return_to(generators, before)
            draws.make(generators, steps)
        except BaseException:  # an interrupt: what is made is short, and the steps have been made
            return_to(generators, before)
            draws.make(generators, steps)
            raise

"""The executor `loops`: stretches of a graph run as tables of NumPy's inner loops, the rest as in the plan.

A table makes the calls that NumPy's functions would make, without Python, without NumPy's dispatch and, but for the
first microseconds, without the GIL, and so finds the plan's numbers to the bit. Loops, branches and calls are a part
of it, and assignments to variables are made at its end. What it cannot do (random draws outside of loops, Python's
functions, unknown sizes, other devices, bodies of loops with any of these) runs by the plan's kernels between two
tables. It is there where the package limelight-native is (engine/native).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from limelight.core.collector import collector_paused
from limelight.core.devices import Device
from limelight.executors import base
from limelight.executors.base import Runnable
from limelight.executors.error_lines import assigned_before
from limelight.executors.loops.lowering import NAME
from limelight.executors.loops.native_loops import is_installed, native
from limelight.executors.loops.open_loops import ROOM, OpenLoopOp, with_open_loops
from limelight.executors.loops.shape_specialisations import ShapeSpecialisations, is_here, may_have_tables
from limelight.executors.loops.stateful_loops import with_stateful_loops
from limelight.executors.loops.stretch import FinishedStretch, StretchPart
from limelight.executors.loops.stretches import in_stretches
from limelight.executors.placement import place
from limelight.executors.plan import codegen, plan
from limelight.executors.plan.kernel_calls import KernelCalls
from limelight.executors.plan.specialised_kernels import specialised
from limelight.graph.ir import Graph, Node
from limelight.ops.create.literal import constant_op


def build(graph: Graph, devices: Sequence[Device] = (), *, deliver: Device | None = None) -> Runnable:
    """Makes `graph` runnable: see `Executor.build`. Errors are those of the executor `plan`."""
    native()  # one that is too old says so here; below, what a kernel raises only keeps its node from the table
    run = _built(graph, devices, deliver)
    if is_here(devices, deliver) and may_have_tables(graph):
        return ShapeSpecialisations(graph, run, lambda sized: _built(sized, (), None))
    return run


def _built(graph: Graph, devices: Sequence[Device], deliver: Device | None) -> Runnable:
    # Nothing that is made here is garbage, and what the tables are made from goes before the pause ends.
    with collector_paused():
        return _made(graph, devices, deliver)


def _made(graph: Graph, devices: Sequence[Device], deliver: Device | None) -> Runnable:
    placed = place(graph, devices, deliver, build)
    whole = with_stateful_loops(with_open_loops(placed.graph))
    stretched = in_stretches(whole, lambda stretch: _Otherwise(stretch.part, whole))
    run: Any = plan.assembled(stretched.graph, placed.outputs, placed.graph)
    inside = [
        f"# {table.op}: {', '.join([node.op.name for node in s.nodes])}\n" for table, s in stretched.stretches.items()
    ]
    run.source = "".join([run.source or "", *inside])
    return run  # type: ignore[no-any-return]  # the plan's function


def code(graph: Graph) -> list[tuple[Node, str]]:
    """Each node with the instructions of the table that runs it, or the plan's line and why it is in no table."""
    placed = place(graph, (), None, build)
    refusals: dict[Any, str] = {}
    whole = with_stateful_loops(with_open_loops(placed.graph), refusals)
    stretched = in_stretches(whole, lambda stretch: _Otherwise(stretch.part, whole))
    lines: list[tuple[Node, str]] = []
    for part in codegen.emit(stretched.graph):
        for node, line in part.code():
            stretch = stretched.stretches.get(node)
            if isinstance(node.op, OpenLoopOp):
                lines.append((node.op.node, f"table loop: {node.op}, up to {ROOM[-1]} steps at a time"))
            elif stretch is None:
                why = next((refusals[f] for f in node.functions if f in refusals), stretched.reasons.get(node))
                lines.append((node, f"{line}  # plan: {why}" if why else line))
            else:
                number = list(stretched.stretches).index(node) + 1
                lines += [(inner, _instructions(stretch, inner, number)) for inner in stretch.nodes]
    return lines


def _instructions(stretch: FinishedStretch, node: Node, table: int) -> str:
    numbers = stretch.instructions_of(node)
    if not numbers:
        return f"table {table}: {node.op}, a view or known beforehand"
    which = f"instruction {numbers[0]}" if len(numbers) == 1 else f"instructions {numbers[0]} to {numbers[-1]}"
    return f"table {table}: {node.op}, {which}"


class _Otherwise:
    """Runs the nodes of a stretch by the plan: where arrays are laid out otherwise than its table expects.

    It is made when it is first needed. What is wrong with an operand is said there in the plan's words. Its results are
    new arrays, as a table's are, into which the next op may write: a branch of the plan may return an operand.
    """

    def __init__(self, part: StretchPart, whole: Graph) -> None:
        self._part = part
        self._whole = whole

    @cached_property
    def _run(self) -> Callable[..., tuple[Any, ...]]:
        first = next(node for node in self._part.nodes if node.op is not constant_op)
        assigned = assigned_before(self._whole, first)
        return plan.build(self._part.graph(self._whole), assigned=assigned)

    @cached_property
    def _may_be_shared(self) -> list[bool]:
        """Of each result whether it may be an operand, a literal, or a part of one."""
        calls = KernelCalls(specialised)
        return [value.node is None or not calls.of(value.node, "numpy").fresh for value in self._part.results]

    def __call__(self, *payloads: Any) -> tuple[Any, ...]:
        results = self._run(*payloads)
        if not any(self._may_be_shared):
            return results
        pairs = zip(results, self._may_be_shared, strict=True)
        return tuple([np.array(x) if shared and isinstance(x, np.ndarray) else x for x, shared in pairs])


if is_installed():
    base.register(base.FunctionExecutor(NAME, build, code))

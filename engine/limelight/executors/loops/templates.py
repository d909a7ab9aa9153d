"""Instructions by the pattern of a node: what a kernel does with arrays is written down once for each layout of these.

Graphs of thousands of nodes have few patterns: an op, its parameters, and the shape and strides of each operand. The
second node of a pattern, in this graph or a later one, gets the instructions of the first one with its own operands;
limelight-native looks it up and writes them (`patterns.c`, `templates.c`), in a tenth of the time that Python takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from limelight.core.devices import CPU0
from limelight.executors.loops.instructions import Instruction
from limelight.executors.loops.layout import View
from limelight.executors.loops.native_records import native
from limelight.graph.ir import Node, Value

MOST_KEPT: Final = 8192
"""Templates; when there are more, all are forgotten, and the next graph begins anew."""
_LARGEST_CONSTANT: Final = 1 << 16
"""Bytes of an array of its own that a template may keep alive."""

_known: Final[dict[Any, Any]] = {}


def take_known(
    nodes: Sequence[Node],
    start: int,
    views: dict[Value, Any],
    instructions: list[Any],
    ends: list[int],
    missing: Callable[[Value], View | None] | None = None,
) -> int:
    """Writes nodes from `start` on, up to the first one whose pattern is not known; returns its number.

    A template holds for a node where its results are those that the graph says.

    Args:
        nodes: a tuple.
        start: the number of the first node.
        views: what stands for each value, to which the nodes' results are added.
        instructions: to which theirs are appended.
        ends: to which is appended, for each node, how many instructions there are behind it.
        missing: what stands for a value that is not among `views`; None where there is nothing.
    """
    n: int = native().take_known(nodes, start, _known, views, missing, CPU0, instructions, ends)
    return n


def keep(node: Node, operands: Sequence[View], instructions: Sequence[Any], results: Sequence[View]) -> None:
    """Keeps the template of a node that was lowered, unless it has more than calls of loops.

    Numbers in operands do not decide, those of constants neither: where a kernel looks at one (`TracedArray.item`)
    there is no template. What the plan calls for an op follows from the pattern, but for powers, which have none.

    Args:
        node: the node.
        operands: its operands.
        instructions: those that were appended.
        results: its results.
    """
    key = native().pattern(node.op, node.params, tuple(operands))
    new = None if key is None else _template(operands, instructions, results)
    if new is None:
        return
    if len(_known) >= MOST_KEPT:
        _known.clear()
    _known[key] = new


def forget() -> None:
    """Forgets all templates."""
    _known.clear()


def _template(operands: Sequence[View], instructions: Sequence[Any], results: Sequence[View]) -> Any:
    """The native template: see the README of limelight-native."""
    if not all(type(one) is Instruction for one in instructions):
        return None
    n = len(operands)
    buffers = {x.buffer: i for i, x in enumerate(operands)}
    constants = {x.buffer for one in instructions for x in one.operands if x.buffer.array is not None} - buffers.keys()
    if sum(buffer.nbytes for buffer in constants) > _LARGEST_CONSTANT:
        return None
    new: list[int] = []
    numbers: dict[Any, int] = {}

    def number(view: View) -> int:
        for i, operand in enumerate(operands):
            if view is operand:
                return i
        return numbers.setdefault(described(view), n + len(numbers))

    def described(view: View) -> Any:
        buffer = view.buffer
        if buffer not in buffers and buffer.array is not None:
            return view
        if buffer not in buffers:
            buffers[buffer] = n + len(new)
            new.append(buffer.nbytes)
        at = buffers[buffer]
        offset = view.offset - operands[at].offset if at < n else view.offset
        return (at, offset, view.shape, view.strides, view.dtype)

    calls = tuple([(o.loop, tuple(map(number, o.operands)), o.dims, o.steps, o.axes) for o in instructions])
    returned = tuple(map(number, results))
    types = tuple([(x.shape, x.dtype) for x in results])
    return native().Template(n, tuple(new), tuple(numbers), calls, returned, types)

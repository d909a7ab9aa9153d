"""Instructions by the pattern of a node: what a kernel does with arrays is written down once for each layout of these.

Graphs of thousands of nodes have few patterns: an op, its parameters, and the shape and strides of each operand. The
second node of a pattern, in this graph or a later one, gets the instructions of the first one with its own operands;
limelight-native looks it up and writes them (`patterns.c`, `templates.c`), in a tenth of the time that Python takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from limelight.core.devices import CPU0
from limelight.core.op import Op
from limelight.executors.loops.instructions import Guard, Instruction
from limelight.executors.loops.layout import View
from limelight.executors.loops.native_records import native
from limelight.graph.ir import Node, Value

MOST_KEPT: Final = 8192
"""Templates and refusals; when there are more, all are forgotten, and the next graph begins anew."""
_LARGEST_CONSTANT: Final = 1 << 14
"""Bytes of arrays of its own that a template may keep alive: 128 MB in all templates together."""

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


def written(what: Any, operands: tuple[View, ...], instructions: list[Any]) -> tuple[View, ...] | None:
    """Appends the instructions that are kept for these operands; returns the results, or None where there are none."""
    template = _known.get(native().pattern(what, (), operands))
    results: tuple[View, ...] | None = None if template is None else template.applied(operands, instructions)
    return results


def keep(node: Node, operands: Sequence[View], instructions: Sequence[Any], results: Sequence[View]) -> None:
    """Keeps the instructions of a node that was lowered, unless they have more than calls of loops and guards.

    Numbers in operands do not decide, those of constants neither: where a kernel looks at one (`TracedArray.item`)
    there is no template. What the plan calls for an op follows from the pattern, but for powers, which have none.

    Args:
        node: the node.
        operands: its operands.
        instructions: those that were appended.
        results: its results.
    """
    key = native().pattern(id(node.op), node.params, tuple(operands))
    _keep(key, _template(node.op, operands, instructions, results))


def keep_as(what: Any, operands: tuple[View, ...], instructions: Sequence[Any], results: Sequence[View]) -> None:
    """Keeps instructions for `written`.

    Args:
        what: what they do, equal for what does the same with all operands that lie the same.
        operands: the operands.
        instructions: those that were appended.
        results: the results.
    """
    _keep(native().pattern(what, (), operands), _template(None, operands, instructions, results))


def refusal(node: Node, operands: Sequence[View]) -> str:
    """Why a node of this pattern could not be lowered; nothing where that is not known."""
    kept = _known.get(native().pattern(id(node.op), node.params, tuple(operands)))
    return kept.reason if type(kept) is _Refusal else ""


def keep_refusal(node: Node, operands: Sequence[View], reason: str) -> None:
    """Keeps why a node could not be lowered: its kernel is not traced again for those that lie the same.

    As for templates, numbers must not have decided.
    """
    _keep(native().pattern(id(node.op), node.params, tuple(operands)), _Refusal(node.op, reason))


def _keep(key: Any, new: Any) -> None:
    if key is None or new is None:
        return
    if len(_known) >= MOST_KEPT:
        _known.clear()
    _known[key] = new


class _Refusal(NamedTuple):
    """Why nodes of a pattern are in no table, and their op, which is kept alive: patterns know it by its `id`."""

    op: Op
    reason: str


def forget() -> None:
    """Forgets all templates."""
    _known.clear()


def _template(alive: Any, operands: Sequence[View], instructions: Sequence[Any], results: Sequence[View]) -> Any:
    """The native template: see the README of limelight-native."""
    if not all(type(one) in (Instruction, Guard) for one in instructions):
        return None
    n = len(operands)
    buffers = {x.buffer: i for i, x in enumerate(operands)}
    views = [*results, *[x for one in instructions for x in one.operands]]
    constants = {x.buffer for x in views if x.buffer.array is not None} - buffers.keys()
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

    def call(one: Any) -> Any:
        where = tuple(map(number, one.operands))
        return where if type(one) is Guard else (one.loop, where, *one[2:])

    calls = tuple(map(call, instructions))
    returned = tuple(map(number, results))
    types = tuple([(x.shape, x.dtype) for x in results])
    return native().Template(alive, n, tuple(new), tuple(numbers), calls, returned, types)

"""Instructions by the pattern of a node: what a kernel does with arrays is written down once for each layout of these.

Graphs of thousands of nodes have few patterns: an op, its parameters, and the shape and strides of each operand. The
second node of a pattern, in this graph or a later one, gets the instructions of the first one with its own operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from limelight.core.op import Op
from limelight.executors.loops.instructions import Instruction, Instructions
from limelight.executors.loops.layout import Buffer, Sizes, View
from limelight.graph.ir import Node

Reference: TypeAlias = "int | View | tuple[int, int, Sizes, Sizes, Any]"
"""An operand as it is, by its number; a view of a constant; or a view by the number of its buffer, which is that of an
operand or behind these that of a new buffer, its place in it, shape, strides and dtype."""

MOST_KEPT: Final = 8192
"""Templates; when there are more, all are forgotten, and the next graph begins anew."""
_LARGEST_CONSTANT: Final = 1 << 16
"""Bytes of an array of its own that a template may keep alive."""


class Template(NamedTuple):
    """The instructions of a pattern.

    Args:
        op: of the nodes, which is kept alive, since patterns know it by its `id`.
        buffers: the bytes of each new buffer.
        calls: loop, references, dims, steps and axes of each instruction.
        results: of the node.
        types: shape and dtype of each result.
        single: loop, bytes, shape, strides and dtype of the result, dims, steps and axes where there is one instruction
            that has the operands as they are, and a new buffer for its result; None for other patterns.
    """

    op: Op
    buffers: tuple[int, ...]
    calls: tuple[tuple[Any, tuple[Reference, ...], Sizes, Sizes, Sizes], ...]
    results: tuple[Reference, ...]
    types: tuple[tuple[Sizes, Any], ...]
    single: tuple[Any, int, Sizes, Sizes, Any, Sizes, Sizes, Sizes] | None

    def fits(self, node: Node) -> bool:
        """Whether the graph says of a node's results what its instructions make."""
        types = self.types
        if len(types) == 1:  # nearly always
            spec: Any = node.outputs[0].spec
            return spec.shape == types[0][0] and spec.dtype is types[0][1]
        specs: list[Any] = [value.spec for value in node.outputs]
        return all(x.shape == shape and x.dtype is dtype for x, (shape, dtype) in zip(specs, types, strict=True))

    def applied(self, views: Sequence[View], to: Instructions) -> list[View]:
        """Appends the instructions for these operands; returns the results."""
        if self.single is not None:  # three nodes of four; named tuples are made in half of the time like this
            loop, nbytes, shape, strides, dtype, dims, steps, axes = self.single
            buffer = _bare(Buffer)  # without a call of Python's
            buffer.nbytes = nbytes
            out = _new(View, (buffer, 0, shape, strides, dtype))
            to.list.append(_new(Instruction, (loop, (*views, out), dims, steps, axes)))
            return [out]
        buffers = [x[0] for x in views]
        buffers.extend(map(Buffer, self.buffers))
        n = len(views)
        append = to.list.append
        for loop, references, dims, steps, axes in self.calls:
            inside = []
            for x in references:  # a comprehension is a call of its own in CPython 3.11
                inside.append(views[x] if type(x) is int else _view(x, views, buffers, n))  # noqa: PERF401
            append(_new(Instruction, (loop, tuple(inside), dims, steps, axes)))
        return [views[x] if type(x) is int else _view(x, views, buffers, n) for x in self.results]


_new: Final[Any] = tuple.__new__
_bare: Final[Any] = object.__new__


def _view(reference: Any, views: Sequence[View], buffers: Sequence[Buffer], n: int) -> View:
    if type(reference) is View:
        return reference
    number, offset, shape, strides, dtype = reference
    at = offset + views[number][1] if number < n else offset
    return _new(View, (buffers[number], at, shape, strides, dtype))  # type: ignore[no-any-return]  # a View


_known: Final[dict[Any, Template]] = {}


def known(node: Node, key: Any) -> Template | None:
    """The template of a node, by its pattern, if there is one that fits the node's results."""
    template = _known.get(key)
    return template if template is not None and template.fits(node) else None


def keep(key: Any, node: Node, operands: Sequence[View], instructions: Sequence[Any], results: Sequence[View]) -> None:
    """Keeps the template of a node that was lowered, unless it has more than calls of loops.

    Args:
        key: its pattern.
        node: the node.
        operands: its operands.
        instructions: those that were appended.
        results: its results.
    """
    new = _template(node.op, operands, instructions, results)
    if new is None:
        return
    if len(_known) >= MOST_KEPT:
        _known.clear()
    _known[key] = new


def forget() -> None:
    """Forgets all templates."""
    _known.clear()


def _template(op: Op, views: Sequence[View], instructions: Sequence[Any], results: Sequence[View]) -> Template | None:
    if not all(type(one) is Instruction for one in instructions):
        return None
    numbers = {x.buffer: i for i, x in enumerate(views)}
    constants = {x.buffer for one in instructions for x in one.operands if x.buffer.array is not None} - numbers.keys()
    if sum(buffer.nbytes for buffer in constants) > _LARGEST_CONSTANT:
        return None
    new: list[int] = []

    def reference(view: View) -> Reference:
        for i, operand in enumerate(views):
            if view is operand:
                return i
        buffer = view.buffer
        if buffer.array is not None and buffer not in numbers:
            return view
        if buffer not in numbers:
            numbers[buffer] = len(views) + len(new)
            new.append(buffer.nbytes)
        number = numbers[buffer]
        offset = view.offset - views[number].offset if number < len(views) else view.offset
        return (number, offset, view.shape, view.strides, view.dtype)

    calls = tuple([(o.loop, tuple(map(reference, o.operands)), o.dims, o.steps, o.axes) for o in instructions])
    returned = tuple(map(reference, results))
    types = tuple([(x.shape, x.dtype) for x in results])
    return Template(op, tuple(new), calls, returned, types, _single(len(views), new, calls, returned))


def _single(n: int, new: Sequence[int], calls: Sequence[Any], results: Sequence[Any]) -> Any:
    if len(calls) != 1 or len(results) != 1 or len(new) != 1:
        return None
    loop, references, *rest = calls[0]
    out = references[-1]
    if references[:-1] != tuple(range(n)) or results[0] != out or out[:2] != (n, 0):
        return None
    return (loop, new[0], *out[2:], *rest)


def pattern(node: Node, operands: Sequence[View]) -> Any:
    """What decides about the instructions of a node, as a key; None where equal parameters may mean something else.

    Numbers in operands do not, those of constants neither: where a kernel looks at one (`TracedArray.item`) there is no
    template. What the plan calls for an op follows from the rest, but for powers, which have no template.
    """
    params = node.params
    head = _typed(params) if params else ()
    if head is None:
        return None
    n = len(operands)
    if n == 1:
        return (id(node.op), head, operands[0][2:])
    if n == 2:
        x, y = operands
        if x[0] is not y[0]:
            return (id(node.op), head, x[2:], y[2:])
    return _general_pattern(node, head, operands)


def _general_pattern(node: Node, head: Any, operands: Sequence[View]) -> Any:
    key: list[Any] = [id(node.op), head]
    seen: dict[Buffer, tuple[int, int]] = {}
    for i, x in enumerate(operands):
        buffer, offset, *rest = x
        if buffer in seen:  # another view of it, perhaps
            first, there = seen[buffer]
            key.append((first, offset - there, *rest))
        else:
            seen[buffer] = (i, offset)
            key.append(x[2:])
    return tuple(key)


_PLAIN: Final = frozenset([int, bool, str, type(None)])


def _typed(params: Sequence[Any]) -> tuple[Any, ...] | None:
    """Parameters with their types, since 1 and True are equal; None where there is one that cannot be compared."""
    head: list[Any] = []
    for x in params:
        kind = type(x)
        if kind in _PLAIN or isinstance(x, np.dtype):
            head += (kind, x)
        elif kind is float:
            head += (kind, x, copysign(1.0, x))
        elif kind is tuple and (inner := _typed(x)) is not None:
            head += (kind, inner)
        else:
            return None
    return tuple(head)

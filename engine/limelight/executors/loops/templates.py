"""Instructions by the pattern of a node: what a kernel does with arrays is written down once for each layout of these.

A graph of thousands of nodes has few patterns: an op, its parameters, and the shape and strides of each operand. The
second node of a pattern gets the instructions of the first one, with its own operands, in a third of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from limelight.executors.loops.instructions import Instruction, Instructions
from limelight.executors.loops.layout import Buffer, Sizes, View
from limelight.executors.loops.traced_array import TracedArray
from limelight.executors.plan.kernel_calls import KernelCall
from limelight.graph.ir import Node

Reference: TypeAlias = "int | View | tuple[int, int, Sizes, Sizes, Any]"
"""An operand as it is, by its number; a view of a constant; or a view by the number of its buffer, which is that of an
operand or behind these that of a new buffer, its place in it, shape, strides and dtype."""


class Template(NamedTuple):
    """The instructions of a pattern.

    Args:
        buffers: the bytes of each new buffer.
        calls: loop, references, dims, steps and axes of each instruction.
        results: of the node.
    """

    buffers: tuple[int, ...]
    calls: tuple[tuple[Any, tuple[Reference, ...], Sizes, Sizes, Sizes], ...]
    results: tuple[Reference, ...]

    def applied(self, operands: Sequence[TracedArray], to: Instructions) -> list[TracedArray]:
        """Appends the instructions for these operands; returns the results."""
        views = [x.view for x in operands]
        buffers = [x.buffer for x in views]
        buffers.extend(map(Buffer, self.buffers))
        n = len(views)
        append = to.list.append
        for loop, references, dims, steps, axes in self.calls:
            inside = tuple([views[x] if type(x) is int else _view(x, views, buffers, n) for x in references])
            append(Instruction(loop, inside, dims, steps, axes))
        return [operands[x] if type(x) is int else TracedArray(_view(x, views, buffers, n), to) for x in self.results]


def _view(reference: Any, views: Sequence[View], buffers: Sequence[Buffer], n: int) -> View:
    if type(reference) is View:
        return reference
    number, offset, shape, strides, dtype = reference
    return View(buffers[number], offset + views[number].offset if number < n else offset, shape, strides, dtype)


def pattern(head: tuple[Any, ...], operands: Sequence[TracedArray]) -> tuple[Any, ...]:
    """What decides about the instructions of a node, as a key: `head` is what its kernel gets besides operands.

    Numbers do not, those of constants neither: where a kernel looks at one (`TracedArray.item`) there is no template.
    """
    key: list[Any] = [head]
    seen: dict[Buffer, int] = {}
    for x in operands:
        buffer, offset, shape, strides, dtype = x.view
        if buffer in seen:  # another view of it, perhaps
            key += (len(seen), offset - seen[buffer], [*seen].index(buffer), shape, strides, dtype)
        else:
            seen[buffer] = offset
            key += (shape, strides, dtype)
    return tuple(key)


def template(
    operands: Sequence[TracedArray], instructions: Sequence[Any], results: Sequence[TracedArray]
) -> Template | None:
    """The template of a node that was lowered; None where it has more than calls of loops.

    Args:
        operands: those of the node.
        instructions: those that were appended.
        results: those of the node.
    """
    numbers = {x.view.buffer: i for i, x in enumerate(operands)}
    views = [x.view for x in operands]
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

    if not all(type(one) is Instruction for one in instructions):
        return None
    calls = tuple([(o.loop, tuple(map(reference, o.operands)), o.dims, o.steps, o.axes) for o in instructions])
    returned = tuple([reference(x.view) for x in results])
    return Template(tuple(new), calls, returned)


_PLAIN: Final = frozenset([int, bool, str, type(None)])


class _Same:
    """An array as a part of a key: equal to itself alone, and alive as long as the key is."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __hash__(self) -> int:
        return id(self._array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._array is other._array


def head_of(node: Node, call: KernelCall) -> tuple[Any, ...] | None:
    """What a kernel gets besides operands; None where equal parameters may mean something else (0.0 and -0.0, say)."""
    params = (*call.extra, *(node.params if call.params is None else call.params))
    head: list[Any] = [node.op, call.kernel, call.first, call.infix, call.suffix, len(call.extra)]
    for x in params:
        if type(x) is np.ndarray:
            head.append(_Same(x))
        elif type(x) in _PLAIN or _is_plain(x):
            head += (type(x), x)
        else:
            return None
    return tuple(head)


def _is_plain(param: Any) -> bool:
    if type(param) is tuple:
        return all(type(x) in _PLAIN or _is_plain(x) for x in param)
    return isinstance(param, np.dtype)

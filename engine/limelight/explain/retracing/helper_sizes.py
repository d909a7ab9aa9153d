"""Whether a function's helpers, methods and modules need a size as a number: then no signature may leave it open.

Their source says which sizes they read. Which of these vary is told by two traces that differ in sizes alone, op by op.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import chain
from types import CodeType
from typing import Any

from limelight.explain.retracing.size_reads import READS, told
from limelight.graph.ir import Graph, Node, Value
from limelight.user_code.code_uses import reads_sizes
from limelight.user_code.definitions import definition_of
from limelight.user_code.names_read import codes, is_users
from limelight.user_code.source_line import is_library

_Axes = frozenset[int | None]


def need_numbers(function: Any, traces: Sequence[Any], *, loops: bool) -> bool:
    """Whether a helper of `function` may read a size that varies, or its traces have an op for each of so many.

    Without two traces that differ in sizes alone, whatever a helper reads may vary. `loops`: the function's own loops
    over sizes are to be written anew, so that traces are of different lengths for a reason that is known.
    """
    own = getattr(function, "__code__", None)
    reading = {code: axes for code in codes(function) if code is not own and (axes := _read_in(code))}
    pair = _differing_in_sizes(traces)
    if pair is None or loops:
        return bool(reading)
    first, second = [trace.graph for trace in pair]
    if [node.op for node in first.nodes] != [node.op for node in second.nodes]:
        return True
    return any(_vary(code, axes, first, second) for code, axes in reading.items())


def _read_in(code: CodeType) -> _Axes:
    """The axes of the sizes that the user's code reads, None for one that is not written as a number."""
    if is_library(code) or not is_users(code.co_filename) or not reads_sizes(code):
        return frozenset()
    tree = definition_of(code)
    if tree is None:
        return frozenset([None])
    nodes = list(told(tree))
    axes = {id(node.value): node.slice for node in nodes if isinstance(node, ast.Subscript)}
    reads = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in READS]
    return frozenset(_number(axes.get(id(read))) if read.attr == "shape" else None for read in reads)


def _number(axis: ast.expr | None) -> int | None:
    try:
        number = None if axis is None else ast.literal_eval(axis)
    except ValueError:
        return None
    return number if type(number) is int else None


def _differing_in_sizes(traces: Sequence[Any]) -> tuple[Any, Any] | None:
    """The newest trace, and another of the same call but for its sizes."""
    if not traces:
        return None
    newest = traces[-1]
    return next(((one, newest) for one in traces[:-1] if newest.key.generalised(one.key) is not None), None)


def _vary(code: CodeType, axes: _Axes, first: Graph, second: Graph) -> bool:
    """Whether one of the axes varies in what the ops of that code take and give; of one without ops, in any value."""
    pairs = list(zip(first.nodes, second.nodes, strict=True))
    own = [(one, other) for one, other in pairs if _is_by(one, code)] or pairs
    return any(_differ(a, b, axes) for one, other in own for a, b in zip(_values(one), _values(other), strict=True))


def _is_by(node: Node, code: CodeType) -> bool:
    lines = [line for _, _, line in code.co_lines() if line is not None]
    return any(at.file == code.co_filename and min(lines) <= at.line <= max(lines) for at in node.stack)


def _values(node: Node) -> Iterator[Value]:
    return chain(node.inputs, node.outputs)


def _differ(a: Value, b: Value, axes: _Axes) -> bool:
    one, other = getattr(a.spec, "shape", None), getattr(b.spec, "shape", None)
    if one is None or other is None:
        return False
    if None in axes or len(one) != len(other):
        return bool(one != other)
    return any(one[axis] != other[axis] for axis in axes if axis is not None and -len(one) <= axis < len(one))

"""Whether a function's helpers, methods and modules need a size as a number: then no signature may leave it open.

Their source says which sizes they read, and what for. Which of these vary is told by traces that differ in sizes
alone, op by op: a call that makes another of them is understood once it has been traced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from math import prod
from types import CodeType
from typing import Any, NamedTuple

from limelight.core.shapes import Shape
from limelight.explain.retracing.size_uses import Axes, SizeUse, size_uses
from limelight.graph.ir import Graph, Node
from limelight.staging.key import Key
from limelight.user_code.names_read import scopes
from limelight.user_code.source_line import Source

_Nodes = Sequence[tuple[Node, ...]]
"""The nodes of some traces side by side."""


class Need(NamedTuple):
    """What may need a size as a number; `is_known`: the traces show that it does vary."""

    what: SizeUse | Source
    is_known: bool

    def __str__(self) -> str:
        if isinstance(self.what, Source):
            return f"The ops are others for another size from {self.what} on, so no trace serves all sizes."
        how = "is" if self.is_known else "may be"
        said = f"{self.what} {how} needed as a number, which no trace for all sizes has"
        instead = self.what.instead
        then = "and `input_signature` or `reduce_retracing=True` can leave it open"
        return f"{said}; write `{instead}` there, or -1 in a shape, {then}." if instead else f"{said}."


def are_seen(traces: Sequence[Any], key: Key) -> bool:
    """Whether traces show all sizes that vary together with a call's."""
    alike = _alike(traces)
    return bool(alike) and _merged(alike).generalised(key) == _merged(alike)


def need(function: Any, traces: Sequence[Any], key: Key, *, loops: bool, own: bool = False) -> Need | None:
    """What of `function` may need as a number a size that varies; also an op that not all traces have.

    Where traces do not show what varies, whatever is read may.

    Args:
        function: the Python function.
        traces: of it.
        key: of the call.
        loops: its own loops over sizes are to be written anew, so traces are of different lengths for a known reason.
        own: what it reads itself counts as what its helpers do.
    """
    mine = getattr(function, "__code__", None)
    read = [(one.code, size_uses(one)) for one in scopes(function) if own or one.code is not mine]
    graphs = [trace.graph for trace in _alike(traces)]
    if loops or not are_seen(traces, key):
        return next((Need(use, False) for _, uses in read for use in uses), None)
    other = next((at for graph in graphs if (at := _other_op(graphs[0], graph)) is not None), None)
    if other is not None:
        return Need(other, True)
    nodes = list(zip(*[graph.nodes for graph in graphs], strict=True))
    return next((Need(use, True) for code, uses in read for use in _varying(code, uses, nodes)), None)


def _alike(traces: Sequence[Any]) -> list[Any]:
    """The newest trace, and of those of the same call but for its sizes as many as show each size that varies."""
    alike: list[Any] = list(traces[-1:])
    for one in traces[:-1]:
        merged = _merged(alike)
        if (wider := merged.generalised(one.key)) is not None and wider != merged:
            alike.append(one)
    return alike


def _merged(traces: Sequence[Any]) -> Key:
    """The key with all sizes open in which traces differ."""
    key: Key = traces[0].key
    for one in traces[1:]:
        key = key.generalised(one.key) or key
    return key


def _other_op(first: Graph, second: Graph) -> Source | None:
    """The line from which on two traces have not the same ops."""
    if [node.op for node in first.nodes] == [node.op for node in second.nodes]:
        return None
    shorter, longer = sorted([first.nodes, second.nodes], key=len)
    differing = [node for node, other in zip(longer, shorter, strict=False) if node.op != other.op]
    node = (*differing, *longer[len(shorter) :])[0]
    return node.stack[0] if node.stack else Source("<unknown>", 1, "")


def _varying(code: CodeType, uses: list[SizeUse], nodes: _Nodes) -> Iterator[SizeUse]:
    """The uses whose sizes vary in what the ops of that code take and give; of one without ops, in any value."""
    own = [row for row in nodes if _is_by(row[0], code)] or nodes if uses else []
    values = [value for row in own for value in zip(*map(_shapes, row), strict=True)]
    serves = all(_has_one_unknown(row) for row in own if row[0].op.name == "reshape")
    for use in uses:
        if not (use.is_shape and serves) and any(_differ(value, use.axes) for value in values):
            yield use


def _is_by(node: Node, code: CodeType) -> bool:
    lines = [line for _, _, line in code.co_lines() if line is not None]
    return any(at.file == code.co_filename and min(lines) <= at.line <= max(lines) for at in node.stack)


def _shapes(node: Node) -> list[Shape]:
    """Those of what an op takes and gives; what is no tensor has none."""
    return [getattr(value.spec, "shape", ()) for value in chain(node.inputs, node.outputs)]


def _has_one_unknown(reshapes: Sequence[Node]) -> bool:
    """Whether a reshape may be given None: for the one size of its tensor that varies, as the others agree."""
    (fixed_in, open_in), (fixed_out, open_out) = [
        _parted([getattr(value.spec, "shape", ()) for value in values])
        for values in ([node.inputs[0] for node in reshapes], [node.outputs[0] for node in reshapes])
    ]
    return open_in == open_out == 0 or (open_in == open_out == 1 and fixed_in == fixed_out > 0)


def _parted(shapes: Sequence[Shape]) -> tuple[int, int]:
    """How many elements the sizes have that agree, and how many sizes do not."""
    fixed = [sizes[0] for sizes in zip(*shapes, strict=False) if len(set(sizes)) == 1]
    return prod([size for size in fixed if size is not None]), min(map(len, shapes)) - len(fixed)


def _differ(shapes: Sequence[Shape], axes: Axes) -> bool:
    if axes is None or len(set(map(len, shapes))) > 1:
        return len(set(shapes)) > 1
    part = axes if isinstance(axes, slice) else slice(axes, axes + 1 or None)
    return len({shape[part] for shape in shapes}) > 1

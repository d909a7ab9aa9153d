"""Computes equal things once (common subexpressions)."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any, Final

import numpy as np

from limelight.graph.build import Rewriter
from limelight.graph.effects import NONE, Effects, effects_of
from limelight.graph.ir import Graph, Literal, Node, Value
from limelight.optimise.pass_record import PassRecord, Recorder
from limelight.optimise.product_operands import Partners, partners_of, would_meet

COMPARED: Final = 4096
"""Literals of at most this many bytes are compared by content, larger ones by identity."""

_BY_VALUE: Final = {type(None), bool, int, str}


def share(graph: Graph) -> tuple[Graph, PassRecord]:
    """`graph` with nodes that do the same to the same operands merged into the first of them.

    Random draws, writes and I/O are never merged, reads of a variable only when no write lies between.
    """
    return _share(graph, {})


def share_exactly(graph: Graph) -> tuple[Graph, PassRecord]:
    """The same without what would make one array of both operands of a matrix product (`product_operands`)."""
    return _share(graph, partners_of(graph))


def _share(graph: Graph, apart: Partners) -> tuple[Graph, PassRecord]:
    """`share`, but for values that have to stay `apart` from others."""
    recorder = Recorder("share", graph)
    rewriter = Rewriter(graph)
    first: dict[tuple[Any, ...], Node] = {}
    n_writes: dict[Value, int] = {}
    for node in graph.nodes:
        key = _key(node, rewriter, n_writes)
        earlier = first.get(key) if key is not None else None
        if (
            earlier is None
            or not _same_specs(earlier, node)
            or any(map(partial(would_meet, apart, rewriter), node.outputs, earlier.outputs))
        ):
            kept = rewriter.keep(node)
            if key is not None:
                first[key] = kept
        else:
            rewriter.replace(node, earlier.outputs, by=earlier)
            recorder.note("common subexpression", f"an earlier {node.op} computes the same", (node,), (earlier,))
    return recorder.finish(rewriter)


def _same_specs(earlier: Node, node: Node) -> bool:
    """Whether the same sizes are known of what both compute: they may have been declared for one of them only."""
    return all(map(operator.eq, [x.spec for x in earlier.outputs], [x.spec for x in node.outputs]))


def _key(node: Node, rewriter: Rewriter, n_writes: dict[Value, int]) -> tuple[Any, ...] | None:
    """What makes two nodes the same computation; None for one that is like no other."""
    op = node.op
    effects: Effects = NONE
    if op.effect is not None or op.higher_order:
        effects = effects_of(node)
        for variable in effects.writes:
            n_writes[variable] = n_writes.get(variable, 0) + 1
        if effects.changes:
            return None
    inputs = rewriter.inputs(node)
    if not node.params and not effects.reads:
        return (id(op), inputs, node.device)
    versions = tuple([n_writes.get(value, 0) for value in node.inputs]) if effects.reads else None
    try:
        return (id(op), inputs, node.device, versions, *[_canonical(param) for param in node.params])
    except TypeError:  # a parameter that cannot be compared
        return None


def _canonical(param: Any) -> Any:
    """A hashable stand-in that is equal only for parameters that mean the same: 1, 1.0 and True differ, so do ±0.0."""
    kind = type(param)
    if kind in _BY_VALUE:
        return kind, param
    if kind is tuple:
        return tuple([_canonical(item) for item in param])
    if kind is Literal:
        return _content_key(param.array) if param.array.nbytes <= COMPARED else id(param)
    if kind is float:
        return kind, param.hex()
    if kind is slice:
        return kind, _canonical((param.start, param.stop, param.step))
    if kind is complex or isinstance(param, np.generic):
        return kind, repr(param)
    hash(param)
    return kind, param


def _content_key(array: Any) -> tuple[Any, ...]:
    plain = np.asarray(array)
    return plain.dtype, plain.shape, plain.tobytes()

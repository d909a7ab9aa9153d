"""Small operands that are broadcast to one shape again and again are broadcast once.

Adding ten numbers to each row of a matrix of 10 x 10 takes NumPy three times as long as adding two such matrices, and a
scalar costs about the same. So a bias, a mask or a step's size that meets the same shape at several places is spread
out first. Only for small results: large ones would be read from memory instead of from a register. Exact.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from limelight.core import dtypes
from limelight.core.op import get
from limelight.core.shapes import Shape
from limelight.graph.build import Rewriter
from limelight.graph.ir import Graph, Literal, Node, Value
from limelight.ops.create.literal import constant_op
from limelight.optimise.pass_record import PassRecord, Recorder
from limelight.optimise.rewriter import constant_of, static, tensor

FEWEST: Final = 4
"""Uses with one shape that pay for the broadcast."""
LARGEST: Final = 2048
"""Elements that a result may have."""
_OPS: Final = frozenset(["add", "subtract", "multiply", "divide", "maximum", "minimum"])
_FLOATS: Final = frozenset([dtypes.float32, dtypes.float64])


def spread(graph: Graph) -> tuple[Graph, PassRecord]:
    """`graph` with operands broadcast once for all the nodes that want them in the same shape."""
    recorder = Recorder("spread", graph)
    rewriter = Rewriter(graph)
    keys_by_node = {node: keys for node in graph.nodes if node.op.name in _OPS and (keys := _broadcast_by(node))}
    n_uses = Counter([key for keys in keys_by_node.values() for key in keys])
    worthwhile = {key for key, n in n_uses.items() if n >= FEWEST}
    if not worthwhile:
        return recorder.unchanged(graph)
    broadcast_values: dict[tuple[Value, Shape], Value] = {}
    for node in graph.nodes:
        keys = [key for key in keys_by_node.get(node, ()) if key in worthwhile]
        if not keys:
            rewriter.keep(node)
            continue
        for key in keys:
            if key not in broadcast_values:
                new = _broadcast_node(rewriter, node, *key)
                broadcast_values[key] = new.outputs[0]
                reason = f"{n_uses[key]} nodes want it in this shape"
                recorder.note("broadcast once", reason, (), (new,), added=1)
        shape = keys[0][1]
        rewriter.rebuild(node, tuple([broadcast_values.get((x, shape), rewriter.value(x)) for x in node.inputs]))
    return recorder.finish(rewriter)


def _broadcast_by(node: Node) -> list[tuple[Value, Shape]]:
    """The operands that `node` broadcasts, with the shape of its result, where that is small and known."""
    out = node.outputs[0]
    if node.inputs[0].spec is node.inputs[1].spec is out.spec:  # nearly all, as shape rules return what they are given
        return []
    if (
        node.device is not None
        or not static(out)
        or not 1 < (tensor(out).size or 0) <= LARGEST
        or tensor(out).dtype not in _FLOATS
    ):
        return []
    shape = tensor(out).shape
    smaller = [value for value in node.inputs if tensor(value).shape != shape]
    return [(value, shape) for value in smaller] if len(smaller) == 1 else []


def _broadcast_node(rewriter: Rewriter, like: Node, value: Value, shape: Shape) -> Node:
    array = constant_of(value)
    if array is None:
        return rewriter.add(like, get("broadcast_to"), (rewriter.value(value),), (shape,))
    return rewriter.add(like, constant_op, (), (Literal(np.array(np.broadcast_to(array, tuple(map(int, shape))))),))  # type: ignore[arg-type]

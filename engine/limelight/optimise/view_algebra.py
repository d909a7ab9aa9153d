"""Rules for ops that only look at a tensor another way: chains become one, and come after arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from limelight.core import dtypes
from limelight.core.spec import known
from limelight.graph.ir import Node, Value
from limelight.optimise.rewriter import Replacement, RewriteContext, Rule, static, tensor

_RESHAPES: Final = ("reshape", "expand_dims", "squeeze")
_TRANSPOSES: Final = ("transpose", "matrix_transpose")
VIEWS: Final = frozenset([*_RESHAPES, *_TRANSPOSES])
"""Views that these rules move and join. Not all that have `Op.view`: the rules read the parameters of these."""
_UNARY: Final = ("negative", "abs", "exp", "log", "sqrt", "square", "tanh", "sin", "cos", "sigmoid", "relu", "astype")
"""Elementwise ops of one operand that views are moved behind."""
_BINARY: Final = ("add", "subtract", "multiply", "divide", "maximum", "minimum")


def permutation(node: Node) -> tuple[int, ...] | None:
    """The permutation of a transposing node, None for one that cannot be said."""
    rank = tensor(node.inputs[0]).rank
    if node.op.name == "matrix_transpose":
        return (*range(rank - 2), rank - 1, rank - 2)
    axes = node.params[0]
    return tuple(range(rank))[::-1] if axes is None else tuple([axis % rank for axis in axes])


def _join_reshapes(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    output = node.outputs[0]
    if not static(output) or not static(inputs[0]):
        return None
    if inputs[0].spec == output.spec:
        return Replacement("reshape to its own shape", "it has this shape already", inputs[0])
    inner = context.producer(inputs[0], *_RESHAPES)
    if inner is None:
        return None
    start = inner.inputs[0]
    if start.spec == output.spec:
        return Replacement("reshape there and back", "it had this shape before", start)
    value = context.add("reshape", start, params=(tensor(output).shape,), spec=output.spec)
    return Replacement("reshape of a reshape", "the last shape is what counts", value)


def _join_transposes(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    axes = permutation(node)
    order = tuple(range(tensor(inputs[0]).rank))
    if axes == order:
        return Replacement("transpose of nothing", "every axis stays where it is", inputs[0])
    inner = context.producer(inputs[0], *_TRANSPOSES)
    before = None if inner is None else permutation(inner)
    if inner is None or axes is None or before is None:
        return None
    both = tuple([before[axis] for axis in axes])
    if both == order:
        return Replacement("transpose of a transpose", "the second one undoes the first", inner.inputs[0])
    value = context.add("transpose", inner.inputs[0], params=(both,), spec=node.outputs[0].spec)
    return Replacement("transpose of a transpose", "one permutation does for both", value)


def _join_broadcasts(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    output = node.outputs[0]
    if inputs[0].spec == output.spec and static(output):
        return Replacement("broadcast to its own shape", "it has this shape already", inputs[0])
    inner = context.producer(inputs[0], "broadcast_to")
    if inner is None:
        return None
    value = context.add("broadcast_to", inner.inputs[0], params=node.params, spec=output.spec)
    return Replacement("broadcast of a broadcast", "the last shape is what counts", value)


def _sum_to_own_shape(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    output = node.outputs[0]
    if inputs[0].spec == output.spec and static(output):
        return Replacement("sum to its own shape", "there is nothing to sum", inputs[0])
    return None


def _move_behind_unary(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    """f(view(x)) as view(f(x)), so that views meet other views."""
    view = context.producer(inputs[0], *_RESHAPES, *_TRANSPOSES)
    if view is None or not context.used_once(inputs[0]) or not static(inputs[0]) or not static(view.inputs[0]):
        return None
    result, start = tensor(node.outputs[0]), tensor(view.inputs[0])
    if dtypes.is_inexact(start.dtype) and result.dtype.kind in "iu":  # out of range it depends on the memory's layout
        return None
    inner = context.add(node.op, view.inputs[0], params=node.params, spec=known(start.shape, result.dtype))
    value = context.add(view.op, inner, params=view.params, spec=result)
    return Replacement(f"{view.op} after {node.op}", "a view moves behind arithmetic, where it may meet others", value)


def _move_behind_binary(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    """f(view(x), view(y)) as view(f(x, y)) where both are the same view."""
    left, right = (context.producer(value, *_RESHAPES, *_TRANSPOSES) for value in inputs)
    if left is None or right is None or left.op is not right.op or left.params != right.params:
        return None
    x, y = left.inputs[0], right.inputs[0]
    if x.spec != y.spec or not static(x) or not all(map(context.used_once, inputs)) or inputs[0] is inputs[1]:
        return None
    result = tensor(node.outputs[0])
    inner = context.add(node.op, x, y, params=node.params, spec=known(tensor(x).shape, result.dtype))
    value = context.add(left.op, inner, params=left.params, spec=result)
    return Replacement(f"{left.op} after {node.op}", "one view of the result instead of two of the operands", value)


EXACT: Final[Mapping[str, Sequence[Rule]]] = {
    "broadcast_to": (_join_broadcasts,),
    "matrix_transpose": (_join_transposes,),
    "sum_to": (_sum_to_own_shape,),
    "transpose": (_join_transposes,),
    **dict.fromkeys(_RESHAPES, (_join_reshapes,)),
    **dict.fromkeys(_UNARY, (_move_behind_unary,)),
    **dict.fromkeys(_BINARY, (_move_behind_binary,)),
}

"""Rules for ops that only look at a tensor another way: chains become one, and come after arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from limelight.core.spec import known
from limelight.graph.ir import Node, Value
from limelight.optimise.rewriter import Found, Rule, Scene, static, tensor

_RESHAPING: Final = ("reshape", "expand_dims", "squeeze")
_TURNING: Final = ("transpose", "matrix_transpose")
VIEWS: Final = frozenset([*_RESHAPING, *_TURNING])
"""Views that these rules move and join. Not all that have `Op.view`: the rules read the parameters of these."""
_PASSED: Final = ("negative", "abs", "exp", "log", "sqrt", "square", "tanh", "sin", "cos", "sigmoid", "relu", "astype")
"""Elementwise ops of one operand that views are moved behind."""
_PASSED_TWO: Final = ("add", "subtract", "multiply", "divide", "maximum", "minimum")


def turned(node: Node) -> tuple[int, ...] | None:
    """The permutation of a transposing node, None for one that cannot be said."""
    rank = tensor(node.inputs[0]).rank
    if node.op.name == "matrix_transpose":
        return (*range(rank - 2), rank - 1, rank - 2)
    axes = node.params[0]
    return tuple(range(rank))[::-1] if axes is None else tuple([axis % rank for axis in axes])


def _reshaping(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    made = node.outputs[0]
    if not static(made) or not static(inputs[0]):
        return None
    if inputs[0].spec == made.spec:
        return Found("reshape to its own shape", "it has this shape already", inputs[0])
    inner = scene.maker(inputs[0], *_RESHAPING)
    if inner is None:
        return None
    start = inner.inputs[0]
    if start.spec == made.spec:
        return Found("reshape there and back", "it had this shape before", start)
    value = scene.add("reshape", start, params=(tensor(made).shape,), spec=made.spec)
    return Found("reshape of a reshape", "the last shape is what counts", value)


def _turning(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    axes = turned(node)
    order = tuple(range(tensor(inputs[0]).rank))
    if axes == order:
        return Found("transpose of nothing", "every axis stays where it is", inputs[0])
    inner = scene.maker(inputs[0], *_TURNING)
    before = None if inner is None else turned(inner)
    if inner is None or axes is None or before is None:
        return None
    both = tuple([before[axis] for axis in axes])
    if both == order:
        return Found("transpose of a transpose", "the second one undoes the first", inner.inputs[0])
    value = scene.add("transpose", inner.inputs[0], params=(both,), spec=node.outputs[0].spec)
    return Found("transpose of a transpose", "one permutation does for both", value)


def _turned_product(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    """transpose(a) @ transpose(b) as transpose(b @ a): one view instead of two."""
    left, right = (scene.maker(value, *_TURNING) for value in inputs)
    if left is None or right is None or any(tensor(value).rank != 2 for value in inputs):
        return None
    if not all(map(scene.alone, inputs)) or left.inputs[0] is right.inputs[0]:
        return None
    if scene.uses.get(node.outputs[0], 0) != 1:
        return None
    product = scene.add("matmul", right.inputs[0], left.inputs[0])
    value = scene.add("matrix_transpose", product, spec=node.outputs[0].spec)
    return Found("product of transposes", "the transpose of a product turns its factors round", value)


def _broadcast(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    made = node.outputs[0]
    if inputs[0].spec == made.spec and static(made):
        return Found("broadcast to its own shape", "it has this shape already", inputs[0])
    inner = scene.maker(inputs[0], "broadcast_to")
    if inner is None:
        return None
    value = scene.add("broadcast_to", inner.inputs[0], params=node.params, spec=made.spec)
    return Found("broadcast of a broadcast", "the last shape is what counts", value)


def _summed(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    made = node.outputs[0]
    if inputs[0].spec == made.spec and static(made):
        return Found("sum to its own shape", "there is nothing to sum", inputs[0])
    return None


def _past(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    """f(view(x)) as view(f(x)), so that views meet other views."""
    view = scene.maker(inputs[0], *_RESHAPING, *_TURNING)
    if view is None or not scene.alone(inputs[0]) or not static(inputs[0]) or not static(view.inputs[0]):
        return None
    made, start = tensor(node.outputs[0]), tensor(view.inputs[0])
    inner = scene.add(node.op, view.inputs[0], params=node.params, spec=known(start.shape, made.dtype))
    value = scene.add(view.op, inner, params=view.params, spec=made)
    return Found(f"{view.op} after {node.op}", "a view moves behind arithmetic, where it may meet others", value)


def _past_both(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    """f(view(x), view(y)) as view(f(x, y)) where both are the same view."""
    left, right = (scene.maker(value, *_RESHAPING, *_TURNING) for value in inputs)
    if left is None or right is None or left.op is not right.op or left.params != right.params:
        return None
    x, y = left.inputs[0], right.inputs[0]
    if x.spec != y.spec or not static(x) or not all(map(scene.alone, inputs)) or inputs[0] is inputs[1]:
        return None
    made = tensor(node.outputs[0])
    inner = scene.add(node.op, x, y, params=node.params, spec=known(tensor(x).shape, made.dtype))
    value = scene.add(left.op, inner, params=left.params, spec=made)
    return Found(f"{left.op} after {node.op}", "one view of the result instead of two of the operands", value)


EXACT: Final[Mapping[str, Sequence[Rule]]] = {
    "broadcast_to": (_broadcast,),
    "matrix_transpose": (_turning,),
    "sum_to": (_summed,),
    "transpose": (_turning,),
    **dict.fromkeys(_RESHAPING, (_reshaping,)),
    **dict.fromkeys(_PASSED, (_past,)),
    **dict.fromkeys(_PASSED_TWO, (_past_both,)),
}
INEXACT: Final[Mapping[str, Sequence[Rule]]] = {"matmul": (_turned_product,)}
"""The same products, which a library may add up in another order."""

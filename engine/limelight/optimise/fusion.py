"""Marks nodes that are evaluated together: elementwise chains, and products with the bias and activation after them.

A group is a tree or diamond of elementwise nodes of one shape of which only the last one's result is used elsewhere.
It may begin with a product or a convolution, into whose result the rest is then computed. Nothing is moved or removed:
plans write the steps of a group into one another's buffers, large groups block by block, and views may draw it.
"""

from __future__ import annotations

from typing import Final

from limelight.core.spec import TensorSpec
from limelight.graph.ir import Graph, Group, Node, Value
from limelight.optimise.pass_record import Change, PassRecord, Recorder

LARGEST: Final = 64
"""Nodes in one group."""
_HEADS: Final = frozenset(["matmul", "conv", "conv_transpose", "einsum_pair", "tensordot"])
"""Products that a group may begin with: a choice of this pass, since it pays where a bias and an activation follow."""
ELEMENTWISE: Final = "elementwise"
PRODUCT: Final = "product"
"""Kinds of groups."""


def fuse(graph: Graph) -> tuple[Graph, PassRecord]:
    """`graph` with groups."""
    recorder = Recorder("fuse", graph)
    groups = _groups(graph)
    for group in groups:
        recorder.changes.append(Change(f"{group.kind} group", _reason(group), (), group.nodes))
    if not groups or groups == list(graph.groups):
        return recorder.unchanged(graph)
    marked = Graph(
        graph.name,
        graph.inputs,
        graph.nodes,
        graph.outputs,
        input_names=graph.input_names,
        n_captures=graph.n_captures,
        groups=groups,
    )
    return recorder.unchanged(marked)


def _reason(group: Group) -> str:
    names = ", ".join([node.op.name for node in group.nodes[:6]])
    more = ", ..." if len(group.nodes) > 6 else ""
    return f"{names}{more}: only the last result is used elsewhere"


class _OpenGroup:
    """A group while it is being found: nodes from the last one backwards."""

    def __init__(self, last: Node) -> None:
        self.nodes = [last]
        self.has_head = False


def _groups(graph: Graph) -> list[Group]:
    users = _users(graph)
    group_of: dict[Node, _OpenGroup] = {}
    groups: list[_OpenGroup] = []
    for node in reversed(graph.nodes):
        is_head = node.op.name in _HEADS
        if not (is_head or _is_elementwise(node)):
            continue
        group = _group_of_users(node, is_head, users.get(node.outputs[0]), group_of)
        if group is not None:
            group.nodes.append(node)
            group.has_head |= is_head
        elif not is_head:
            group = _OpenGroup(node)
            groups.append(group)
        if group is not None and not is_head:
            group_of[node] = group
    large = [g for g in reversed(groups) if len(g.nodes) > 1]
    return [Group(PRODUCT if g.has_head else ELEMENTWISE, tuple(g.nodes[::-1])) for g in large]


def _users(graph: Graph) -> dict[Value, list[Node] | None]:
    """The nodes that use each value; None for those that are returned."""
    users: dict[Value, list[Node] | None] = dict.fromkeys(graph.outputs)
    for node in graph.nodes:
        for value in node.inputs:
            known = users.setdefault(value, [])
            if known is not None:
                known.append(node)
    return users


def _is_elementwise(node: Node) -> bool:
    op = node.op
    return op.elementwise and op.direct and op.effect is None and bool(node.inputs)


def _group_of_users(
    node: Node, is_head: bool, users: list[Node] | None, group_of: dict[Node, _OpenGroup]
) -> _OpenGroup | None:
    """The group of all users of `node`, if it may join."""
    if not users:
        return None
    group = group_of.get(users[0])
    if group is None or len(group.nodes) >= LARGEST or (is_head and group.has_head):
        return None
    last = group.nodes[0]
    mine, wanted = node.outputs[0].spec, last.outputs[0].spec
    fits = isinstance(mine, TensorSpec) and isinstance(wanted, TensorSpec) and mine.shape == wanted.shape
    if not fits or node.device is not last.device:
        return None
    return group if all(group_of.get(user) is group for user in users) else None

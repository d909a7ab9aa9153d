"""Cutting graphs: some nodes of a graph, or copies of them, with new inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from limelight.graph.ir import Graph, Node, Value


def extract(
    name: str, inputs: Sequence[Value], nodes: Iterable[Node], outputs: Sequence[Value], names: Sequence[str] = ()
) -> Graph:
    """A graph of copies of some nodes of a graph.

    Args:
        name: its name.
        inputs: values that the nodes use, which become its arguments.
        nodes: the nodes in order; no other value may be among their operands.
        outputs: its outputs, values among the inputs or made by the nodes.
        names: those of its arguments.
    """
    values = {value: Value(value.spec) for value in inputs}
    copies: dict[Node, Node] = {}
    for node in nodes:
        copy = Node(
            node.op,
            tuple([values[value] for value in node.inputs]),
            node.params,
            [value.spec for value in node.outputs],
            device=node.device,
            stack=node.stack,
            scope=node.scope,
            after=tuple([copies[earlier] for earlier in node.after if earlier in copies]),
        )
        copies[node] = copy
        values.update(zip(node.outputs, copy.outputs, strict=True))
    fresh = [values[value] for value in inputs]
    return Graph(name, fresh, list(copies.values()), [values[value] for value in outputs], input_names=names)


def take_over(
    name: str,
    inputs: Sequence[Value],
    nodes: Sequence[Node],
    outputs: Sequence[Value],
    names: Sequence[str],
    literals: Sequence[Node] = (),
) -> Graph:
    """A graph of the nodes themselves, which change: nobody else may use them. It takes a third of the time of copies.

    Args:
        name: its name.
        inputs: values that the nodes use, which become its arguments.
        nodes: the nodes in order.
        outputs: its outputs, values among the inputs or made by the nodes or literals.
        names: those of its arguments.
        literals: further nodes without operands, which are copied: others use them, too.
    """
    values = {value: Value(value.spec) for value in inputs}
    copies = [_copy(literal) for literal in literals]
    for literal, copy in zip(literals, copies, strict=True):
        values.update(zip(literal.outputs, copy.outputs, strict=True))
    get = values.get
    ordered = set(nodes) if any(node.after for node in nodes) else set()
    is_apart = values.keys().isdisjoint
    for node in nodes:
        operands = node.inputs
        if len(operands) == 2:  # as most have, in half the time
            x, y = operands
            if x in values or y in values:
                node.inputs = (get(x, x), get(y, y))
        elif not is_apart(operands):
            node.inputs = tuple([get(value, value) for value in operands])
        if node.after:
            node.after = tuple([earlier for earlier in node.after if earlier in ordered])
    fresh = [values[value] for value in inputs]
    return Graph(name, fresh, [*copies, *nodes], [get(value, value) for value in outputs], input_names=names)


def _copy(literal: Node) -> Node:
    specs = [value.spec for value in literal.outputs]
    return Node(literal.op, (), literal.params, specs, device=literal.device, stack=literal.stack, scope=literal.scope)

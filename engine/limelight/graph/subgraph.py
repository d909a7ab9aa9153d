"""Cutting graphs: copies of some nodes of a graph, with new inputs and outputs."""

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

"""Building graphs from graphs: what every pass needs and none should write again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from limelight.core.op import Op
from limelight.core.spec import Spec
from limelight.graph.ir import Graph, Node, Value
from limelight.graph.known_sizes import inferred


class Rewriter:
    """Copies a graph node by node with changes; `finish` makes the new graph.

    Call exactly one of `keep`, `replace`, `stand_in` or `drop` for each old node, in order; `add` makes a node in
    between. A node whose operands did not change is taken over as it is, so graphs share what they have in common; the
    others are rebuilt with their stack, scope, device and effect edges. `rewired` maps old nodes to rebuilt ones.
    `given`: other values for some of the graph's inputs.
    """

    def __init__(self, graph: Graph, given: Mapping[Value, Value] | None = None) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.rewired: dict[Node, Node] = {}
        self._values: dict[Value, Value] = dict(given or {})
        self._stand_ins: dict[Node, tuple[Node, ...]] = {}  # what stands in the effect order for a node that changed

    def value(self, old: Value) -> Value:
        """What stands for `old` in the new graph."""
        return self._values.get(old, old)

    def inputs(self, node: Node) -> tuple[Value, ...]:
        """The operands of `node` in the new graph."""
        get = self._values.get
        return tuple([get(x, x) for x in node.inputs])

    def keep(self, node: Node) -> Node:
        """Takes `node` over, rebuilt if an operand or a node it must follow has changed."""
        if (self._values and not self._values.keys().isdisjoint(node.inputs)) or (
            node.after and not self._stand_ins.keys().isdisjoint(node.after)
        ):
            return self.rebuild(node, self.inputs(node))
        self.nodes.append(node)
        return node

    def rebuild(self, node: Node, inputs: tuple[Value, ...]) -> Node:
        """Takes `node` over with other operands, which are values of the new graph."""
        copy = Node(
            node.op,
            inputs,
            node.params,
            [value.spec for value in node.outputs],
            device=node.device,
            stack=node.stack,
            scope=node.scope,
            after=self._predecessors(node),
        )
        self._values.update(zip(node.outputs, copy.outputs, strict=True))
        self._stand_ins[node] = (copy,)
        self.rewired[node] = copy
        self.nodes.append(copy)
        return copy

    def substitute(self, old: Value, new: Value) -> None:
        """Has `new`, a value of the new graph, stand for one output of a node that is left out."""
        self._values[old] = new

    def replace(self, node: Node, values: Sequence[Value], by: Node | None = None) -> None:
        """Leaves `node` out; `values` of the new graph stand for its outputs, `by` for it in the effect order."""
        self._values.update(zip(node.outputs, values, strict=True))
        self.drop(node, by)

    def stand_in(self, node: Node, new: Node) -> None:
        """Leaves `node` out; `new`, which has been added, stands for it: for its outputs, and in the effect order."""
        new.after = (*new.after, *self._predecessors(node))
        self.replace(node, new.outputs, by=new)

    def drop(self, node: Node, by: Node | None = None) -> None:
        """Leaves `node` out; nothing may use its outputs. What followed it follows `by`, or what `node` followed."""
        self._stand_ins[node] = (by,) if by is not None else self._predecessors(node)

    def add(
        self, like: Node, op: Op, inputs: tuple[Value, ...], params: tuple[Any, ...], specs: Sequence[Spec] = ()
    ) -> Node:
        """Adds a node.

        Args:
            like: a node of either graph: the new one is at its position, and has its scope and device.
            op: its op.
            inputs: its operands, values of the new graph.
            params: its static parameters.
            specs: those of its outputs; they are inferred if they are not given.
        """
        if not specs:
            specs = inferred(op, [x.spec for x in inputs], params)
        node = Node(op, inputs, params, specs, device=like.device, stack=like.stack, scope=like.scope)
        self.nodes.append(node)
        return node

    def finish(self) -> Graph:
        """The new graph; the old one itself if nothing has changed."""
        graph = self.graph
        if not self._values and not self._stand_ins and len(self.nodes) == len(graph.nodes):
            return graph
        return Graph(
            graph.name,
            [self.value(value) for value in graph.inputs],
            self.nodes,
            [self.value(value) for value in graph.outputs],
            input_names=graph.input_names,
            n_captures=graph.n_captures,
        )

    def _predecessors(self, node: Node) -> tuple[Node, ...]:
        if not node.after:
            return ()
        nodes: dict[Node, None] = {}
        for earlier in node.after:
            nodes.update(dict.fromkeys(self._stand_ins.get(earlier, (earlier,))))
        return tuple(nodes)

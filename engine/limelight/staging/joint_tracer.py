"""A trace that goes on where a graph ends: its forward half are the nodes of that graph, as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.core import device_scopes, dispatch
from limelight.core.op import Op
from limelight.core.spec import VariableSpec
from limelight.graph.ir import Graph, Node, Value
from limelight.staging.symbolic import SymbolicVariable
from limelight.staging.tracer import Tracer
from limelight.user_code import source_line


class JointTracer(Tracer):
    """Hands the ops of `graph` to the interpreters above (a tape), and takes the nodes over when they come down.

    So they are recorded without being traced again: their types are known, and nobody makes them twice. Where another
    op comes down for a node (`Op.taped`), that one is written, and from there on all are, since their operands change.
    What is traced besides, or later, is written as by any tracer.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.name)
        self._graph = graph
        self._node: Node | None = None  # that whose op is on its way down
        self._operands: tuple[Any, ...] = ()
        self._changed = False

    def add_graph_inputs(self) -> list[Any]:
        """What stands for the inputs of the graph."""
        graph = self._graph
        self.inputs += graph.inputs
        self.input_names += graph.input_names
        return [self._stand_in(value) for value in graph.inputs]

    def _stand_in(self, value: Value) -> Any:
        if not isinstance(value.spec, VariableSpec):
            return self._handle(value)
        variable = SymbolicVariable(value.spec)
        self._values[variable._uid] = value, variable
        return variable

    def replay(self, inputs: Sequence[Any]) -> list[Any]:
        """Hands each op of the graph to this thread's innermost interpreter, at its own line; returns the outputs."""
        process = dispatch.current().process
        handles: dict[Value, Any] = dict(zip(self._graph.inputs, inputs, strict=True))
        with source_line.pretend(()) as line:
            for node in self._graph.nodes:
                operands = tuple([handles[value] for value in node.inputs])
                line.stack, self.scope, self._node, self._operands = node.stack, node.scope, node, operands
                if node.device is None:
                    result = process(node.op, operands, node.params)
                else:
                    with device_scopes.device(node.device):
                        result = process(node.op, operands, node.params)
                if node.op.multiple:
                    handles.update(zip(node.outputs, result, strict=True))
                else:
                    handles[node.outputs[0]] = result
        self._node = None
        outputs = [handles[value] for value in self._graph.outputs]
        del self._graph  # it goes with its function, however long somebody keeps this tracer
        return outputs

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        node = self._node
        if node is None:
            return super().process(op, inputs, attrs)
        if inputs is not self._operands:  # on behalf of the op that is on its way
            return self._beside(node, op, inputs, attrs)
        self._node = None
        if self._changed or op is not node.op or attrs is not node.params:
            self._changed = True
            return super().process(op, inputs, attrs)
        self.nodes.append(node)
        if op.effect is not None or op.higher_order:
            self._order.place(node)
        if op.multiple:
            return tuple([self._handle(value) for value in node.outputs])
        return self._handle(node.outputs[0])

    def _beside(self, node: Node, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Writes an op that an interpreter above needs before it hands on that of `node`."""
        self._node = None
        try:
            return super().process(op, inputs, attrs)
        finally:
            self._node = node

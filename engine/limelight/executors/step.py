"""Runs a graph one node at a time and keeps every value: for steppers and for hunting the first bad number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from limelight.devices import CPU0, Device
from limelight.errors import ArgumentError
from limelight.executors import plan
from limelight.executors.blame import explain
from limelight.executors.place import place
from limelight.graph.ir import Graph, Node, Value


class Steps(Iterator[tuple[Node, tuple[Any, ...]]]):
    """A run of a graph that goes on by one node at each `next`, which returns the node and its output payloads.

    `values` holds all payloads so far; `outputs` are the graph's, once all nodes have run.
    """

    def __init__(self, graph: Graph, payloads: Sequence[Any], devices: Sequence[Device] = ()) -> None:
        if len(payloads) != len(graph.inputs):
            raise ArgumentError(f"graph {graph.name} takes {len(graph.inputs)} inputs, got {len(payloads)}")
        self.graph, self.output_devices = place(graph, devices, None, plan.build)
        self.values: dict[Value, Any] = dict(zip(self.graph.inputs, payloads, strict=True))
        self._waiting = iter(self.graph.nodes)

    def __next__(self) -> tuple[Node, tuple[Any, ...]]:
        node = next(self._waiting)
        operands = [self.values[value] for value in node.inputs]
        kernel = node.op.kernel_on((node.device or CPU0).backend)
        try:
            result = kernel(*operands, *node.params)
        except Exception as error:
            better = explain(self.graph, node, operands, error)
            if better is error:
                raise
            raise better from error
        outputs = tuple(result) if node.op.multiple else (result,)
        self.values.update(zip(node.outputs, outputs, strict=True))
        return node, outputs

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The graph's outputs; runs what is left to run."""
        for _ in self:
            pass
        return tuple([self.values[value] for value in self.graph.outputs])


def run(graph: Graph, payloads: Sequence[Any], devices: Sequence[Device] = ()) -> Steps:
    """Starts running `graph` on `payloads` (arrays, storages, opaque values), which are on `devices` (default: CPU:0).

    Errors are those of `limelight.executors.plan`.
    """
    return Steps(graph, payloads, devices)

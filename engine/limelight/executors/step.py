"""Runs a graph one node at a time and keeps every value: for steppers and for hunting the first bad number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from limelight.core.devices import CPU0, Device
from limelight.errors import ArgumentError
from limelight.executors.error_lines import explain
from limelight.executors.placement import Relocated, place
from limelight.executors.plan import plan
from limelight.graph.ir import FunctionLike, Graph, Node, Value, with_functions


class Observer(Protocol):
    """Is told of every node that has run, also of those of called functions, branches and loop bodies."""

    def enter(self, node: Node, function: FunctionLike) -> None:
        """`node` begins to run one of its functions."""

    def leave(self) -> None:
        """That function has ended, or failed."""

    def ran(self, node: Node, operands: Sequence[Any], outputs: Sequence[Any]) -> None:
        """`node` has run on these payloads."""


class Steps(Iterator[tuple[Node, tuple[Any, ...]]]):
    """A run of a graph that goes on by one node at each `next`, which returns the node and its output payloads.

    `values` holds all payloads so far; `outputs` are the graph's, once all nodes have run.
    """

    def __init__(
        self,
        graph: Graph,
        payloads: Sequence[Any],
        devices: Sequence[Device] = (),
        observer: Observer | None = None,
        deliver: Device | None = None,
    ) -> None:
        if len(payloads) != len(graph.inputs):
            raise ArgumentError(f"graph {graph.name} takes {len(graph.inputs)} inputs, got {len(payloads)}")
        self.graph, self.output_devices = place(graph, devices, deliver, plan.build)
        self.values: dict[Value, Any] = dict(zip(self.graph.inputs, payloads, strict=True))
        self._waiting = iter(self.graph.nodes)
        self._observer = observer

    def __next__(self) -> tuple[Node, tuple[Any, ...]]:
        node = next(self._waiting)
        operands = [self.values[value] for value in node.inputs]
        kernel = node.op.kernel_on((node.device or CPU0).backend)
        observer, params = self._observer, node.params
        if observer is not None and node.op.higher_order:
            params = with_functions(lambda function: _Stepped(node, function, observer), params)
        try:
            result = kernel(*operands, *params)
        except Exception as error:
            better = explain(self.graph, node, operands, error)
            if better is error:
                raise
            raise better from error
        outputs = tuple(result) if node.op.multiple else (result,)
        self.values.update(zip(node.outputs, outputs, strict=True))
        if observer is not None:
            observer.ran(node, operands, outputs)
        return node, outputs

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The graph's outputs; runs what is left to run."""
        for _ in self:
            pass
        return tuple([self.values[value] for value in self.graph.outputs])


class _Stepped:
    """A function that a node calls, run node by node, too."""

    def __init__(self, node: Node, function: FunctionLike, observer: Observer) -> None:
        self.name = function.name
        self.graph = function.graph
        self._node = node
        self._function = function
        self._observer = observer

    def run(self, *payloads: Any) -> tuple[Any, ...]:
        devices, deliver = self._function.where if isinstance(self._function, Relocated) else ((), None)
        self._observer.enter(self._node, self._function)
        try:
            return Steps(self.graph, payloads, devices, self._observer, deliver).outputs
        finally:
            self._observer.leave()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def run(
    graph: Graph, payloads: Sequence[Any], devices: Sequence[Device] = (), observer: Observer | None = None
) -> Steps:
    """Starts running `graph` on `payloads` (arrays, storages, opaque values), which are on `devices` (default: CPU:0).

    With an `observer`, called functions, branches and loop bodies are run node by node as well, and it is told of all
    nodes. Errors are those of `limelight.executors.plan.plan`.
    """
    return Steps(graph, payloads, devices, observer)

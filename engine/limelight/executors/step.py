"""The executor `step`: one node at a time, with every value kept, for steppers and for hunting the first bad number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, Protocol

from limelight.core.devices import CPU0, Device
from limelight.core.spec import TensorSpec
from limelight.errors import ArgumentError
from limelight.executors import base
from limelight.executors.base import Peak
from limelight.executors.error_lines import explain
from limelight.executors.placement import Placed, Relocated, place
from limelight.graph.ir import FunctionLike, Graph, Node, Value, with_functions


class Observer(Protocol):
    """Is told of every node that has run, also of those of called functions, branches and loop bodies."""

    def enter(self, node: Node, function: FunctionLike) -> None:
        """`node` begins to run one of its functions."""

    def leave(self) -> None:
        """That function has ended, or failed."""

    def ran(self, node: Node, operands: Sequence[Any], outputs: Sequence[Any]) -> None:
        """`node`, of the graph that was given or of a function in it, or a copy between devices, has run on these."""


class Steps(Iterator[tuple[Node, tuple[Any, ...]]]):
    """A run of a graph that goes on by one node at each `next`, which returns the node and its output payloads.

    `values` holds all payloads so far; `outputs` are the graph's, once all nodes have run.

    Args:
        placed: the graph, in which copies between devices are nodes.
        payloads: those of its inputs.
        observer: is told of all nodes; called functions, branches and loop bodies are then run node by node as well,
            else they run on the executor that they asked for.
    """

    def __init__(self, placed: Placed, payloads: Sequence[Any], observer: Observer | None = None) -> None:
        self.graph, self.output_devices, self._origin = placed
        if len(payloads) != len(self.graph.inputs):
            raise ArgumentError(f"graph {self.graph.name} takes {len(self.graph.inputs)} inputs, got {len(payloads)}")
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
            observer.ran(self._origin.get(node, node), operands, outputs)
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

    @cached_property
    def _placed(self) -> Placed:
        """Its graph, placed once for all turns of a loop."""
        devices, deliver = self._function.where if isinstance(self._function, Relocated) else ((), None)
        return place(self.graph, devices, deliver, build)

    def run(self, *payloads: Any) -> tuple[Any, ...]:
        self._observer.enter(self._node, self._function)
        try:
            return Steps(self._placed, payloads, self._observer).outputs
        finally:
            self._observer.leave()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def run(
    graph: Graph, payloads: Sequence[Any], devices: Sequence[Device] = (), observer: Observer | None = None
) -> Steps:
    """Starts running a graph; errors are those of the executor `plan`.

    Args:
        graph: the graph.
        payloads: arrays, storages and opaque values, one for each input.
        devices: where these are, none at all for CPU:0.
        observer: see `Steps`.

    Returns:
        The run, of which nothing has run yet.

    Raises:
        ArgumentError: there are more payloads than inputs, or fewer.
    """
    return Steps(place(graph, devices, None, build), payloads, observer)


class Stepped:
    """A graph that is run from its first node to its last at each call: see `base.Runnable`."""

    source: str | None = None

    def __init__(self, placed: Placed) -> None:
        self._placed = placed
        self.output_devices = placed.outputs

    def __call__(self, *payloads: Any) -> tuple[Any, ...]:
        return Steps(self._placed, payloads).outputs

    def memory(self) -> Peak:
        """All that nodes make, since every value is kept until the end; views count as if they were copies."""
        specs = [value.spec for node in self._placed.graph.nodes for value in node.outputs]
        sizes = [spec.nbytes for spec in specs if isinstance(spec, TensorSpec)]
        last = self._placed.graph.nodes[-1] if self._placed.graph.nodes else None
        return Peak(sum(size or 0 for size in sizes), last, None not in sizes)


def build(graph: Graph, devices: Sequence[Device] = (), *, deliver: Device | None = None) -> Stepped:
    """See `Executor.build`."""
    return Stepped(place(graph, devices, deliver, build))


class _Step:
    """The functions of this module as an executor."""

    name = "step"
    build = staticmethod(build)

    def code(self, graph: Graph) -> list[tuple[Node, str]]:
        """Each node with its op, whose kernel runs it as it is."""
        return [(node, node.op.name) for node in place(graph, (), None, build).graph.nodes]

    def node_at(self, tb: TracebackType) -> Node | None:
        """The node that a step was at."""
        here = tb.tb_frame.f_code is Steps.__next__.__code__
        node: Node | None = tb.tb_frame.f_locals.get("node") if here else None
        return node


base.register(_Step())

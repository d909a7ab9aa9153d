"""A graph whose nodes run in tables wherever they can, each stretch of them one node.

Nodes keep their order where somebody could notice another one: changes stay in theirs. What changes nothing may move, a
read of a variable as far as the assignment that it follows: a node
that a table cannot run goes before the open stretch where it needs nothing of it, behind it where it does, so that a
stretch is as long as can be. The stretch ends where a node needs something that comes behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.executors.loops.layout import Sizes, is_contiguous
from limelight.executors.loops.lowering import Lowering
from limelight.executors.loops.stretch import FinishedStretch, Stretch
from limelight.executors.plan.kernel_calls import KernelCalls
from limelight.executors.plan.specialised_kernels import specialised
from limelight.graph.build import Rewriter
from limelight.graph.effects import effects_of
from limelight.graph.ir import Graph, Node, Value
from limelight.ops.create.literal import constant_op

MOST_LITERALS: Final = 4
"""Nodes of a graph that may be one call and its literals."""
Otherwise = Callable[[FinishedStretch], Callable[..., tuple[Any, ...]]]
"""Makes of a stretch what runs where its table does not fit."""


class Stretched(NamedTuple):
    """A graph with its stretches as nodes.

    Args:
        graph: the graph.
        stretches: by the node that runs it.
        reasons: why a node is in no stretch.
    """

    graph: Graph
    stretches: dict[Node, FinishedStretch]
    reasons: dict[Node, str]


def in_stretches(graph: Graph, otherwise: Otherwise) -> Stretched:
    """`graph` with each stretch as one node, whose kernel is its table."""
    if _is_one_call(graph):
        return Stretched(graph, {}, {})
    writer = _Writer(graph, otherwise)
    done = 0
    while (done := writer.take_known(done)) < len(graph.nodes):
        node = graph.nodes[done]
        if node.op is constant_op:
            writer.before(node)
        else:
            writer.take(node)
        done += 1
    writer.close()
    new = writer.rewriter.finish() if writer.stretches else graph
    reasons = {writer.rewriter.rewired.get(node, node): why for node, why in writer.reasons.items()}
    return Stretched(new, writer.stretches, reasons if writer.stretches else writer.reasons)


def _is_one_call(graph: Graph) -> bool:
    """Whether all that it does is a call of one of NumPy's functions of elements: nothing is quicker."""
    nodes = [node for node in graph.nodes[:MOST_LITERALS] if node.op is not constant_op]
    if len(graph.nodes) > MOST_LITERALS or len(nodes) != 1 or nodes[0].op.higher_order:
        return False
    return isinstance(nodes[0].op.kernel_on("numpy"), np.ufunc)


class _Writer:
    """Sorts the nodes of a graph: those that are done, the open stretch, those that wait behind it."""

    def __init__(self, graph: Graph, otherwise: Otherwise) -> None:
        self.rewriter = Rewriter(graph)
        self.stretches: dict[Node, FinishedStretch] = {}
        self.reasons: dict[Node, str] = {}
        self._graph = graph
        self._otherwise = otherwise
        self._lowering = Lowering(KernelCalls(specialised))
        self._layouts: dict[Value, Sizes] = {}
        self._uses = Counter(chain.from_iterable([node.inputs for node in graph.nodes]))
        self._uses.update(graph.outputs)
        self._open()

    def _open(self) -> None:
        self._stretch = Stretch(self._lowering, self._layouts)
        self._inside: set[Node] = set()
        self._behind: dict[Node, None] = {}

    def before(self, node: Node) -> None:
        """Puts a node before the open stretch."""
        self.rewriter.keep(node)

    def take_known(self, start: int) -> int:
        """Puts nodes from `start` on into the open stretch, nearly all of a graph, up to one for `take`.

        Returns its number.
        """
        nodes = self._graph.nodes
        stop = start if self._behind else self._stretch.take_known(nodes, start)
        self._inside.update(nodes[start:stop])
        return stop

    def take(self, node: Node) -> None:
        """Puts a node where it can be, in the open stretch if possible."""
        changes = (node.op.effect is not None or node.op.higher_order) and effects_of(node).changes
        if self._behind and (changes or self._needs(node, self._behind)):
            reason = Stretch(self._lowering, self._layouts).offer(node)
            if reason:
                self._wait(node, reason)
                return
            self.close()  # after which layouts are known that may speak against it
        reason = self._offer(node)
        if not reason:
            return
        after_assignment = bool(self._stretch.assignments.list) and node.op.effect != "read"  # it may fail: not before
        if self._needs(node, self._inside) or ((self._inside or self._behind) and changes) or after_assignment:
            self._wait(node, reason)
        else:
            self.reasons[node] = reason
            self.before(node)

    def _offer(self, node: Node) -> str:
        reason = self._stretch.offer(node)
        if not reason:
            self._inside.add(node)
        return reason

    def _wait(self, node: Node, reason: str) -> None:
        self.reasons[node] = reason
        self._behind[node] = None

    def _needs(self, node: Node, others: Any) -> bool:
        return any(x.node in others for x in node.inputs) or any(one in others for one in node.after)

    def close(self) -> None:
        """Ends the open stretch, and begins another one."""
        finished = self._stretch.finish(self._uses)
        if isinstance(finished, str):
            for node in self._stretch.nodes:
                self.reasons[node] = finished
                self.rewriter.keep(node)
        else:
            self._write(finished)
        for node in self._behind:
            self.rewriter.keep(node)
        self._open()

    def _write(self, finished: FinishedStretch) -> None:
        rewriter = self.rewriter
        last = finished.nodes[-1]
        inputs = tuple([rewriter.value(value) for value in finished.inputs])
        op = finished.op(self._otherwise(finished), len(self.stretches) + 1)
        specs = [value.spec for value in finished.results]
        table = rewriter.add(last, op, inputs, (), specs)
        self.stretches[table] = finished
        made = dict(zip(finished.results, table.outputs, strict=True))
        left = set(finished.left)
        for value, origin in (*zip(made, made, strict=True), *finished.assignments.others(made)):
            if value.node not in left:
                rewriter.substitute(value, made[origin])
        for node in self._stretch.nodes:
            if (node.op.effect is not None or node.op.higher_order) and node not in left:
                rewriter.drop(node, by=table if node.op.effect is not None else None)
        for node in finished.left:
            self.reasons[node] = "it is a view, which others see"
            rewriter.keep(node)
        for value in (*finished.results, *[value for node in finished.left for value in node.outputs]):
            view = finished.views[value]
            if not is_contiguous(view.shape, view.strides, view.dtype.itemsize):
                self._layouts[value] = view.strides

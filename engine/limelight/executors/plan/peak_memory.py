"""How much memory a plan needs at most: an estimate from shapes, without running it."""

from __future__ import annotations

import threading
from typing import Final, cast

from limelight.core.devices import CPU0
from limelight.core.eager.interpreter import CALLS
from limelight.core.spec import TensorSpec
from limelight.executors.base import Peak, Runnable
from limelight.executors.plan.buffer_reuse import Buffers
from limelight.executors.plan.kernel_calls import KernelCalls
from limelight.executors.plan.specialised_kernels import specialised
from limelight.graph.ir import Graph, Node, Value
from limelight.ops.create.literal import constant_op


def peak(graph: Graph) -> Peak:
    """The estimate for a plan of `graph`: what dies after its last use is freed, dead buffers are written over."""
    if graph in _open.graphs:  # it calls itself
        return Peak(0, None, False)
    _open.graphs.append(graph)
    try:
        return _followed(graph)
    finally:
        _open.graphs.remove(graph)


class _Open(threading.local):
    """The graphs whose estimate this thread is making."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []


_open: Final = _Open()


def _followed(graph: Graph) -> Peak:
    nodes = [node for node in graph.nodes if node.op is not constant_op]
    last = {value: i for i, node in enumerate(nodes) for value in node.inputs}
    last |= dict.fromkeys(graph.outputs, len(nodes))
    account = _Account(last)
    for i, node in enumerate(nodes):
        account.run(i, node)
    return Peak(account.most, account.at, account.exact)


class _Account:
    """Follows the buffers of a run. A value may share its buffer with others, which keeps that alive."""

    def __init__(self, last: dict[Value, int]) -> None:
        self._last = last
        self._kernel_calls = KernelCalls(specialised)
        self._buffers = Buffers()
        self._holds: dict[Value, list[int]] = {}  # the buffers that a value keeps alive
        self._holders: list[int] = []  # of each buffer: how many values hold it
        self._sizes: list[int] = []
        self._live = 0
        self.most = 0
        self.at: Node | None = None
        self.exact = True

    def run(self, i: int, node: Node) -> None:
        call = self._kernel_calls.of(node, (node.device or CPU0).backend)
        dying = [value for value in dict.fromkeys(node.inputs) if self._last[value] == i]
        taken = self._buffers.take(node, call, dying)
        self._buffers.note(node, call)
        made = len(self._sizes)
        for value in node.outputs:
            self._holds[value] = self._made(value, node, fresh=call.fresh, taken=taken)
            for buffer in self._holds[value]:
                self._holders[buffer] += 1
        before = self._live - sum(self._sizes[made:])
        most = max(self._live, before + self._inside(node))
        if most > self.most:
            self.most, self.at = most, node
        for value in (*dying, *[x for x in node.outputs if x not in self._last]):
            self._drop(value)

    def _inside(self, node: Node) -> int:
        """What the functions that a node calls need at most, their results included; a loop's body once."""
        peaks: list[Peak] = [cast(Runnable, function.run).memory() for function in node.functions]
        self.exact &= not peaks or (node.op.name in CALLS and all(peak.exact for peak in peaks))
        return max([peak.nbytes for peak in peaks], default=0)

    def _made(self, value: Value, node: Node, *, fresh: bool, taken: Value | None) -> list[int]:
        if taken is not None:
            return self._holds[taken]
        shared = [buffer for x in node.inputs for buffer in self._holds.get(x, ())]
        if not fresh and shared and node.op.view:
            return shared
        size = value.spec.nbytes if isinstance(value.spec, TensorSpec) else 0
        self.exact &= size is not None
        self._sizes.append(size or 0)
        self._holders.append(0)
        self._live += size or 0
        return [len(self._sizes) - 1]

    def _drop(self, value: Value) -> None:
        for buffer in self._holds.pop(value, ()):
            self._holders[buffer] -= 1
            if not self._holders[buffer]:
                self._live -= self._sizes[buffer]

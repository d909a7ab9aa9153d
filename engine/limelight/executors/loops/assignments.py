"""Assignments to variables in a table: values are computed inside, and become the variables' at its end, all together.

A run that is interrupted, or that the plan must make again, has assigned nothing. An update (`assign_add`) holds only
where the variable still has the value that it was computed from; else another thread has assigned, and the plan runs
the nodes. A read is the plan's, which takes no time, but for one of a value assigned in the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from limelight.core.shapes import is_static
from limelight.core.spec import VariableSpec
from limelight.executors.loops import templates
from limelight.executors.loops.instructions import NotLowered, check_dtype
from limelight.executors.loops.layout import Buffer
from limelight.executors.loops.traced_array import TracedArray
from limelight.graph.ir import Node, Value

_UPDATES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "assign_add": lambda old, value: old + value,
    "assign_sub": lambda old, value: old - value,
}
_READ: Final = "read_variable"
_ASSIGN: Final = "assign"


class Assignments:
    """The assignments of a stretch so far.

    `list` has for each, in order, the variable, the value that it is given, and whether that was computed from the one
    that it had when the run began.
    """

    def __init__(self) -> None:
        self.list: list[tuple[Value, Value, bool]] = []
        self.nodes: set[Node] = set()
        self._now: dict[Value, Value] = {}
        self._origins: dict[Value, Value] = {}
        self._assigned: dict[Buffer, Value] = {}

    def knows(self, node: Node) -> bool:
        """Whether a node reads or assigns a variable in a way that a table can."""
        return node.op.name in _UPDATES or node.op.name == _ASSIGN or (node.op.name == _READ and self._is_now(node))

    def _is_now(self, node: Node) -> bool:
        return node.inputs[0] in self._now

    def origin(self, value: Value) -> Value:
        """The value that this one is: that which was assigned, for what an assignment or a read returns."""
        return self._origins.get(value, value)

    def others(self, results: Mapping[Value, Any]) -> list[tuple[Value, Value]]:
        """What assignments and reads return, each with the one of these results that it is."""
        return [(value, origin) for value, origin in self._origins.items() if origin in results]

    def lowered(self, node: Node, array: Callable[[Value], TracedArray]) -> TracedArray:
        """The variable's value after the node.

        Args:
            node: a node that reads or assigns.
            array: what stands for a value; for a variable, what it has when the run begins.

        Raises:
            NotLowered: a table cannot do it.
        """
        variable = node.inputs[0]
        if node.op.name == _READ:
            return array(self._now[variable])
        spec = variable.spec
        assert isinstance(spec, VariableSpec)
        if not is_static(spec.shape):
            raise NotLowered("its sizes are unknown")
        check_dtype(spec.dtype)
        update = _UPDATES.get(node.op.name)
        if update is not None:
            new = _updated(update, array(self._now.get(variable, variable)), array(node.inputs[1]))
        else:
            new = array(node.inputs[1])
        if new.shape != spec.shape or new.dtype != spec.dtype:
            raise NotLowered("it changes its type")
        if not new.view.is_whole or not new.view.is_contiguous:
            raise NotLowered("it assigns what no node beside it has made")
        value = self.origin(node.inputs[1]) if node.op.name == _ASSIGN else node.outputs[0]
        if self._assigned.setdefault(new.view.buffer, value) is not value:
            raise NotLowered("it assigns a view of what another variable has")
        return new

    def note(self, node: Node, new: TracedArray) -> None:
        """Takes note of a node that was lowered."""
        variable, (result,) = node.inputs[0], node.outputs
        if node.op.name == _READ:
            self._origins[result] = self.origin(self._now[variable])
            return
        if node.op.name == _ASSIGN:
            self._origins[result] = self.origin(node.inputs[1])
        value = self.origin(result)
        exchanges = node.op.name != _ASSIGN and variable not in self._now
        self.list.append((variable, value, exchanges))
        self._now[variable] = value
        self.nodes.add(node)


def _updated(update: Callable[[Any, Any], Any], old: TracedArray, value: TracedArray) -> TracedArray:
    to, operands, start = old.to, (old.view, value.view), len(old.to.list)
    results = templates.written(update, operands, to.list)
    if results is not None:
        return TracedArray(results[0], to)
    new: TracedArray = update(old, value)
    templates.keep_as(update, operands, to.list[start:], (new.view,))
    return new

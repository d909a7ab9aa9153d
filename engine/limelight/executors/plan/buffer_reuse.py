"""Which dead buffer an elementwise ufunc may write its result into (`out=`).

An operand's buffer may be taken over when nothing can see it afterwards: it was made inside this plan as a new array,
every op that used it so far is known not to keep or return a part of it, this is its last use, and result and operand
have the same shape and dtype. Inputs, captures, literals and outputs are never made here or never die here; reads of
variables and results of all other kernels may be views of something else and count as not new. Scalars have no buffer.
Complex results get memory of their own: NumPy multiplies a single number in place by a loop that rounds otherwise.

The result must lie as a new array would, since sums depend on it: NumPy adds up what lies together. An operand of many
axes is taken over where it lies in C order, or where no other one has a say in the order of the axes. How inputs,
captures and variables lie is known when a plan runs: what is made of them alone is looked at then.
"""

from __future__ import annotations

from typing import Final

from limelight.core.spec import TensorSpec
from limelight.executors.plan.kernel_calls import KernelCall
from limelight.graph.ir import Node, Value

_KEEP_ORDER: Final = frozenset(
    [
        *["astype", "concat", "expand_dims", "identity", "matmul", "max", "mean", "min", "prod"],
        *["reshape", "squeeze", "stack", "stop_gradient", "sum", "sum_to", "take", "where"],
    ]
)
"""Ops besides those of elements whose result lies in C order where their operands do."""


class Buffers:
    """Follows the buffers through a graph. Call `take` and then `note` for each node, in order."""

    def __init__(self) -> None:
        self._owned: set[Value] = set()
        self._shaped_as: dict[Value, Value] = {}  # values that have the same shape, whatever that will be
        self._in_c_order: set[Value] = set()  # values that are known to lie so

    def take(self, node: Node, call: KernelCall, dying: list[Value]) -> Value | None:
        """The operand into whose buffer the result may go, None when it needs a new one."""
        if not call.elementwise:
            return None
        wanted = node.outputs[0].spec
        if isinstance(wanted, TensorSpec) and wanted.dtype.kind == "c":
            return None
        for value in dying:
            if value in self._owned and value.spec == wanted and self._has_shape_of_result(value, node):
                return value
        return None

    def decides_order(self, value: Value, node: Node) -> bool:
        """Whether a new array would lie as this operand does for sure; else only where it turns out to be in C order.

        An operand of the result's shape that is in C order decides, whatever the others are.
        """
        return self._is_in_c_order(value) or not any(_has_order(x) for x in node.inputs if x is not value)

    def note(self, node: Node, call: KernelCall) -> None:
        """Remembers what `node` made, and which of its operands may be seen through its result from now on."""
        if self._makes_c_order(node):
            self._in_c_order.update(node.outputs)
        if not call.fresh:
            self._owned.difference_update(node.inputs)
            return
        for value in node.outputs:
            if isinstance(value.spec, TensorSpec) and value.spec.shape:
                self._owned.add(value)
                if call.elementwise and None in value.spec.shape:
                    self._note_shape(value, node)

    def _makes_c_order(self, node: Node) -> bool:
        """Whether the results of a node lie in C order for sure."""
        if node.op.name == "matmul" and not any(_rank(x) > 2 for x in node.outputs):
            return True
        keeps_order = node.op.elementwise or node.op.name in _KEEP_ORDER or _is_forward_slice(node)
        if keeps_order and all(map(self._is_in_c_order, node.inputs)):
            return True
        if not node.op.elementwise:
            return False
        return any(x in self._in_c_order and _has_same_static_shape(x, node.outputs[0]) for x in node.inputs)

    def _is_in_c_order(self, value: Value) -> bool:
        return value in self._in_c_order or not _has_order(value)

    def _note_shape(self, result: Value, node: Node) -> None:
        for value in node.inputs:
            if self._has_shape_of_result(value, node):
                self._shaped_as[result] = self._shaped_as.get(value, value)
                return

    def _has_shape_of_result(self, value: Value, node: Node) -> bool:
        """Whether the result of an elementwise node has the shape of this operand for sure.

        An unknown size of the result is that of the operand if no other operand has a say in it.
        """
        mine, wanted = value.spec, node.outputs[0].spec
        if not isinstance(mine, TensorSpec) or not isinstance(wanted, TensorSpec) or mine.shape != wanted.shape:
            return False
        if None not in mine.shape or len(node.inputs) == 1:
            return True
        axes = [i - mine.rank for i, n in enumerate(mine.shape) if n is None]
        same = self._shaped_as.get(value, value)
        return all(self._shaped_as.get(other, other) is same or _is_one_on(other, axes) for other in node.inputs)


def _is_one_on(other: Value, axes: list[int]) -> bool:
    """Whether `other` has size 1, or no such axis, on each of the axes, which are counted from the end."""
    spec = other.spec
    return isinstance(spec, TensorSpec) and all(-axis > spec.rank or spec.shape[axis] == 1 for axis in axes)


def _has_order(value: Value) -> bool:
    """Whether an array has two axes or more, and may have them in one order in memory or another."""
    spec = value.spec
    return isinstance(spec, TensorSpec) and sum(n != 1 for n in spec.shape) > 1


def _rank(value: Value) -> int:
    return value.spec.rank if isinstance(value.spec, TensorSpec) else 0


def _has_same_static_shape(value: Value, result: Value) -> bool:
    mine, its = value.spec, result.spec
    if not isinstance(mine, TensorSpec) or not isinstance(its, TensorSpec):
        return False
    return None not in its.shape and mine.shape == its.shape


def _is_forward_slice(node: Node) -> bool:
    if node.op.name != "slice":
        return False
    steps = [part[2] for part in node.params[0] if isinstance(part, tuple) and len(part) == 3]
    return all(step is None or step > 0 for step in steps)

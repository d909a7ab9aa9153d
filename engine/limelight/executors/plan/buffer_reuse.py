"""Which dead buffer an elementwise ufunc may write its result into (`out=`).

An operand's buffer may be taken over when nothing can see it afterwards: it was made inside this plan as a new array,
every op that used it so far is known not to keep or return a part of it, this is its last use, and result and operand
have the same shape and dtype. Inputs, captures, literals and outputs are never made here or never die here; reads of
variables and results of all other kernels may be views of something else and count as not new. Scalars have no buffer.
Complex results get memory of their own: NumPy multiplies a single number in place by a loop that rounds otherwise.

The result must lie as a new array would, since sums depend on it: NumPy adds up what lies together. An operand of many
axes is taken over where it lies in C order, or where no other one has a say in the order of the axes. Inputs are taken
to lie in C order, as in tables; with others the numbers are those of another order.
"""

from __future__ import annotations

from typing import Final

from limelight.core.spec import TensorSpec
from limelight.executors.plan.kernel_calls import KernelCall
from limelight.graph.ir import Node, Value

_KEEP_ORDER: Final = frozenset(
    [
        *["astype", "concat", "expand_dims", "identity", "matmul", "max", "mean", "min", "prod", "read_variable"],
        *["reshape", "squeeze", "stack", "stop_gradient", "sum", "sum_to", "take", "where"],
    ]
)
"""Ops besides those of elements whose result lies in C order where their operands do."""


class Buffers:
    """Follows the buffers through a graph. Call `take` and then `note` for each node, in order."""

    def __init__(self) -> None:
        self._owned: set[Value] = set()
        self._shaped_as: dict[Value, Value] = {}  # values that have the same shape, whatever that will be
        self._any_order: set[Value] = set()  # values that may not lie in C order

    def take(self, node: Node, call: KernelCall, dying: list[Value]) -> Value | None:
        """The operand into whose buffer the result may go, None when it needs a new one."""
        if not call.elementwise:
            return None
        wanted = node.outputs[0].spec
        if isinstance(wanted, TensorSpec) and wanted.dtype.kind == "c":
            return None
        for value in dying:
            fits = value in self._owned and value.spec == wanted and self._has_shape_of_result(value, node)
            if fits and self._decides_order(value, node):
                return value
        return None

    def note(self, node: Node, call: KernelCall) -> None:
        """Remembers what `node` made, and which of its operands may be seen through its result from now on."""
        keeps_order = node.op.elementwise or node.op.name in _KEEP_ORDER or _is_forward_slice(node)
        if not keeps_order or not self._any_order.isdisjoint(node.inputs):
            self._any_order.update(filter(_has_order, node.outputs))
        if not call.fresh:
            self._owned.difference_update(node.inputs)
            return
        for value in node.outputs:
            if isinstance(value.spec, TensorSpec) and value.spec.shape:
                self._owned.add(value)
                if call.elementwise and None in value.spec.shape:
                    self._note_shape(value, node)

    def _decides_order(self, value: Value, node: Node) -> bool:
        """Whether a new array would lie as this operand does."""
        return value not in self._any_order or not any(_has_order(x) for x in node.inputs if x is not value)

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


def _is_forward_slice(node: Node) -> bool:
    if node.op.name != "slice":
        return False
    steps = [part[2] for part in node.params[0] if isinstance(part, tuple) and len(part) == 3]
    return all(step is None or step > 0 for step in steps)

"""How arrays lie in memory, as far as a graph tells: what sums add up together, and so how they round, depends on it.

An elementwise op makes a new array in the order of its operand. So `x * 1.0` of a slice or of a repeated row lies
otherwise than that, and a simplification that puts the one for the other changes the last bits of a sum. Two layouts
that compare equal here are equal; of arguments and of most views nothing is known but that each lies as it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from limelight.core.shapes import is_static
from limelight.core.spec import TensorSpec
from limelight.graph.ir import Node, Value
from limelight.ops._kernel_parts import QUICK
from limelight.ops.shape.broadcast import MOST_REPEATED

_TRANSPOSES: Final = frozenset(["transpose", "matrix_transpose"])
_RESHAPES: Final = frozenset(["reshape", "expand_dims", "squeeze"])
_THEMSELVES: Final = frozenset(["astype", "reshape", "broadcast_to", "sum_to"])
"""Ops that hand on their operand where its shape and dtype are wanted."""
_IN_ROWS: Final = frozenset(["constant", "matmul"])
"""Ops whose results are in C order, whatever their operands."""


class Layout(NamedTuple):
    """The number of its form, and whether the elements lie side by side, in any order of the axes."""

    form: int
    is_dense: bool


IN_ROWS: Final = Layout(0, True)


class Layouts:
    """The layouts of the values of a graph that is being rewritten, and of its successor, by value.

    Args:
        in_rows: values without a node that are known to be in C order.
    """

    def __init__(self, in_rows: Iterable[Value] = ()) -> None:
        self._known: dict[Value, Layout] = dict.fromkeys(in_rows, IN_ROWS)
        self._parts: list[tuple[Any, ...]] = [("rows",)]
        self._numbers = {self._parts[IN_ROWS.form]: IN_ROWS.form}

    def same(self, old: Value, new: Value) -> bool:
        """Whether both lie alike for certain."""
        return self.of(old) == self.of(new)

    def stands_for(self, old: Value, new: Value) -> None:
        """Takes note that `new` is in the place of `old`, and lies as it did."""
        self._known[new] = self.of(old)

    def of(self, value: Value) -> Layout:
        """The layout of a value; those of its operands are asked for first, which is no deep recursion."""
        pending = [value]
        while pending:
            last = pending[-1]
            node = last.node
            waiting = [x for x in node.inputs if x not in self._known] if node is not None else []
            if last in self._known or not waiting:
                self._known.setdefault(last, self._own(last) if node is None else self._made_by(node, last))
                pending.pop()
            pending += waiting if last not in self._known else []
        return self._known[value]

    def _form(self, *parts: Any) -> int:
        """The number of the form that is made of these, other forms among them by theirs.

        Each form is known by a number, since forms that held one another would be as deep as the graph, and to compare
        two of them would take as long as there are paths through it.
        """
        number = self._numbers.setdefault(parts, len(self._parts))
        if number == len(self._parts):
            self._parts.append(parts)
        return number

    def _own(self, value: Value) -> Layout:
        """That of a value of which nothing is known."""
        return Layout(self._form("of", value), False)

    def _made_by(self, node: Node, value: Value) -> Layout:
        op, name = node.op, node.op.name
        if name in _IN_ROWS or not node.inputs:
            return IN_ROWS if name in _IN_ROWS else self._own(value)
        start = self._known[node.inputs[0]]
        if op.view and op.elementwise:
            return start
        if name in _THEMSELVES and value.spec == node.inputs[0].spec and is_static(_shape(value)):
            return start
        if name in _TRANSPOSES:
            return self._transposed(start, node, value)
        if name in _RESHAPES:
            return IN_ROWS if start == IN_ROWS else Layout(self._form("reshape", start.form, _shape(value)), False)
        if name == "broadcast_to":
            return self._repeated(start, _shape(node.inputs[0]), value)
        return self._copied(node, value) if op.elementwise and not op.view else self._own(value)

    def _copied(self, node: Node, value: Value) -> Layout:
        """A new array in the order of the operands, where these agree; single elements have none."""
        shape = _shape(value)
        operands = [x for x in node.inputs if not _is_single(x)]
        layouts = [self._copy(self._known[x]) for x in operands]
        if all(layout == IN_ROWS for layout in layouts):
            return IN_ROWS
        if all(_shape(x) == shape and layout == layouts[0] for x, layout in zip(operands, layouts, strict=True)):
            return layouts[0]
        parts = [(_shape(x), layout.form) for x, layout in zip(operands, layouts, strict=True)]
        return Layout(self._form("together", *parts), True)

    def _copy(self, layout: Layout) -> Layout:
        return layout if layout.is_dense else Layout(self._form("copy", layout.form), True)

    def _repeated(self, start: Layout, shape: Any, value: Value) -> Layout:
        """A view of no strides where axes are repeated; small ones are made."""
        spec = value.spec
        if not isinstance(spec, TensorSpec) or not is_static(spec.shape):
            return self._own(value)
        if spec.dtype in QUICK and 0 < (spec.size or 0) <= MOST_REPEATED:
            return IN_ROWS
        form, parts = start.form, self._parts[start.form]
        if parts[0] == "repeat":
            form, shape = parts[1:3]
        return Layout(self._form("repeat", form, shape, spec.shape), False)

    def _transposed(self, start: Layout, node: Node, value: Value) -> Layout:
        rank = len(_shape(value) or ())
        if node.op.name == "matrix_transpose":
            order = (*range(rank - 2), rank - 1, rank - 2)
        else:
            axes = node.params[0]
            order = tuple(range(rank))[::-1] if axes is None else tuple([axis % rank for axis in axes])
        form, parts = start.form, self._parts[start.form]
        if parts[0] == "transpose":
            order, form = tuple([parts[2][axis] for axis in order]), parts[1]
        if order == tuple(range(rank)):
            return Layout(form, start.is_dense)
        return Layout(self._form("transpose", form, order), start.is_dense)


def _shape(value: Value) -> Any:
    return value.spec.shape if isinstance(value.spec, TensorSpec) else None


def _is_single(value: Value) -> bool:
    shape = _shape(value)
    return shape is not None and all(n == 1 for n in shape)

"""A stretch: nodes that one table runs, under construction.

Nodes are offered one after the other. One whose kernel does what tables can is taken, and its instructions written;
from then on its values are known by the views that hold them. Operands from outside become inputs, which are taken to
lie in C order unless it is known that they do not. What does not fit at run time goes to a plan of the same nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final

from limelight.core.op import Op
from limelight.core.spec import TensorSpec, VariableSpec
from limelight.executors.loops.assignments import Assignments
from limelight.executors.loops.control_marks import length
from limelight.executors.loops.instructions import AnyInstruction, Guard, Instruction, Instructions, NotLowered
from limelight.executors.loops.layout import Buffer, Sizes, View, contiguous
from limelight.executors.loops.lowering import Lowering, constant, lowered, never
from limelight.executors.loops.program import Write, table
from limelight.executors.loops.traced_array import TracedArray
from limelight.graph.effects import WRITES
from limelight.graph.ir import Graph, Node, Value
from limelight.ops.create.literal import constant_op
from limelight.optimise.guarded_sum import guard_of

FEWEST: Final = 2
"""Instructions that are worth a table: one alone is no faster than NumPy's function."""


class Stretch:
    """Nodes that are to run together.

    Args:
        lowering: what it has in common with other stretches of the graph.
        layouts: the strides of values that do not lie in C order.
    """

    def __init__(self, lowering: Lowering, layouts: Mapping[Value, Sizes]) -> None:
        self.nodes: list[Node] = []
        self.arrays: dict[Value, TracedArray] = {}
        self.assignments = Assignments()
        self._lowering = lowering
        self._layouts = layouts
        self._instructions = Instructions()
        self._spans: dict[Node, tuple[int, int]] = {}

    def offer(self, node: Node) -> str:
        """Takes the node; else says why not."""
        op = node.op
        concerns_variable = op.effect is not None and self.assignments.knows(node)
        reason = never(node, self.arrays, self._lowering, concerns_variable)
        if reason:
            return reason
        start = len(self._instructions.list)
        try:
            if concerns_variable:
                arrays = [self.assignments.lowered(node, self.array)]
            else:
                known, array = self.arrays, self.array
                operands = [known[x] if x in known else array(x) for x in node.inputs]
                arrays = lowered(node, operands, self._instructions, self._lowering)
        except NotLowered as refusal:
            reason = str(refusal)
        except Exception as error:  # noqa: BLE001  # an error of the kernel is for the run to raise
            reason = f"its kernel raises {type(error).__name__} when it is traced"
        if reason:
            del self._instructions.list[start:]
            return reason
        if len(arrays) == 1:  # nearly always
            self.arrays[node.outputs[0]] = arrays[0]
        else:
            self.arrays.update(zip(node.outputs, arrays, strict=True))
        if concerns_variable:
            self.assignments.note(node, arrays[0])
        self._spans[node] = (start, len(self._instructions.list))
        self.nodes.append(node)
        return ""

    def array(self, value: Value) -> TracedArray:
        """What stands for an operand; one from outside becomes an input."""
        array = self.arrays.get(value)
        if array is None:
            node = value.node
            if node is not None and node.op is constant_op:
                view = self._instructions.constant(constant(node))
            else:
                spec = value.spec
                assert isinstance(spec, TensorSpec | VariableSpec)
                shape: Any = spec.shape
                strides = self._layouts.get(value) or contiguous(shape, spec.dtype.itemsize)
                extent = spec.dtype.itemsize + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
                view = View(Buffer(extent, value=value), 0, shape, strides, spec.dtype)
            array = self.arrays[value] = TracedArray(view, self._instructions)
        return array

    # What becomes of it

    def finish(self, outside: Callable[[Value], bool]) -> FinishedStretch | None:
        """The stretch as a table; None where it is not worth one.

        Args:
            outside: whether a value is used outside of these nodes.
        """
        left, results = self._divided({value for node in self.nodes for value in node.outputs if outside(value)})
        assigned = [value for _, value, _ in self.assignments.list]
        results += [value for value in dict.fromkeys(assigned) if value not in results]
        inside = _needed_nodes(self.nodes, results, self.assignments.nodes)
        guards = {i for node in inside if guard_of(node.op) for i in range(*self._spans[node])}
        buffers = [self.arrays[value].view.buffer for value in results]
        instructions, numbers = self._needed_instructions(buffers, guards)
        if sum(map(length, instructions)) < FEWEST or not results:
            return None
        return FinishedStretch(self, inside, left, results, instructions, numbers)

    def _divided(self, wanted: set[Value]) -> tuple[list[Node], list[Value]]:
        """The nodes whose results are views that others see, which the plan makes anew; and what the table returns.

        What an assignment returns is what was assigned: these values have one result (`Assignments.origin`).
        """
        made = [value for node in self.nodes for value in node.outputs]
        origin = self.assignments.origin
        wanted = {origin(value) for value in wanted}
        assigned = {value for _, value, _ in self.assignments.list}
        wanted |= assigned
        owners: dict[Buffer, Value] = {self.arrays[value].view.buffer: value for value in assigned}
        for value in made:
            if value in wanted and self.arrays[value].view.is_whole:
                owners.setdefault(self.arrays[value].view.buffer, value)
        left: list[Node] = []
        for node in reversed(self.nodes):
            seen = [value for value in node.outputs if value in wanted]
            for value in seen:
                if self.arrays[value].view.is_whole:
                    owners.setdefault(self.arrays[value].view.buffer, value)
            if all(owners.get(self.arrays[value].view.buffer) is value for value in seen):
                continue
            left.append(node)
            wanted.difference_update(seen)
            for value in seen:
                if owners.get(self.arrays[value].view.buffer) is value and value not in assigned:
                    del owners[self.arrays[value].view.buffer]
            wanted.update(origin(x) for x in node.inputs if x in self.arrays and x.node in self._spans)
        return left[::-1], [value for value in made if value in wanted]

    def _needed_instructions(
        self, buffers: Iterable[Buffer], guards: Container[int]
    ) -> tuple[list[AnyInstruction], dict[int, range]]:
        """The instructions that these buffers and guards need, and the new numbers of each."""
        needed = set(buffers)
        keep: list[int] = []
        for i in range(len(self._instructions.list) - 1, -1, -1):
            one = self._instructions.list[i]
            if type(one) is Instruction:  # nearly always
                is_needed = one.operands[-1].buffer in needed
            else:
                is_needed = i in guards if isinstance(one, Guard) else any(x.buffer in needed for x in one.written)
            if is_needed:
                for x in one.operands:
                    needed.add(x.buffer)
                keep.append(i)
        keep.reverse()
        numbers: dict[int, range] = {}
        number = 0
        for i in keep:
            one = self._instructions.list[i]
            n = 1 if type(one) is Instruction else length(one)
            numbers[i] = range(number, number + n)
            number += n
        return [self._instructions.list[i] for i in keep], numbers

    def span(self, node: Node, numbers: Mapping[int, range]) -> list[int]:
        """The numbers of the instructions of a node, in the table that it became."""
        return [number for i in range(*self._spans[node]) if i in numbers for number in numbers[i]]


class FinishedStretch:
    """A stretch whose table can be made.

    Args:
        stretch: what it is made from.
        nodes: those that the table runs.
        left: those that the plan runs as well, since their results are views that others see.
        results: the values that the table returns.
        instructions: of the table.
        numbers: the numbers of each instruction of `stretch` in the table.
    """

    def __init__(
        self,
        stretch: Stretch,
        nodes: list[Node],
        left: list[Node],
        results: list[Value],
        instructions: list[AnyInstruction],
        numbers: dict[int, range],
    ) -> None:
        self.nodes = nodes
        self.left = left
        self.results = results
        self.instructions = instructions
        self.arrays = stretch.arrays
        self.origin = stretch.assignments.origin
        self._stretch = stretch
        self._numbers = numbers
        inner = {value for node in nodes for value in node.outputs}
        used = dict.fromkeys(x for node in nodes for x in node.inputs if x not in inner)
        self.constants = [x.node for x in used if x.node is not None and x.node.op is constant_op]
        self.inputs = [x for x in used if x.node is None or x.node.op is not constant_op]

    def instructions_of(self, node: Node) -> list[int]:
        """The numbers of the instructions that run a node; none for one that is a view, or known beforehand."""
        return self._stretch.span(node, self._numbers)

    def graph(self, name: str) -> Graph:
        """The same nodes as a graph of their own."""
        return Graph(name, self.inputs, [*self.constants, *self.nodes], self.results)

    def op(self, otherwise: Callable[..., tuple[Any, ...]], number: int) -> Op:
        """An op whose kernel is the table, which calls `otherwise` with arrays that it was not made for."""
        arrays = [self.arrays.get(value) for value in self.inputs]
        storages = [i for i, value in enumerate(self.inputs) if isinstance(value.spec, VariableSpec)]
        assigned = self._stretch.assignments.list
        writes = [Write(self.inputs.index(v), self.results.index(x), swap) for v, x, swap in assigned]
        made = table(
            [None if array is None else array.view for array in arrays],
            [self.arrays[value].view for value in self.results],
            self.instructions,
            otherwise,
            storages,
            writes,
        )
        # what becomes the value of a variable, nobody may write to: the plan must not take it for new memory
        return _StretchOp(made, number, tuple([value.spec for value in self.results]), fresh=not writes)


class _StretchOp(Op):
    """The op of one stretch. Its kernel is the table itself: a run calls nothing between it and the plan."""

    def __init__(self, table: Any, number: int, specs: tuple[Any, ...], fresh: bool) -> None:
        super().__init__(
            f"table_{number}",
            inputs="*xs:any",
            infer=lambda *xs: specs,
            kernel=lambda xp, *xs: table(*xs),
            multiple=True,
            fresh=fresh,
            effect=None if fresh else WRITES,
            why_no_gradient="only graphs that are about to run have it",
        )
        self.table = table

    def kernel_on(self, backend: str) -> Callable[..., Any]:
        return self.table  # type: ignore[no-any-return]  # compiled code has no types


def _needed_nodes(nodes: Sequence[Node], results: Iterable[Value], always: Container[Node]) -> list[Node]:
    """Those nodes that the results need, and those that are needed always, in order."""
    wanted = set(results)
    needed = []
    for node in reversed(nodes):
        if node in always or not wanted.isdisjoint(node.outputs):
            wanted.update(node.inputs)
            needed.append(node)
    return needed[::-1]

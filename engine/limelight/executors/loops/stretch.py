"""A stretch: nodes that one table runs, under construction.

Nodes are offered one after the other. One whose kernel does what tables can is taken, and its instructions written;
from then on its values are known by the views that hold them. Operands from outside become inputs, which are taken to
lie in C order unless it is known that they do not. What does not fit at run time goes to a plan of the same nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, Final, NamedTuple

from limelight.core.op import Op
from limelight.core.spec import TensorSpec, VariableSpec
from limelight.executors.loops.assignments import Assignments
from limelight.executors.loops.control_marks import length
from limelight.executors.loops.cost_model import is_no_slower
from limelight.executors.loops.instructions import AnyInstruction, Guard, Instruction, Instructions, NotLowered
from limelight.executors.loops.layout import Buffer, GivenBuffer, Sizes, View, contiguous, extent
from limelight.executors.loops.lowering import Lowering, constant, lowered, never, unfit
from limelight.executors.loops.program import Write, table
from limelight.executors.loops.templates import take_known
from limelight.executors.loops.traced_array import TracedArray
from limelight.graph.effects import WRITES
from limelight.graph.ir import Graph, Node, Value
from limelight.ops.create.literal import constant_op

FEWEST: Final = 2
"""Instructions that are worth a table: one alone is no faster than NumPy's function."""
_TOO_FEW: Final = "too few nodes beside it could run in a table"
_TOO_LARGE: Final = "its arrays are so large that NumPy's own functions take no longer"


_INPUTS: Final = attrgetter("inputs")
_OUTPUTS: Final = attrgetter("outputs")


class Stretch:
    """Nodes that are to run together.

    Args:
        lowering: what it has in common with other stretches of the graph.
        layouts: the strides of values that do not lie in C order.
    """

    def __init__(self, lowering: Lowering, layouts: Mapping[Value, Sizes]) -> None:
        self.nodes: list[Node] = []
        self.views: dict[Value, View] = {}
        self.assignments = Assignments()
        self._lowering = lowering
        self._layouts = layouts
        self._instructions = Instructions()
        self._ends: list[int] = []  # for each node the number of the instruction behind its own

    def offer(self, node: Node) -> str:
        """Takes the node; else says why not."""
        if self.take_known((node,), 0):
            return ""
        start = len(self._instructions.list)
        taken = self._lowered(node)
        if isinstance(taken, str):
            del self._instructions.list[start:]
            return taken
        self.views.update(zip(node.outputs, taken, strict=True))
        self._ends.append(len(self._instructions.list))
        self.nodes.append(node)
        return ""

    def take_known(self, nodes: Sequence[Node], start: int) -> int:
        """Takes nodes from `start` on, up to the first one whose pattern is not known; returns its number."""
        stop = take_known(nodes, start, self.views, self._instructions.list, self._ends, self._known_view)
        self.nodes += nodes[start:stop]
        return stop

    def _known_view(self, value: Value) -> View | None:
        """What stands for a value from outside; None where a table cannot have it."""
        if unfit(value.spec):
            return None
        try:
            return self._view(value)
        except Exception:  # noqa: BLE001  # of a literal: `_lowered` says so
            return None

    def _lowered(self, node: Node) -> list[View] | str:
        """The results of a node whose instructions have been appended; or why a table cannot have it."""
        concerns_variable = node.op.effect is not None and self.assignments.knows(node)
        reason = never(node, self.views, self._lowering, concerns_variable)
        if reason:
            return reason
        try:
            if concerns_variable:
                new = self.assignments.lowered(node, self._array)
                self.assignments.note(node, new)
                return [new.view]
            return lowered(node, [self._view(x) for x in node.inputs], self._instructions, self._lowering)
        except NotLowered as refusal:
            return str(refusal)
        except Exception as error:  # noqa: BLE001  # an error of the kernel is for the run to raise
            return f"its kernel raises {type(error).__name__} when it is traced"

    def _array(self, value: Value) -> TracedArray:
        return TracedArray(self._view(value), self._instructions)

    def _view(self, value: Value) -> View:
        """What stands for an operand; one from outside becomes an input."""
        view = self.views.get(value)
        if view is None:
            node = value.node
            if node is not None and node.op is constant_op:
                view = self._instructions.constant(constant(node))
            else:
                spec = value.spec
                assert isinstance(spec, TensorSpec | VariableSpec)
                shape: Any = spec.shape
                strides = self._layouts.get(value) or contiguous(shape, spec.dtype.itemsize)
                view = View(
                    GivenBuffer(extent(shape, strides, spec.dtype.itemsize), value=value), 0, shape, strides, spec.dtype
                )
            self.views[value] = view
        return view

    # What becomes of it

    def finish(self, uses: Mapping[Value, int]) -> FinishedStretch | str:
        """The stretch as a table; else why it is not worth one.

        Args:
            uses: how often each value is used in the whole graph.
        """
        if not self._instructions.list:
            return _TOO_FEW
        made = list(chain.from_iterable(map(_OUTPUTS, self.nodes)))
        here = Counter(chain.from_iterable(map(_INPUTS, self.nodes))).get
        anywhere = uses.get
        left, results = self._divided(made, {value for value in made if anywhere(value, 0) != here(value, 0)})
        kept = set(results)
        results += [
            value for value in dict.fromkeys([value for _, value, _ in self.assignments.list]) if value not in kept
        ]
        if not left and self._are_all_used(made, uses):
            instructions = self._instructions.list
            inside, keep = self.nodes, list(range(len(instructions)))
        else:
            inside = _needed_nodes(self.nodes, results, self.assignments.nodes)
            keep = self._needed_instructions([self.views[value].buffer for value in results], inside)
            instructions = [self._instructions.list[i] for i in keep]
        if not results or (len(instructions) < FEWEST and sum(map(length, instructions)) < FEWEST):
            return _TOO_FEW
        if not self.assignments.list and not is_no_slower(
            instructions, [self.views[value].buffer for value in results]
        ):
            return _TOO_LARGE
        return FinishedStretch(self, inside, left, results, instructions, keep)

    def _are_all_used(self, made: list[Value], uses: Mapping[Value, int]) -> bool:
        """Whether each value is used, here or outside, or assigns: then all nodes are needed."""
        unused = [] if all(map(uses.__contains__, made)) else [value for value in made if value not in uses]
        return all(value.node in self.assignments.nodes for value in unused)

    def _divided(self, made: list[Value], wanted: set[Value]) -> tuple[list[Node], list[Value]]:
        """The nodes whose results are views that others see, which the plan makes anew; and what the table returns.

        What an assignment returns is what was assigned: these values have one result (`Assignments.origin`).
        """
        origin, views = self.assignments.origin, self.views
        wanted = {origin(value) for value in wanted}
        assigned = {value for _, value, _ in self.assignments.list}
        wanted |= assigned
        owners: dict[Buffer, Value] = {views[value].buffer: value for value in assigned}
        results = [value for value in made if value in wanted]
        for value in results:
            if views[value].is_whole:
                owners.setdefault(views[value].buffer, value)
        if all(owners.get(views[value].buffer) is value for value in results):
            return [], results
        left: list[Node] = []
        inside = set(made)
        for node in reversed(self.nodes):
            if wanted.isdisjoint(node.outputs):
                continue
            seen = [value for value in node.outputs if value in wanted]
            for value in seen:
                if views[value].is_whole:
                    owners.setdefault(views[value].buffer, value)
            if all(owners.get(views[value].buffer) is value for value in seen):
                continue
            left.append(node)
            wanted.difference_update(seen)
            for value in seen:
                if owners.get(views[value].buffer) is value and value not in assigned:
                    del owners[views[value].buffer]
            wanted.update(origin(x) for x in node.inputs if x in inside)
        return left[::-1], [value for value in made if value in wanted]

    def _needed_instructions(self, buffers: Iterable[Buffer], inside: Sequence[Node]) -> list[int]:
        """The numbers of the instructions that these buffers need, and the guards of these nodes."""
        needed = set(buffers)
        keep: list[int] = []
        guards = self._guards_of(inside)
        every = self._instructions.list
        for i in range(len(every) - 1, -1, -1):
            one = every[i]
            if type(one) is Instruction:  # nearly always
                views = one[1]
                if views[-1][0] not in needed:
                    continue
            elif i not in guards if isinstance(one, Guard) else all(x.buffer not in needed for x in one.written):
                continue
            else:
                views = one.operands
            for x in views:
                needed.add(x[0])
            keep.append(i)
        keep.reverse()
        return keep

    def _guards_of(self, nodes: Sequence[Node]) -> set[int]:
        guards = {i for i, one in enumerate(self._instructions.list) if isinstance(one, Guard)}
        if not guards:
            return guards
        spans = self.spans()
        return guards.intersection(chain.from_iterable([spans[node] for node in nodes]))

    def spans(self) -> dict[Node, range]:
        """The numbers of the instructions of each node."""
        return {node: range(i, j) for node, i, j in zip(self.nodes, [0, *self._ends], self._ends, strict=False)}

    def length_of(self, number: int) -> int:
        """How many instructions of a table one is."""
        return length(self._instructions.list[number])


class StretchPart(NamedTuple):
    """The part of a graph that a stretch runs. It may be kept, since it holds none of the stretch's instructions.

    Args:
        inputs: what it takes.
        nodes: its literals, then the nodes that the table runs.
        results: what it returns.
    """

    inputs: list[Value]
    nodes: list[Node]
    results: list[Value]

    def graph(self, whole: Graph) -> Graph:
        """The same nodes as a graph of their own, with the names of the graph that they are a part of."""
        names = dict(zip(whole.inputs, whole.input_names, strict=False))
        given = [names.get(value, f"arg{i}") for i, value in enumerate(self.inputs)]
        return Graph(whole.name, self.inputs, self.nodes, self.results, input_names=given)


class FinishedStretch:
    """A stretch whose table can be made.

    Args:
        stretch: what it is made from.
        nodes: those that the table runs.
        left: those that the plan runs as well, since their results are views that others see.
        results: the values that the table returns.
        instructions: of the table.
        keep: the numbers of these among the instructions of `stretch`.
    """

    def __init__(
        self,
        stretch: Stretch,
        nodes: list[Node],
        left: list[Node],
        results: list[Value],
        instructions: list[AnyInstruction],
        keep: list[int],
    ) -> None:
        self.nodes = nodes
        self.left = left
        self.results = results
        self.instructions = instructions
        self.views = stretch.views
        self.assignments = stretch.assignments
        self._stretch = stretch
        self._keep = keep
        inner = set(chain.from_iterable(map(_OUTPUTS, nodes)))
        used = [x for x in dict.fromkeys(chain.from_iterable(map(_INPUTS, nodes))) if x not in inner]
        self.constants = [x.node for x in used if x.node is not None and x.node.op is constant_op]
        self.inputs = [x for x in used if x.node is None or x.node.op is not constant_op]

    def instructions_of(self, node: Node) -> list[int]:
        """The numbers of the instructions that run a node; none for one that is a view, or known beforehand."""
        return [number for i in self._spans[node] for number in self._numbers.get(i, ())]

    @cached_property
    def _spans(self) -> dict[Node, range]:
        return self._stretch.spans()

    @cached_property
    def _numbers(self) -> dict[int, range]:
        """The numbers of each instruction of the stretch in the table."""
        lengths = [self._stretch.length_of(i) for i in self._keep]
        ends = list(accumulate(lengths))
        return {i: range(end - n, end) for i, n, end in zip(self._keep, lengths, ends, strict=True)}

    @property
    def part(self) -> StretchPart:
        """What it runs, without how."""
        return StretchPart(self.inputs, [*self.constants, *self.nodes], self.results)

    def op(self, otherwise: Callable[..., tuple[Any, ...]], number: int) -> Op:
        """An op whose kernel is the table, which calls `otherwise` with arrays that it was not made for."""
        storages = [i for i, value in enumerate(self.inputs) if isinstance(value.spec, VariableSpec)]
        assigned = self.assignments.list
        writes = [Write(self.inputs.index(v), self.results.index(x), swap) for v, x, swap in assigned]
        made = table(
            [self.views.get(value) for value in self.inputs],
            [self.views[value] for value in self.results],
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
        if not wanted.isdisjoint(node.outputs) or node in always:
            wanted.update(node.inputs)
            needed.append(node)
    return needed[::-1]

"""A stretch: nodes that one table runs, under construction.

Nodes are offered one after the other. One whose kernel does what tables can is taken, and its instructions written;
from then on its values are known by the views that hold them. Operands from outside become inputs, which are taken to
lie in C order unless it is known that they do not. What does not fit at run time goes to a plan of the same nodes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from limelight.core.devices import CPU0
from limelight.core.op import Op, get, home_of
from limelight.core.shapes import is_static
from limelight.core.spec import Spec, TensorSpec
from limelight.executors.loops import native_loops
from limelight.executors.loops.arena import place_buffers
from limelight.executors.loops.blocks import BLOCK, Run, in_runs
from limelight.executors.loops.checked_sums import checked_total
from limelight.executors.loops.instructions import Instruction, Instructions, NotLowered, check_dtype
from limelight.executors.loops.layout import Buffer, Sizes, View, contiguous
from limelight.executors.loops.traced_array import TracedArray
from limelight.executors.plan.kernel_calls import KernelCall, KernelCalls
from limelight.graph.ir import Graph, Node, Value
from limelight.ops.create.literal import constant_op
from limelight.optimise.guarded_sum import guard_of

FEWEST: Final = 2
"""Instructions that are worth a table: one alone is no faster than NumPy's function."""


class Stretch:
    """Nodes that are to run together.

    Args:
        kernel_calls: what the plan calls for each node.
        layouts: the strides of values that do not lie in C order.
    """

    def __init__(self, kernel_calls: KernelCalls, layouts: Mapping[Value, Sizes]) -> None:
        self.nodes: list[Node] = []
        self.arrays: dict[Value, TracedArray] = {}
        self._kernel_calls = kernel_calls
        self._layouts = layouts
        self._instructions = Instructions()
        self._spans: dict[Node, tuple[int, int]] = {}

    def offer(self, node: Node) -> str:
        """Takes the node; else says why not."""
        reason = _never(node, self.arrays)
        if reason:
            return reason
        start = len(self._instructions.list)
        try:
            array = self._traced(node)
        except NotLowered as refusal:
            reason = str(refusal)
        except Exception as error:  # noqa: BLE001  # an error of the kernel is for the run to raise
            reason = f"its kernel raises {type(error).__name__} when it is traced"
        if reason:
            del self._instructions.list[start:]
            return reason
        self.arrays[node.outputs[0]] = array
        self._spans[node] = (start, len(self._instructions.list))
        self.nodes.append(node)
        return ""

    def _traced(self, node: Node) -> TracedArray:
        operands = [self._array(value) for value in node.inputs]
        guard = guard_of(node.op)
        if guard is not None:
            return checked_total(guard, operands, self._instructions)
        made = called(self._kernel_calls.of(node, "numpy"), node, operands, self._instructions)
        is_known = not isinstance(made, TracedArray)
        result = TracedArray(self._instructions.constant(made), self._instructions) if is_known else made
        spec = node.outputs[0].spec
        assert isinstance(spec, TensorSpec)
        if result.shape != spec.shape or result.dtype != spec.dtype:
            raise NotLowered("its kernel returns another type than its rule says")
        return cast(TracedArray, result)

    def _array(self, value: Value) -> TracedArray:
        """What stands for an operand; one from outside becomes an input."""
        array = self.arrays.get(value)
        if array is None:
            node = value.node
            if node is not None and node.op is constant_op:
                view = self._instructions.constant(constant(node))
            else:
                spec = value.spec
                assert isinstance(spec, TensorSpec)
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
        made = {node.outputs[0]: node for node in self.nodes}
        wanted = {value for value in made if outside(value)}
        owners: dict[Buffer, Value] = {}
        for value in made:
            if value in wanted and _is_whole(self.arrays[value].view):
                owners.setdefault(self.arrays[value].view.buffer, value)
        left: list[Node] = []  # views that others see: the plan makes them anew
        for node in reversed(self.nodes):
            value = node.outputs[0]
            if value not in wanted:
                continue
            view = self.arrays[value].view
            if _is_whole(view):
                owners.setdefault(view.buffer, value)
            if owners.get(view.buffer) is not value:
                left.append(node)
                wanted.discard(value)
                wanted.update(x for x in node.inputs if x in made)
        results = [value for value in made if value in wanted]
        inside = _needed_nodes(self.nodes, results)
        guards = {i for node in inside if guard_of(node.op) for i in range(*self._spans[node])}
        buffers = [self.arrays[value].view.buffer for value in results]
        instructions, numbers = self._needed_instructions(buffers, guards)
        if len(instructions) < FEWEST or not results:
            return None
        return FinishedStretch(self, inside, left[::-1], results, instructions, numbers)

    def _needed_instructions(
        self, buffers: Iterable[Buffer], guards: Container[int]
    ) -> tuple[list[Instruction], dict[int, int]]:
        """The instructions that these buffers and guards need, and the new number of each."""
        needed = set(buffers)
        keep: list[int] = []
        for i in range(len(self._instructions.list) - 1, -1, -1):
            loop, operands, *_ = self._instructions.list[i]
            if operands[-1].buffer in needed if loop is not None else i in guards:
                needed.update(x.buffer for x in operands)
                keep.append(i)
        keep.reverse()
        return [self._instructions.list[i] for i in keep], {old: new for new, old in enumerate(keep)}

    def span(self, node: Node, numbers: Mapping[int, int]) -> list[int]:
        """The numbers of the instructions of a node, in the table that it became."""
        return [numbers[i] for i in range(*self._spans[node]) if i in numbers]


class FinishedStretch:
    """A stretch whose table can be made.

    Args:
        stretch: what it is made from.
        nodes: those that the table runs.
        left: those that the plan runs as well, since their results are views that others see.
        results: the values that the table returns.
        instructions: of the table.
        numbers: the number of each instruction of `stretch` in this list.
    """

    def __init__(
        self,
        stretch: Stretch,
        nodes: list[Node],
        left: list[Node],
        results: list[Value],
        instructions: list[Instruction],
        numbers: dict[int, int],
    ) -> None:
        self.nodes = nodes
        self.left = left
        self.results = results
        self.instructions = instructions
        self.arrays = stretch.arrays
        self._stretch = stretch
        self._numbers = numbers
        inner = {node.outputs[0] for node in nodes}
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
        specs = tuple([value.spec for value in self.results])
        return _StretchOp(self._table(otherwise), number, specs)

    def _table(self, otherwise: Callable[..., tuple[Any, ...]]) -> Any:
        inputs = [self.arrays[value].view for value in self.inputs]
        results = [self.arrays[value].view for value in self.results]
        constants: dict[Buffer, None] = {}
        for one in self.instructions:
            constants.update((x.buffer, None) for x in one.operands if x.buffer.array is not None)
        for place, buffer in enumerate([*[x.buffer for x in inputs], *constants, *[x.buffer for x in results]]):
            buffer.place = place
        arena = len(inputs) + len(constants) + len(results)
        items = in_runs(self.instructions, [x.buffer for x in results])
        mine = [[x.buffer for one in _parts(item) for x in one.operands if x.buffer.place < 0] for item in items]
        for item in items:
            if isinstance(item, Run):
                for buffer in item.scratch:
                    buffer.nbytes = buffer.nbytes // item.total * BLOCK
        nbytes = place_buffers(mine)
        for buffer in {buffer for buffers in mine for buffer in buffers}:
            assert buffer.is_made, "an input that no node of the stretch has"
            buffer.place = arena
        return native_loops.native().Table(
            tuple([_spec(view) for view in inputs]),
            tuple([buffer.array for buffer in constants]),
            tuple([_spec(view) for view in results]),
            nbytes,
            [_written_run(item) if isinstance(item, Run) else _written(item) for item in items],
            otherwise,
        )


class _StretchOp(Op):
    """The op of one stretch. Its kernel is the table itself: a run calls nothing between it and the plan."""

    def __init__(self, table: Any, number: int, specs: tuple[Any, ...]) -> None:
        super().__init__(
            f"table_{number}",
            inputs="*xs",
            infer=lambda *xs: specs,
            kernel=lambda xp, *xs: table(*xs),
            multiple=True,
            fresh=True,
            why_no_gradient="only graphs that are about to run have it",
        )
        self.table = table

    def kernel_on(self, backend: str) -> Callable[..., Any]:
        return self.table  # type: ignore[no-any-return]  # compiled code has no types


def called(call: KernelCall, node: Node, operands: Sequence[Any], to: Instructions) -> Any:
    """What the plan's call for a node returns for these operands."""
    params = node.params if call.params is None else call.params
    if call.elementwise and not call.extra and isinstance(call.kernel, np.ufunc):  # without a turn through NumPy
        return operands[0].__array_ufunc__(call.kernel, "__call__", *operands)
    if call.kernel is None:
        return _infix_call(call.infix, call.suffix, len(operands) + len(params))(*operands, *params)
    owner = getattr(call.kernel, "__self__", None)
    if isinstance(owner, np.ndarray):  # `ones.dot`: arrays do not ask their operands
        return getattr(TracedArray(to.constant(owner), to), call.kernel.__name__)(*operands, *params)
    arrays = (tuple(operands),) if call.packed else operands
    return call.kernel(*call.first, *arrays, *call.extra, *params)


@functools.lru_cache(maxsize=256)
def _infix_call(infix: str, suffix: str, n: int) -> Callable[..., Any]:
    """The function that calls without a kernel are written as (see `KernelCall`)."""
    names = [f"x{i}" for i in range(n)]
    code = f"lambda {', '.join(names)}: {names[0]}{infix}{', '.join(names[1:])}{suffix}"
    function: Callable[..., Any] = eval(code)  # the text is that of the plan's own calls
    return function


def constant(node: Node) -> Any:
    """The array of a literal."""
    return node.op.kernel_on("numpy")(*node.params)


def _never(node: Node, known: Container[Value]) -> str:
    """Why a node cannot be in a table, whatever its kernel does; `known` values can be in one."""
    op = node.op
    if node.device is not None and node.device is not CPU0:
        return f"it runs on {node.device.short}"
    if op.effect is not None:
        return "it has an effect"
    if op.higher_order or op.multiple:
        return "it calls functions" if op.higher_order else "it has several results"
    if guard_of(op) is None and (not home_of(op.name).startswith("limelight.") or get(op.name) is not op):
        return "it is no op of limelight's own, and its kernel may do anything"
    for value in (*node.inputs, *node.outputs):
        if value not in known and (reason := _unfit(value.spec)):
            return reason
    return ""


def _unfit(spec: Spec) -> str:
    """Why values of a spec cannot be in a table."""
    if not isinstance(spec, TensorSpec):
        return "it takes something that is no array"
    if not is_static(spec.shape):
        return "its sizes are unknown"
    if not spec.size:
        return "it has no elements"
    try:
        check_dtype(spec.dtype)
    except NotLowered as refusal:
        return str(refusal)
    return ""


def _is_whole(view: View) -> bool:
    """Whether a view is all of a buffer that instructions write."""
    return view.buffer.is_made and view.size * view.dtype.itemsize == view.buffer.nbytes and 0 not in view.strides


def _needed_nodes(nodes: Sequence[Node], results: Iterable[Value]) -> list[Node]:
    """Those nodes that the results need, in order."""
    wanted = set(results)
    needed = []
    for node in reversed(nodes):
        if node.outputs[0] in wanted:
            wanted.update(node.inputs)
            needed.append(node)
    return needed[::-1]


def _spec(view: View) -> tuple[int, Sizes, Sizes]:
    return (view.dtype.num, view.shape, view.strides)


def _written(one: Instruction) -> tuple[Any, ...]:
    """An instruction as the table takes it."""
    if one.loop is None:
        (condition,) = one.operands
        return (condition.buffer.place, condition.buffer.offset + condition.offset)
    operands = tuple([word for x in one.operands for word in (x.buffer.place, x.buffer.offset + x.offset)])
    return (one.loop, operands, one.dims, one.steps, one.axes)


def _written_run(run: Run) -> tuple[Any, ...]:
    """A run as the table takes it."""
    members = []
    for one in run.members:
        advances = [0 if x.buffer in run.scratch else step for x, step in zip(one.operands, one.steps, strict=True)]
        members.append((_written(one._replace(dims=(BLOCK,))), tuple(advances)))
    return (BLOCK, run.total, tuple(members))


def _parts(item: Instruction | Run) -> list[Instruction]:
    return item.members if isinstance(item, Run) else [item]

"""Where each node of a graph runs, with every copy between devices made a node of its own.

The rule is that of eager execution, so a function computes in the same places staged and not. A graph whose inputs are
on CPU:0, and which names no device, is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from limelight.core import device_copies
from limelight.core.device_copies import ASKED, CAPTURE, HOST_ARGUMENT
from limelight.core.devices import CPU0, Device
from limelight.core.op import Op
from limelight.core.placement import Choice
from limelight.core.spec import TensorSpec
from limelight.executors.base import Runnable
from limelight.executors.device_inference import choice_for, is_call, names_devices
from limelight.graph.build import Rewriter
from limelight.graph.ir import FunctionLike, Graph, Node, Value, with_functions
from limelight.ops.create.literal import constant_op
from limelight.user_code.source_line import Source

Build = Callable[..., Runnable]
"""`Executor.build`, called for a function that a node calls: build(graph, devices, deliver=device)."""


class Placed(NamedTuple):
    """A graph in which each node that is not on CPU:0 says so, and the devices of its outputs.

    `origin` has the node of the graph before for each that was made anew; copies between devices come from none.
    """

    graph: Graph
    outputs: tuple[Device, ...]
    origin: Mapping[Node, Node]


def place(graph: Graph, inputs: Sequence[Device], deliver: Device | None, build: Build) -> Placed:
    """Decides for each node where it runs, and inserts copies of operands that are elsewhere.

    As in eager execution that is where the node's parameters say, with its variable, where it was asked to run, or
    where its first tensor operand is. The outputs of a call stay where they are made; those of branches and loop
    bodies, of which one or another may run, come to the node's device.

    Args:
        graph: the graph, which stays as it is.
        inputs: the devices of its inputs, none at all for CPU:0.
        deliver: the device to which all outputs are brought, if they are to be in one place.
        build: builds called functions anew whose inputs are not on CPU:0 or whose nodes ask for devices.

    Returns:
        The graph with its copies, and where its outputs are.

    Raises:
        DeviceError: variables on different devices meet in one op.
    """
    if all(d is CPU0 for d in inputs) and deliver in (None, CPU0) and not names_devices(graph):
        return Placed(graph, (CPU0,) * len(graph.outputs), {})
    return _Placement(graph, inputs, build).run(deliver)


class Placement(NamedTuple):
    """Where one node of a graph runs, why there, and the copies of operands that are made for it."""

    node: Node
    choice: Choice
    copies: tuple[Node, ...]


def placements(graph: Graph, inputs: Sequence[Device], build: Build) -> list[Placement]:
    """Where each node of `graph` runs for inputs on these devices, but for literals, which run nowhere.

    A copy belongs to the first node that needs it: another one on the same device finds it there.
    """
    found = []
    placement = _Placement(graph, inputs, build)
    placement.run(None)
    copies: dict[Node, list[Node]] = {}
    pending: list[Node] = []
    origin = placement.origin
    made = set(placement.copies)
    for node in placement.nodes:
        if node in made:
            pending.append(node)
        elif (old := origin.get(node, node)) in placement.choices:
            copies[old], pending = pending, []
    for node, choice in placement.choices.items():
        needed = [copy for copy in copies.get(node, ()) if copy.op is copy_op]  # the others are literals
        found.append(Placement(node, choice, tuple(needed)))
    return found


class _Placement:
    """Places the nodes of one graph, in order; `_device_of` says where each value of the new graph is."""

    def __init__(self, graph: Graph, inputs: Sequence[Device], build: Build) -> None:
        self._graph = graph
        self._build = build
        self._rewriter = Rewriter(graph)
        self._device_of: dict[Value, Device] = dict(
            zip(graph.inputs, inputs or [CPU0] * len(graph.inputs), strict=True)
        )
        self._copies: dict[tuple[Value, Device], Value] = {}
        self._literals: dict[Value, Node] = {}  # of the new graph; they can be wherever they are wanted
        self._names = dict(zip(graph.inputs, graph.input_names, strict=True))
        self._captured = frozenset(graph.captures)
        self.choices: dict[Node, Choice] = {}
        """Of the nodes of the graph as it was, but for literals."""
        self.copies: list[Node] = []

    def run(self, deliver: Device | None) -> Placed:
        for node in self._graph.nodes:
            self._place(node)
        outputs = [self._rewriter.value(value) for value in self._graph.outputs]
        if deliver is not None:
            outputs = [self._on_device(value, deliver, None, "result of a call") for value in outputs]
        placed = self._rewriter.finish()
        self.nodes = placed.nodes
        graph = Graph(
            placed.name,
            placed.inputs,
            placed.nodes,
            outputs,
            input_names=placed.input_names,
            n_captures=placed.n_captures,
        )
        return Placed(graph, tuple([self._device_of.get(value, CPU0) for value in outputs]), self.origin)

    @property
    def origin(self) -> dict[Node, Node]:
        """The node of the graph before for each that was made anew."""
        return {new: old for old, new in self._rewriter.rewired.items()}

    def _place(self, node: Node) -> None:
        if node.op is constant_op and node.device is None:
            self._literals[node.outputs[0]] = self._rewriter.keep(node)
            return
        inputs = self._rewriter.inputs(node)
        choice = self.choices[node] = choice_for(node, inputs, self._device_of.get, self._names.get)
        device = choice.device
        called_once = is_call(node)
        if not (called_once and node.device is None):  # a called op brings its own
            inputs = tuple([self._operand(value, i, device, node) for i, value in enumerate(inputs)])
        placed = self._rewriter.rebuild(node, inputs)
        placed.device = device
        self._device_of.update(dict.fromkeys(placed.outputs, device))
        elsewhere = any(self._device_of.get(value, CPU0) is not CPU0 for value in inputs)
        if node.op.higher_order and (
            device is not CPU0 or elsewhere or any(names_devices(f.graph) for f in node.functions)
        ):
            deliver = None if called_once else device
            placed.params = with_functions(lambda f: self._relocate(f, inputs, device, deliver), node.params)
            if deliver is None:
                (called,) = (p for p in placed.params if isinstance(p, Relocated))
                self._device_of.update(zip(placed.outputs, called.run.output_devices, strict=True))
        elif device is not CPU0:
            placed.params = tuple([p.placed_on(device) if hasattr(p, "placed_on") else p for p in node.params])

    def _operand(self, value: Value, place: int, device: Device, node: Node) -> Value:
        """The operand of a node that runs on `device`, where its kernel can take it."""
        op = node.op
        if op.of_shapes:
            return value
        if place in op.on_host:
            home = self._device_of.get(value, CPU0)
            return value if home.backend == "numpy" else self._on_device(value, CPU0, node, f"{HOST_ARGUMENT} of {op}")
        if op.placement is not None:
            return self._on_device(value, device, node, ASKED)
        captured = value in self._captured and isinstance(value.spec, TensorSpec)
        cause = f"{CAPTURE}, operand of {op}" if captured else f"operand of {op}"
        return self._on_device(value, device, node, cause)

    def _on_device(self, value: Value, to: Device, node: Node | None, cause: str) -> Value:
        """`value`, or a copy of it, on the device `to`."""
        if value in self._literals and to is not CPU0:
            return self._copy_once(value, to, lambda: self._literal_on(self._literals[value], to))
        device = self._device_of.get(value, to)
        if device is to or not isinstance(value.spec, TensorSpec):
            return value
        return self._copy_once(value, to, lambda: self._copy(value, device, to, node, cause))

    def _copy_once(self, value: Value, to: Device, make: Callable[[], Node]) -> Value:
        if (value, to) not in self._copies:
            copy = make()
            self.copies.append(copy)
            copy.device = to
            self._device_of[copy.outputs[0]] = to
            self._copies[value, to] = copy.outputs[0]
        return self._copies[value, to]

    def _literal_on(self, literal: Node, to: Device) -> Node:
        return self._rewriter.add(literal, constant_op, (), literal.params, [literal.outputs[0].spec])

    def _copy(self, value: Value, device: Device, to: Device, node: Node | None, cause: str) -> Node:
        line = node.stack[0] if node is not None and node.stack else None
        copy = Node(
            copy_op,
            (value,),
            (device, to, cause, line, self._name_of(value)),
            (value.spec,),
            device=to,
            stack=node.stack if node is not None else (),
            scope=node.scope if node is not None else "",
        )
        self._rewriter.nodes.append(copy)
        return copy

    def _name_of(self, value: Value) -> str:
        made_by = value.node
        return self._names.get(value, "") if made_by is None else f"the result of {made_by.op}"

    def _relocate(
        self, function: FunctionLike, inputs: tuple[Value, ...], device: Device, deliver: Device | None
    ) -> Relocated:
        last = inputs[len(inputs) - len(function.graph.inputs) :]
        return Relocated(function, [self._device_of.get(value, device) for value in last], deliver, self._build)


class Relocated:
    """A called function, built for inputs that are not all on CPU:0.

    Args:
        function: the function as its node has it.
        inputs: the devices of its inputs.
        deliver: where all its outputs go; None: they stay where they are made.
        build: how it is made runnable.
    """

    def __init__(self, function: FunctionLike, inputs: list[Device], deliver: Device | None, build: Build) -> None:
        self.name = function.name
        self.graph = function.graph
        self._function = function
        self._inputs = inputs
        self._deliver = deliver
        self._build = build

    @property
    def where(self) -> tuple[Sequence[Device], Device | None]:
        """The devices of its inputs, and where all outputs go, if to one place."""
        return self._inputs, self._deliver

    @cached_property
    def run(self) -> Runnable:
        """What `build` makes of its graph, optimised no further."""
        return self._build(self.graph, self._inputs, deliver=self._deliver)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def _copy(xp: Any, data: Any, home: Device, to: Device, cause: str, line: Source | None, name: str) -> Any:
    return device_copies.copied(data, home, to, cause, line, name)


copy_op = Op(  # not registered: nobody writes it, and no graph holds it before it is about to run
    "copy_between_devices",
    inputs="x",
    attrs="home to cause line name",
    infer=lambda x, *attrs: x,
    kernel=_copy,
    why_no_gradient="only graphs that are about to run have it",
)

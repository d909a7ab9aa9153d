"""On which device each value of a graph is: the rule of eager execution (`core.placement`), node by node.

`placement` goes by it where it writes copies, and a trace where code asks for a tensor's device while it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limelight.core.devices import CPU0, Device
from limelight.core.op import get
from limelight.core.placement import FIRST, Choice, choose
from limelight.core.spec import Spec, TensorSpec, VariableSpec
from limelight.graph.ir import Graph, Node, Value
from limelight.graph.printer import nested
from limelight.ops.create.literal import constant_op

LARGEST = "with its largest operand"
_OPEN_SIZE = 2**62  # bytes: what has an unknown size is taken for large


def choice_for(
    node: Node,
    inputs: Sequence[Value],
    device_of: Callable[[Value], Device | None],
    name_of: Callable[[Value], str | None],
) -> Choice:
    """Where a node runs, and why.

    Control flow, whose branches and bodies run in one place, runs where its largest operand is, or on an accelerator if
    one is there: conditions and counters are small.

    Args:
        node: the node.
        inputs: its operands.
        device_of: where a value is; None for a literal, which is wherever it is wanted.
        name_of: what an input of the graph is called.

    Raises:
        DeviceError: its variables are on different devices, or it has no kernel where it must run.
    """
    op, variables, tensors, dtypes = node.op, [], [], []
    for i, value in enumerate(inputs):
        spec, device = value.spec, device_of(value)
        if isinstance(spec, VariableSpec):
            if not (spec.anywhere or op.higher_order or device is None):
                variables.append((name_of(value) or "", device))
        elif isinstance(spec, TensorSpec) and i not in op.on_host:
            dtypes.append(spec.dtype)
            tensors += [] if device is None else [(spec, device)]
    in_one_place = op.higher_order and not is_call(node)
    if in_one_place:
        tensors.sort(key=lambda one: -_size(one[0]))
    homes = [device for _, device in tensors]
    choice = choose(op, node.params, variables, node.device, homes, tuple(dtypes))
    return Choice(choice.device, LARGEST) if in_one_place and choice.reason is FIRST else choice


def home_of_body(operands: Sequence[tuple[Spec, Device]]) -> Device:
    """Where control flow with these tensors runs, if no scope says; at least one."""
    homes = [device for _, device in sorted(operands, key=lambda one: -_size(one[0]))]
    return next((device for device in homes if device.backend != "numpy"), homes[0])


def _size(spec: Spec) -> int:
    nbytes = spec.nbytes if isinstance(spec, TensorSpec) else 0
    return _OPEN_SIZE if nbytes is None else nbytes


def is_call(node: Node) -> bool:
    """Whether a node runs one function once, whose outputs then stay where that makes them."""
    return node.op.higher_order and len(node.functions) == 1 and node.op.passes is None


def names_devices(graph: Graph) -> bool:
    """Whether a node of the graph, or of a function that it calls, wants to be anywhere but on CPU:0."""
    graphs = [graph, *(function.graph for function in nested(graph))]
    return any(
        node.op.placement is not None or (node.device is not None and node.device is not CPU0)
        for one in graphs
        for node in one.nodes
    )


class DeviceInference:
    """Follows where values are.

    Args:
        home_of: where an input of the graph is.
        name_of: what it is called.
    """

    def __init__(self, home_of: Callable[[Value], Device], name_of: Callable[[Value], str | None]) -> None:
        self._home_of = home_of
        self._name_of = name_of
        self._device_of: dict[Value, Device | None] = {}

    def of(self, value: Value) -> Device | None:
        """Where a value is; None for a literal."""
        return self._device_of[value] if value in self._device_of else self._home_of(value)

    def note(self, node: Node) -> None:
        """Takes in the next node."""
        if node.op is constant_op and node.device is None:
            self._device_of[node.outputs[0]] = None
            return
        choice = choice_for(node, node.inputs, self.of, self._name_of)
        devices: Sequence[Device] = [choice.device] * len(node.outputs)
        if is_call(node):
            graph = node.functions[0].graph
            last = node.inputs[len(node.inputs) - len(graph.inputs) :]
            homes = [node.device or self.of(value) or CPU0 for value in last]
            made = output_devices(graph, homes)
            devices = [*made, *devices[len(made) :]]
        self._device_of.update(zip(node.outputs, devices, strict=False))


def output_devices(graph: Graph, inputs: Sequence[Device]) -> list[Device]:
    """Where the outputs of a graph are for inputs on these devices."""
    if all(device is CPU0 for device in inputs) and not names_devices(graph):
        return [CPU0] * len(graph.outputs)
    homes = dict(zip(graph.inputs, inputs, strict=True))
    names = dict(zip(graph.inputs, graph.input_names, strict=True))
    inference = DeviceInference(lambda value: homes.get(value, CPU0), names.get)
    for node in graph.nodes:
        inference.note(node)
    return [inference.of(value) or CPU0 for value in graph.outputs]


def with_output_devices_of(traced: Graph, optimised: Graph, inputs: Sequence[Device]) -> Graph:
    """`optimised` with its outputs where those of `traced` are for inputs on these devices, none at all for CPU:0.

    A pass may take away the op whose operand decided where its user runs: `ones * x` is on the device of `ones`, and
    simplified to `x` it is on that of `x`. What is computed may move with it; results stay where they are eagerly.
    """
    if all(device is CPU0 for device in inputs) and not names_devices(traced):
        return optimised
    homes = inputs or [CPU0] * len(traced.inputs)
    asked, made = output_devices(traced, homes), output_devices(optimised, homes)
    if asked == made:
        return optimised
    nodes, outputs = list(optimised.nodes), list(optimised.outputs)
    for i, (to, value) in enumerate(zip(asked, outputs, strict=True)):
        if to is not made[i] and isinstance(value.spec, TensorSpec):
            by = value.node
            copy = Node(
                get("to_device"),
                (value,),
                (to.name,),
                (value.spec,),
                stack=() if by is None else by.stack,
                scope="" if by is None else by.scope,
            )
            nodes.append(copy)
            outputs[i] = copy.outputs[0]
    return Graph(
        optimised.name,
        optimised.inputs,
        nodes,
        outputs,
        input_names=optimised.input_names,
        n_captures=optimised.n_captures,
    )

"""Graphs with unknown sizes: one trace, and a table for each set of concrete shapes that comes more than once.

The sizes of a trace follow from those of its inputs: shape rules are asked again, vectors of sizes become literals, and
ops that are given one (`sum_to_dynamic`) become those of known sizes. No kernel is called, and no pass is run. A
set of shapes that comes once runs on the plan for all sizes, so data of ever new sizes pay for nothing. Where more sets
take turns than there are tables for, those left over run on that plan as well: a table takes as long as many calls.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from limelight.core.devices import CPU0, Device
from limelight.core.op import get
from limelight.core.shapes import Shape, is_static
from limelight.core.spec import TensorSpec, VariableSpec
from limelight.executors.base import Peak, Runnable
from limelight.graph.build import Rewriter
from limelight.graph.ir import Graph, Literal, Node, Value
from limelight.graph.known_sizes import content_of, inferred
from limelight.ops.create.literal import constant_op

MOST_KEPT: Final = 16
"""Sets of shapes with tables of their own; the one not used for longest gives way."""
_MOST_SEEN: Final = 256
"""Sets of shapes without tables whose calls are counted."""
_CALLS: Final = 2
"""Calls after which a set of shapes gets a table."""
_CALLS_IN_PLACE: Final = 64
"""The same where another one has to give way: making a table takes as long as so many calls of what it gains by."""
FEWEST: Final = 3
"""Nodes for which looking at shapes, a microsecond a call, is worth it."""
_DYNAMIC: Final = "_dynamic"
_SCANS: Final = ("scan", "scan_forward")
"""Ops that call functions, whose rule asks these again; the number of rows may have been all that was unknown."""


def may_have_tables(graph: Graph) -> bool:
    """Whether tables for concrete shapes can be expected to gain something."""
    open_inputs = [value for value in graph.inputs if not _is_known(value)]
    if not open_inputs or any(isinstance(value.spec, VariableSpec) for value in open_inputs):
        return False  # the shape of a variable may change while the graph runs
    return sum(node.op is not constant_op for node in graph.nodes) >= FEWEST


def _is_known(value: Value) -> bool:
    spec = value.spec
    return not isinstance(spec, TensorSpec | VariableSpec) or is_static(spec.shape)


class ShapeSpecialisations:
    """A runnable that knows the shapes that it is called with.

    Args:
        graph: a graph with unknown sizes.
        general: what runs it for all sizes.
        build: makes a graph of known sizes runnable.
    """

    def __init__(self, graph: Graph, general: Runnable, build: Callable[[Graph], Runnable]) -> None:
        self.output_devices: tuple[Device, ...] = general.output_devices
        self._graph = graph
        self._general = general
        self._build = build
        self._open = [i for i, value in enumerate(graph.inputs) if not _is_known(value)]
        self._tables: OrderedDict[tuple[Shape, ...], Runnable] = OrderedDict()
        self._calls: dict[tuple[Shape, ...], int] = {}

    @property
    def source(self) -> str | None:
        return self._general.source

    def memory(self) -> Peak:
        """That of all sizes."""
        return self._general.memory()

    @property
    def shapes(self) -> tuple[tuple[Shape, ...], ...]:
        """The sets of shapes that have tables, the one used last at the end."""
        return tuple(self._tables)

    def __call__(self, *payloads: Any) -> tuple[Any, ...]:
        shapes = tuple([payloads[i].shape for i in self._open])
        run = self._tables.get(shapes)
        if run is None:
            run = self._made(shapes)
        else:
            try:  # noqa: SIM105  # `contextlib.suppress` takes half a microsecond
                self._tables.move_to_end(shapes)
            except KeyError:  # another thread has just made it give way
                pass
        return run(*payloads)

    def _made(self, shapes: tuple[Shape, ...]) -> Runnable:
        """What runs these shapes: one for all the first time, and for longer where a table would have to give way."""
        calls = self._calls.pop(shapes, 0) + 1
        if calls < (_CALLS if len(self._tables) < MOST_KEPT else _CALLS_IN_PLACE):
            if len(self._calls) >= _MOST_SEEN:
                self._calls = {}
            self._calls[shapes] = calls
            return self._general
        try:
            run = self._build(with_shapes(self._graph, dict(zip(self._open, shapes, strict=True))))
        except Exception:  # noqa: BLE001  # shapes that do not fit: the general one says so in its words
            run = self._general
        self._tables[shapes] = run
        if len(self._tables) > MOST_KEPT:
            self._tables.popitem(last=False)
        return run


def with_shapes(graph: Graph, shapes: dict[int, Shape]) -> Graph:
    """The graph for inputs of these shapes, by their numbers.

    Raises:
        LimelightError: a shape rule refuses them.
    """
    given: dict[Value, Value] = {}
    for i, shape in shapes.items():
        spec = graph.inputs[i].spec
        assert isinstance(spec, TensorSpec)
        given[graph.inputs[i]] = Value(TensorSpec(shape, spec.dtype))
    rewriter = Rewriter(graph, given)
    for node in graph.nodes:
        inputs = rewriter.inputs(node)
        is_kept = node.op.effect is not None or (node.op.higher_order and node.op.name not in _SCANS)
        if is_kept or all(map(_same, inputs, node.inputs)):
            rewriter.keep(node)
        else:
            rewriter.stand_in(node, _sized(node, inputs, rewriter))  # a scan may assign
    return rewriter.finish()


def _same(new: Value, old: Value) -> bool:
    return new is old


def _sized(node: Node, inputs: Sequence[Value], rewriter: Rewriter) -> Node:
    """The node for operands of known sizes."""
    op, params = node.op, node.params
    if op.name.endswith(_DYNAMIC):
        sizes = content_of(inputs[-1].spec)
        if sizes is not None and None not in sizes and get(op.name) is op:
            op, params, inputs = get(op.name.removesuffix(_DYNAMIC)), (*params[:-1], sizes), inputs[:-1]
    specs = inferred(op, [x.spec for x in inputs], params)
    if len(specs) == 1 and isinstance(specs[0], TensorSpec) and specs[0].content is not None:
        content = content_of(specs[0])
        if content is not None and None not in content:
            array = np.array(content, specs[0].dtype).reshape([n for n in specs[0].shape if n is not None])
            return rewriter.add(node, constant_op, (), (Literal(array),), specs)
    return rewriter.add(node, op, tuple(inputs), params, specs)


def is_here(devices: Sequence[Device], deliver: Device | None) -> bool:
    """Whether all inputs and outputs are on CPU:0."""
    return all(device is CPU0 for device in devices) and deliver in (None, CPU0)

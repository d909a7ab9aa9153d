"""What does not change from one step of a loop to the next: variables that it only reads, and intermediates.

Without this a loop would stack its weights for the gradient. Variables are read once, outside of the loop; constant
intermediates are not stacked, but computed again once for the backward pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from limelight.control_flow.variables_as_values import can_be_value, first_read, with_values
from limelight.core import dispatch
from limelight.core.spec import TensorSpec
from limelight.graph.effects import effects_of
from limelight.graph.ir import Graph, Value
from limelight.graph.subgraph import extract
from limelight.optimise.dead_code import prune
from limelight.staging.call_gradient import call
from limelight.staging.graph_function import GraphFunction
from limelight.user_code import source_line


def read_variables_before(
    functions: Sequence[GraphFunction], captures: Sequence[Any]
) -> tuple[list[GraphFunction], list[Any]]:
    """The functions of a loop with values in the place of variables that they only read, and captures with the values.

    The variables are read once, before the loop begins. A loop with Python functions in it (the effect "io") is left as
    it is: these may assign variables without the graph showing it.
    """
    new_captures = list(captures)
    if any("io" in function.effects.chains for function in functions):
        return list(functions), new_captures
    places: list[int] = []
    for place in range(-len(new_captures), 0):
        inside = [place + len(function.graph.inputs) for function in functions]
        node = next((n for f, i in zip(functions, inside, strict=True) if (n := first_read(f, i)) is not None), None)
        if node is None or not all(can_be_value(f, i) for f, i in zip(functions, inside, strict=True)):
            continue
        with source_line.pretend(node.stack):
            new_captures[place] = dispatch.apply(node.op, (new_captures[place],))
        places.append(place)
    return [with_values(f, [place + len(f.graph.inputs) for place in places]) for f in functions], new_captures


def constant_values(graph: Graph, first: int) -> frozenset[Value]:
    """The values of a body that depend only on captures, its inputs from number `first` on, and on no state."""
    constant: set[Value] = {value for value in graph.inputs[first:] if isinstance(value.spec, TensorSpec)}
    for node in graph.nodes:
        if all(value in constant for value in node.inputs) and not effects_of(node).any:
            constant.update(value for value in node.outputs if isinstance(value.spec, TensorSpec))
    return frozenset(constant)


def _is_used(graph: Graph, value: Value) -> bool:
    return value in graph.outputs or any(value in node.inputs for node in graph.nodes)


Place = tuple[str, int]
"""A value of a body that the backward pass reads: ("input", i) or ("output", i)."""

SMALL: Final = 64
"""Bytes. What is no larger is stacked in any case: what it comes from may be large, as the tensor of a shape is."""


class LoopConstants(NamedTuple):
    """Residuals that are the same in every step, and the function of captures that computes them."""

    places: tuple[Place, ...]
    reads: tuple[int, ...]  # the inputs of the body that `compute` gets
    compute: GraphFunction

    def values(self, inputs: Mapping[int, Any]) -> dict[Place, Any]:
        """The residuals, for inputs of the loop by number."""
        results = dispatch.apply(call, tuple([inputs[i] for i in self.reads]), (self.compute,))
        return dict(zip(self.places, results, strict=True))


def loop_constants_of(graph: Graph, first: int, sources: Sequence[Place]) -> LoopConstants | None:
    """Those residuals of `sources` that depend on captures alone; None where there are none."""
    values = {"input": graph.inputs, "output": graph.outputs}
    constant = constant_values(graph, first)
    places = [(where, i) for where, i in sources if where == "output" and values[where][i] in constant]
    places = [place for place in places if not _small(graph.outputs[place[1]].spec)]
    if not places:
        return None
    inputs, names = graph.inputs[first:], graph.input_names[first:]
    nodes = [node for node in graph.nodes if node.outputs and all(value in constant for value in node.outputs)]
    wanted = [graph.outputs[i] for _, i in places]
    pruned = prune(extract(f"unchanging_{graph.name}", inputs, nodes, wanted, names))[0]
    reads = [i for i, value in enumerate(pruned.inputs) if _is_used(pruned, value)]
    arguments = [pruned.inputs[i] for i in reads]
    compute = Graph(pruned.name, arguments, pruned.nodes, pruned.outputs, input_names=[names[i] for i in reads])
    return LoopConstants(tuple(places), tuple([first + i for i in reads]), GraphFunction(compute))


def _small(spec: Any) -> bool:
    nbytes = spec.nbytes
    return nbytes is not None and nbytes <= SMALL

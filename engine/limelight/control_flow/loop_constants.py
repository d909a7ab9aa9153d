"""What does not change from one iteration of a loop to the next: read, computed and kept once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from limelight.control_flow.variables_as_values import fixable, fixed, reading
from limelight.core import dispatch
from limelight.core.spec import TensorSpec
from limelight.graph.effects import effects_of
from limelight.graph.ir import Graph, Value
from limelight.graph.subgraph import extract
from limelight.optimise.dead_code import prune
from limelight.staging.call_gradient import call
from limelight.staging.graph_function import GraphFunction
from limelight.user_code import source_line


def read_outside(functions: Sequence[GraphFunction], captures: Sequence[Any]) -> tuple[list[GraphFunction], list[Any]]:
    """A loop's functions that find variables which the loop only reads as values, read once before it begins.

    Else a gradient would keep the variable's value for every iteration. A loop with Python functions in it (io) is left
    alone: these may assign variables without saying so.
    """
    found, kept = list(functions), list(captures)
    if any("io" in function.effects.chains for function in functions):
        return found, kept
    places: list[int] = []
    for place in range(-len(kept), 0):
        inside = [place + len(function.graph.inputs) for function in found]
        node = next((n for f, i in zip(found, inside, strict=True) if (n := reading(f, i)) is not None), None)
        if node is None or not all(fixable(f, i) for f, i in zip(found, inside, strict=True)):
            continue
        with source_line.pretend(node.stack):
            kept[place] = dispatch.apply(node.op, (kept[place],))
        places.append(place)
    return [fixed(f, [place + len(f.graph.inputs) for place in places]) for f in found], kept


def unchanging(graph: Graph, first: int) -> frozenset[Value]:
    """The values of a body that depend on its inputs from number `first` on alone, and on no state."""
    found: set[Value] = {value for value in graph.inputs[first:] if isinstance(value.spec, TensorSpec)}
    for node in graph.nodes:
        if all(value in found for value in node.inputs) and not effects_of(node).any:
            found.update(value for value in node.outputs if isinstance(value.spec, TensorSpec))
    return frozenset(found)


def _uses(graph: Graph, value: Value) -> bool:
    return value in graph.outputs or any(value in node.inputs for node in graph.nodes)


Place = tuple[str, int]
"""("input", i) or ("output", i) of a body."""

SMALL = 64
"""Bytes: what is no larger is stacked in any case, since what it comes from may be large (a shape, and its tensor)."""


class Unchanging(NamedTuple):
    """Intermediates that are the same in every step, and the function of captured inputs that computes them."""

    places: tuple[Place, ...]
    reads: tuple[int, ...]  # numbers of the body's inputs
    compute: GraphFunction

    def values(self, inputs: Mapping[int, Any]) -> dict[Place, Any]:
        """The intermediates, for inputs by number."""
        found = dispatch.apply(call, tuple([inputs[i] for i in self.reads]), (self.compute,))
        return dict(zip(self.places, found, strict=True))


def unchanging_of(graph: Graph, first: int, sources: Sequence[Place]) -> Unchanging | None:
    """Those of `sources` that depend on inputs from number `first` on alone; None where there are none."""
    values = {"input": graph.inputs, "output": graph.outputs}
    still = unchanging(graph, first)
    places = [(where, i) for where, i in sources if where == "output" and values[where][i] in still]
    places = [place for place in places if not _small(graph.outputs[place[1]].spec)]
    if not places:
        return None
    inputs, names = graph.inputs[first:], graph.input_names[first:]
    nodes = [node for node in graph.nodes if node.outputs and all(value in still for value in node.outputs)]
    wanted = [graph.outputs[i] for _, i in places]
    found = prune(extract(f"unchanging_{graph.name}", inputs, nodes, wanted, names))[0]
    reads = [i for i, value in enumerate(found.inputs) if _uses(found, value)]
    arguments = [found.inputs[i] for i in reads]
    compute = Graph(found.name, arguments, found.nodes, found.outputs, input_names=[names[i] for i in reads])
    return Unchanging(tuple(places), tuple([first + i for i in reads]), GraphFunction(compute))


def _small(spec: Any) -> bool:
    nbytes = spec.nbytes
    return nbytes is not None and nbytes <= SMALL

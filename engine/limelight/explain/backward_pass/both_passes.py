"""A call and its gradient as one graph, and runs of it that have no effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

from limelight.core import dispatch
from limelight.core.storage import Storage
from limelight.core.tensor import as_tensor, constant
from limelight.core.variable import Resource
from limelight.errors import ArgumentError
from limelight.executors import step
from limelight.explain.gradient_graph import chosen_inputs, with_seeded_gradient
from limelight.explain.subject import staged_for
from limelight.explain.without_effects import private, restored
from limelight.graph.effects import effects_of_graph
from limelight.graph.ir import Graph, Node, Value
from limelight.optimise.dead_code import pruned

GRADIENT: Final = "gradient/"
"""The name scope of the ops of the gradient."""


@dataclass(frozen=True)
class Source:
    """An input that is differentiated: its place in the graph, and that of its gradient, None where it has none."""

    place: int
    gradient: int | None


@dataclass(frozen=True)
class BothPasses:
    """A call and its gradient. The first `results` outputs of `graph` are the call's, the others are gradients.

    Differentiated is the sum of the outputs `summed`. The last `seeds` inputs are the gradients of the results, ones.
    """

    name: str
    graph: Graph
    inputs: tuple[Any, ...]
    sources: tuple[Source, ...]
    results: int
    seeds: int
    summed: tuple[int, ...]

    def ones(self) -> set[Value]:
        """The gradients of the results."""
        seeds = set(self.graph.inputs[len(self.graph.inputs) - self.seeds :])
        spread = [node for node in self.graph.nodes if node.op.name == "broadcast_to"]
        return seeds.union(*[node.outputs for node in spread if seeds.intersection(node.inputs)])

    def gradient_nodes(self) -> set[Node]:
        """The nodes that compute gradients: not what those are multiplied with, nor those of the results, ones."""
        gradients, found = self.ones(), set[Node]()
        for node in self.graph.nodes:
            if gradients.intersection(node.inputs) and gradients.isdisjoint(node.outputs):
                gradients.update(node.outputs)
                found.add(node)
        return found

    def forward(self) -> BothPasses:
        """The call alone, on the same inputs: for who needs its results many times."""
        graph, names = self.graph, self.graph.input_names
        outputs = graph.outputs[: self.results]
        alone = Graph(graph.name, graph.inputs, graph.nodes, outputs, input_names=names, n_captures=graph.n_captures)
        return replace(self, graph=pruned(alone))

    def input_name(self, place: int) -> str:
        """How the user calls an input: a variable of a module by its path, `net.conv1.kernel`."""
        return self.graph.input_names[place]

    def payloads(self, moved: dict[int, Any] | None = None) -> list[Any]:
        """What to run on: variables and generators are copies, and the inputs in `moved` have other arrays."""
        copies: dict[int, Any] = {}
        made = [private(x._data, copies) for x in self.inputs]
        for place, array in (moved or {}).items():
            if isinstance(made[place], Storage):
                made[place].array = array
            else:
                made[place] = array
        return made

    def run(self, moved: dict[int, Any] | None = None, graph: Graph | None = None, observer: Any = None) -> step.Steps:
        """A run of `graph` (this one, where none is given), of which nothing has run yet."""
        devices = [x._device for x in self.inputs]
        return step.run(graph or self.graph, self.payloads(moved), devices, observer)

    def without_effects(self) -> Any:
        """A scope for runs: what Python code inside the graph changes is put back."""
        return restored() if "io" in effects_of_graph(self.graph).chains else nullcontext()

    def outputs(self, moved: dict[int, Any] | None = None) -> tuple[Any, ...]:
        """The outputs of a whole run."""
        with dispatch.fresh_stack(), self.without_effects():
            return self.run(moved).outputs


def is_backward(node: Node) -> bool:
    """Whether a node belongs to the gradient."""
    return GRADIENT in node.scope


def both_passes(
    question: str, F: Callable[..., Any], gradient_of: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> BothPasses:
    """The call `F(*args, **kwargs)` and its gradient, from the sum of all results.

    Raises ArgumentError where `F` is no function, `gradient_of` is unknown, or nothing can be differentiated.
    """
    function = staged_for(question, F)
    call = function._call(tuple(args), kwargs)
    entry = function._find(call.lookup) or function._trace_once(call, run=False)
    inputs = [*[call.leaves[i] for i in entry._tensor_leaves], *entry._captured()]
    inputs = [x if isinstance(x, Resource) else as_tensor(x) for x in inputs]
    places = chosen_inputs(f"explain.{question}", gradient_of, entry.graph, inputs)
    if not places:
        raise ArgumentError(f"explain.{question}: {function.name} reads no floating tensor and no trainable variable")
    summed = tuple(function.summed_outputs(entry))
    graph, connected, seeds = with_seeded_gradient(entry.graph, places, summed)
    results = len(entry.graph.outputs)
    sources, at = [], results
    for place, has in zip(places, connected, strict=True):
        sources.append(Source(place, at if has else None))
        at += has
    inputs += [constant(1.0, dtype) for dtype in seeds]
    return BothPasses(function.name, graph, tuple(inputs), tuple(sources), results, len(seeds), summed)

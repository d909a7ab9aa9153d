"""Forward mode of graph functions: the graph with tangents as further inputs and outputs.

The first push through a function for a pattern of moving inputs traces its graph once more under an accumulator; the
result takes the tangents of those inputs behind them and returns the tangents of what moves. It is kept with the
function, like the forward/backward pair, and is an ordinary function, so it can be recorded and pushed through itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from limelight.autodiff import INEXACT, ForwardAccumulator, filled
from limelight.core import device_scopes, dispatch
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight.graph.ir import Graph
from limelight.staging.graph_function import GraphFunction
from limelight.staging.tracer import Tracer, replay

Flags = tuple[bool, ...]


class Pushed(NamedTuple):
    """A graph function with tangents, and which of the original's outputs have one, in order."""

    function: GraphFunction
    moving: tuple[int, ...]


def pushed(function: Any, moving: Flags, forced: Flags = (), *cuts: int) -> Pushed:
    """`function` for inputs of which `moving` have tangents, built once.

    Inputs: those before the first cut (all, by default), their tangents, those before the next one, their tangents, and
    so on. Outputs: those before the first cut, their tangents, the others, their tangents. Outputs that are `forced`
    have a tangent in any case.
    """
    key = ("pushed", moving, forced, cuts)
    found: Pushed | None = function.pairs.get(key)
    if found is None:
        found = function.pairs[key] = _push_graph(function.graph, moving, forced, cuts)
    return found


def _push_graph(graph: Graph, moving: Flags, forced: Flags, cuts: tuple[int, ...]) -> Pushed:
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(f"pushed_{graph.name}") as tracer:
        inputs, tangents = _arguments(tracer, graph, moving, cuts)
        with ForwardAccumulator([inputs[i] for i in tangents], list(tangents.values())) as forward:
            outputs = replay(graph, inputs)
        found: list[Any] = []
        for i, y in enumerate(outputs):
            floating = isinstance(y, Tensor) and y.dtype in INEXACT
            t = forward.jvp(y) if floating else None
            found.append(filled(0, y) if t is None and floating and forced and forced[i] else t)
        values = _interleaved(outputs, found, cuts[0] if cuts else len(outputs))
        result = tracer.finish(values)
    return Pushed(GraphFunction(result), tuple(i for i, t in enumerate(found) if t is not None))


def _arguments(tracer: Tracer, graph: Graph, moving: Flags, cuts: tuple[int, ...]) -> tuple[list[Any], dict[int, Any]]:
    """The inputs of `graph` in a trace, and the tangents of those that move, each group of these behind its inputs."""
    inputs: list[Any] = []
    tangents: dict[int, Any] = {}
    named = list(zip(graph.inputs, graph.input_names, strict=True))
    for first, last in pairwise((0, *cuts, len(moving))):
        inputs += [tracer.add_input(value.spec, name) for value, name in named[first:last]]
        for i in range(first, last):
            if moving[i]:
                spec = TensorSpec(named[i][0].spec.shape, named[i][0].spec.dtype)  # type: ignore[union-attr]
                tangents[i] = tracer.add_input(spec, f"tangent_of_{named[i][1]}")
    return inputs, tangents


def _interleaved(values: Sequence[Any], tangents: Sequence[Any], n: int) -> list[Any]:
    """The first `n` values, their tangents, the other values, their tangents."""
    found: list[Any] = []
    for part in (slice(0, n), slice(n, None)):
        found += values[part]
        found += [t for t in tangents[part] if t is not None]
    return found


def flags_of(tangents: Sequence[Any]) -> Flags:
    return tuple([t is not None for t in tangents])


def present(tangents: Sequence[Any]) -> list[Any]:
    return [t for t in tangents if t is not None]


def parted(results: Sequence[Any], n: int, moving: Sequence[int]) -> tuple[tuple[Any, ...], list[Any]]:
    """Results and tangents out of `n` results followed by the tangents of some."""
    tangents: list[Any] = [None] * n
    for i, t in zip(moving, results[n:], strict=True):
        tangents[i] = t
    return tuple(results[:n]), tangents


def widened(condition: Any, moving: Flags, n: int) -> GraphFunction:
    """A loop's condition that takes tangents, and does not look at them."""
    key = ("widened", moving, n)
    found: GraphFunction | None = condition.pairs.get(key)
    if found is None:
        with dispatch.fresh_stack(), device_scopes.device(None), Tracer(condition.graph.name) as tracer:
            inputs, _ = _arguments(tracer, condition.graph, moving, (n,))
            graph = tracer.finish(replay(condition.graph, inputs))
        found = condition.pairs[key] = GraphFunction(graph)
    return found

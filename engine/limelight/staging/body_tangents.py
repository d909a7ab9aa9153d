"""Forward mode of graph functions: the graph with tangents as further inputs and outputs.

The graph is traced once more under a `ForwardAccumulator`, once for each pattern of inputs that have tangents ("moving"
inputs), and the version is kept with the function, like its forward/backward pair. It is an ordinary function, so tapes
record it and other accumulators go through it: forward mode has any order and mixes with reverse mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from limelight.autodiff import INEXACT, ForwardAccumulator, filled
from limelight.core import device_scopes, dispatch
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight.executors import base as executors
from limelight.graph.ir import Graph
from limelight.staging.graph_function import GraphFunction
from limelight.staging.tracer import Tracer, replay

Flags = tuple[bool, ...]


class JvpFunction(NamedTuple):
    """A graph function that also returns tangents."""

    function: GraphFunction
    moving: tuple[int, ...]  # the outputs of the original that have tangents, in order


def jvp_function(function: Any, moving: Flags, forced: Flags = (), *cuts: int) -> JvpFunction:
    """`function` with tangents, built once.

    A loop needs the tangents of its carry behind the carry, those of its rows behind the rows, so its inputs are cut
    into groups. Inputs of the result: those before the first cut (all, without cuts), their tangents, those before the
    next cut, their tangents, and so on. Outputs: those before the first cut, their tangents, the others and theirs.

    Args:
        function: a graph function.
        moving: the inputs that have tangents.
        forced: outputs that get a tangent in any case, zeros where nothing moves them.
        *cuts: the numbers of the inputs at which a group ends.
    """
    key = ("pushed", moving, forced, cuts)
    version: JvpFunction | None = function.pairs.get(key)
    if version is None:
        with executors.chosen.override(function.executor):
            version = function.pairs[key] = _trace_jvp(function.graph, moving, forced, cuts)
    return version


def _trace_jvp(graph: Graph, moving: Flags, forced: Flags, cuts: tuple[int, ...]) -> JvpFunction:
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(f"pushed_{graph.name}") as tracer:
        inputs, tangents = _arguments(tracer, graph, moving, cuts)
        with ForwardAccumulator([inputs[i] for i in tangents], list(tangents.values())) as forward:
            outputs = replay(graph, inputs)
        of_outputs: list[Any] = []
        for i, y in enumerate(outputs):
            floating = isinstance(y, Tensor) and y.dtype in INEXACT
            t = forward.jvp(y) if floating else None
            of_outputs.append(filled(0, y) if t is None and floating and forced and forced[i] else t)
        values = _interleaved(outputs, of_outputs, cuts[0] if cuts else len(outputs))
        result = tracer.finish(values)
    return JvpFunction(GraphFunction(result), tuple(i for i, t in enumerate(of_outputs) if t is not None))


def _arguments(tracer: Tracer, graph: Graph, moving: Flags, cuts: tuple[int, ...]) -> tuple[list[Any], dict[int, Any]]:
    """The inputs of a graph in a trace, and the tangents of those that move, each group of them behind its inputs.

    Args:
        tracer: the trace.
        graph: the graph.
        moving: the inputs that have tangents.
        cuts: the numbers of the inputs at which a group ends.
    """
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
    interleaved: list[Any] = []
    for part in (slice(0, n), slice(n, None)):
        interleaved += values[part]
        interleaved += [t for t in tangents[part] if t is not None]
    return interleaved


def tangent_flags(tangents: Sequence[Any]) -> Flags:
    """Which inputs have tangents."""
    return tuple([t is not None for t in tangents])


def present_tangents(tangents: Sequence[Any]) -> list[Any]:
    """The tangents without those that are None."""
    return [t for t in tangents if t is not None]


def split_tangents(results: Sequence[Any], n: int, moving: Sequence[int]) -> tuple[tuple[Any, ...], list[Any]]:
    """The `n` results, and a tangent or None for each, out of results followed by the tangents of those that move."""
    tangents: list[Any] = [None] * n
    for i, t in zip(moving, results[n:], strict=True):
        tangents[i] = t
    return tuple(results[:n]), tangents


def condition_with_tangents(condition: Any, moving: Flags, n: int) -> GraphFunction:
    """A loop's condition that also takes the tangents of its inputs, and ignores them."""
    key = ("widened", moving, n)
    version: GraphFunction | None = condition.pairs.get(key)
    if version is None:
        with dispatch.fresh_stack(), device_scopes.device(None), Tracer(condition.graph.name) as tracer:
            inputs, _ = _arguments(tracer, condition.graph, moving, (n,))
            graph = tracer.finish(replay(condition.graph, inputs))
        version = condition.pairs[key] = GraphFunction(graph)
    return version

"""The residuals of a loop: what its backward pass needs of each step, and where it comes from.

The body of a loop has `n` carried values and `m` rows as inputs, then captures. For the gradient it returns residuals
as further rows, which the loop stacks. Not every residual needs a stack of its own: the carried value that a step
returns is the one that the next step begins with, so one of the two is stacked, and none where the loop returns it as a
row already; what does not change from step to step is computed again, once (`loop_constants`).

A loop keeps exactly what a step had. Where the shape of a row may vary (a value that grows, a slice as long as the
counter, the stack of an inner loop), rows are filled up with zeros to the largest, and cropped in the backward pass. So
stacks stay tensors: any order of derivative, forward mode, batching and devices need no second way. Lists of arrays
would take less memory (at most half, where something grows evenly) but would need gradients, tangents and batches of
lists; flat rows would need all of them in memory as one gradient in each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from limelight.autodiff import INEXACT
from limelight.control_flow.loop_constants import LoopConstants, Place, loop_constants_of
from limelight.control_flow.ragged_rows import hollow_op, marked_value, uneven_op
from limelight.control_flow.static_shapes import Varying, varying_shapes
from limelight.core import dtypes
from limelight.core.op import get
from limelight.core.spec import Spec, TensorSpec, known
from limelight.graph.ir import Graph, Node, Value
from limelight.staging.call_gradient import Pair, pair_of
from limelight.staging.graph_function import GraphFunction

_SIZES: Final = "sizes of "
"""Prefix of the place of a row that has the sizes of another row: ("sizes of output", i)."""


class LoopResiduals(NamedTuple):
    """Residuals of a loop for a pattern of watched inputs.

    A row whose shape may vary is marked by the op `uneven`, so that the loop fills it up; `sizes` says which row has
    its sizes, to which the backward pass crops it. A row that is empty where nobody reads it is marked by `hollow`, and
    needs no sizes.
    """

    pair: Pair  # the forward/backward pair of the body
    stacked: tuple[Place, ...]  # the residuals that the loop returns as further stacks, in order
    # residuals that are rows of another stack, of the same step (0), the one before (-1) or the next one (1)
    derived: Mapping[Place, tuple[Place, int]]
    sizes: Mapping[Place, Place]
    specs: Mapping[Place, Spec]  # of hollow rows and rows of sizes; others have the spec of the value
    constants: LoopConstants | None

    def spec_at(self, place: Place) -> Spec:
        """The spec of one row."""
        return self.specs.get(place) or _value(self.pair.forward.graph, place).spec

    def rows(self, first: int) -> list[Place]:
        """The residuals that the backward pass reads row by row; captures are the inputs from number `first` on."""
        changing = [place for place in self.pair.sources if not self._is_constant(place, first)]
        return list(dict.fromkeys([*changing, *self.sizes.values()]))

    def captures(self, first: int) -> list[Place]:
        """The residuals that are the same in every step."""
        return [place for place in dict.fromkeys(self.pair.sources) if self._is_constant(place, first)]

    def _is_constant(self, place: Place, first: int) -> bool:
        constant = self.constants.places if self.constants else ()
        return place in constant or (place[0] == "input" and place[1] >= first)


def loop_residuals(
    body: GraphFunction, n: int, m: int, watched: tuple[bool, ...]
) -> tuple[LoopResiduals, GraphFunction]:
    """The residuals of a loop, and the body that also returns the stacked ones; built once.

    Args:
        body: the body. Its inputs: `n` carried values, `m` rows, then captures.
        n: the number of carried values.
        m: the number of rows.
        watched: the inputs that a gradient is wanted for.
    """
    key = ("recorded", n, m, watched)
    cached: tuple[LoopResiduals, GraphFunction] | None = body.pairs.get(key)
    if cached is None:
        cached = body.pairs[key] = _find_residuals(pair_of(body, watched), n, m)
    return cached


def _find_residuals(pair: Pair, n: int, m: int) -> tuple[LoopResiduals, GraphFunction]:
    graph = pair.forward.graph
    sources = [place for place in dict.fromkeys(pair.sources) if place[0] == "output" or place[1] < n]
    still = loop_constants_of(graph, n + m, sources)
    elsewhere = {("output", i) for i in range(n, pair.n_outputs)} | set(still.places if still else ())
    changing = [place for place in sources if place not in elsewhere]
    derived = _derived(changing, graph, n, pair.n_outputs)
    vary = varying_shapes(graph, n)
    carries = [("input", i) for i, x in enumerate(graph.inputs[:n]) if _is_inexact(x)]  # a gradient may be zeros of it
    sized = [place for place in dict.fromkeys([*changing, *carries]) if _value(graph, place) in vary.uneven]
    sizes = _sizes(sized, graph, range(n, pair.n_outputs))
    stacked = tuple(dict.fromkeys([place for place in changing if place not in derived]))
    stacked += tuple([place for place in sizes.values() if place[0].startswith(_SIZES)])
    specs = {place: spec for place in (*changing, *stacked) if (spec := _row_spec(graph, place, vary)) is not None}
    return LoopResiduals(pair, stacked, derived, sizes, specs, still), GraphFunction(
        _with_residuals(graph, stacked, pair.n_outputs, vary)
    )


def _with_residuals(graph: Graph, stacked: Sequence[Place], n_outputs: int, vary: Varying) -> Graph:
    """The body that returns, behind its results, the stacked residuals of a step.

    Args:
        graph: the forward version of the body.
        stacked: the residuals.
        n_outputs: the number of results of the body itself.
        vary: the values whose shapes vary.
    """
    nodes, outputs = list(graph.nodes), list(graph.outputs[:n_outputs])
    for place in stacked:
        value = _value(graph, place)
        spec = _row_spec(graph, place, vary) or value.spec
        if place[0].startswith(_SIZES):
            nodes.append(Node(get("shape_of"), (value,), (), [spec]))
        elif value in vary.uneven:
            nodes.append(Node(uneven_op, (value,), (), [spec]))
        elif value in vary.hollow:
            nodes.append(Node(hollow_op, (value,), (vary.hollow[value],), [spec]))
        else:
            outputs.append(value)
            continue
        outputs.append(nodes[-1].outputs[0])
    return Graph(graph.name, graph.inputs, nodes, outputs, input_names=graph.input_names)


def _derived(places: Sequence[Place], graph: Graph, n: int, n_outputs: int) -> dict[Place, tuple[Place, int]]:
    """The residuals that are rows of a result of the loop, or of a stack of carried values, of this or another step.

    Args:
        places: residuals.
        graph: the forward version of the body.
        n: the number of carried values.
        n_outputs: the number of results of the body itself.
    """
    rows = {marked_value(graph.outputs[j]) or graph.outputs[j]: ("output", j) for j in range(n, n_outputs)}
    derived: dict[Place, tuple[Place, int]] = {}
    for place in places:
        where, i = place
        value = _value(graph, place)
        if value in rows:
            derived[place] = rows[value], 0
        elif i < n and where == "input" and graph.outputs[i] in rows:
            derived[place] = rows[graph.outputs[i]], -1
        elif i < n and where == "output" and graph.inputs[i] in rows:
            derived[place] = rows[graph.inputs[i]], 1
        elif i < n and where == "output" and ("input", i) in places:
            derived[place] = ("input", i), 1
    return derived


def _sizes(places: Sequence[Place], graph: Graph, rows: Iterable[int]) -> dict[Place, Place]:
    """For each of `places` the row that has its sizes: one that the body returns already, or one more."""
    shown = {
        (v.node.inputs[0]): ("output", j) for j in rows if (v := graph.outputs[j]).node and v.node.op == "shape_of"
    }
    return {place: shown.get(_value(graph, place), (f"{_SIZES}{place[0]}", place[1])) for place in places}


def _value(graph: Graph, place: Place) -> Value:
    where, i = place
    return (graph.inputs if where.endswith("input") else graph.outputs)[i]


def _row_spec(graph: Graph, place: Place, vary: Varying) -> Spec | None:
    """The spec of a row of sizes, or of one that is filled up; None where it is that of the value."""
    value = _value(graph, place)
    if not isinstance(value.spec, TensorSpec):
        return None
    if place[0].startswith(_SIZES):
        return known((value.spec.rank,), dtypes.int64)
    return known(vary.hollow[value], value.spec.dtype) if value in vary.hollow else None


def _is_inexact(value: Value) -> bool:
    return isinstance(value.spec, TensorSpec) and value.spec.dtype in INEXACT

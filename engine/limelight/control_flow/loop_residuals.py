"""What a loop that is recorded keeps of each step, and where the rest of what its gradient needs can be had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from limelight.autodiff import INEXACT
from limelight.control_flow.loop_constants import Place, Unchanging, unchanging_of
from limelight.control_flow.ragged_rows import hollow_op, marked, uneven_op
from limelight.control_flow.static_shapes import Varying, varying
from limelight.core import dtypes
from limelight.core.op import get
from limelight.core.spec import Spec, TensorSpec, known
from limelight.graph.ir import Graph, Node, Value
from limelight.staging.call_gradient import Pair, pair_of
from limelight.staging.graph_function import GraphFunction

_SIZES: Final = "sizes of "
"""What the place of a row of sizes begins with: ("sizes of output", i)."""


class Record(NamedTuple):
    """What a loop that is recorded returns besides its results: stacks of `kept`.

    A row that may have another shape in another step is marked (`uneven`), so that the loop fills it up, and `sizes`
    says which row has its sizes: what the backward pass reads is cropped to these, and so exactly what there was. One
    that is empty where nobody reads it has a mark of its own (`hollow`) and needs no sizes.

    `derived`: what can be had from another stack, since what a step hands on is what the next one begins with: that
    stack, and whether a row of it is of the same step (0), of the one before (-1) or of the next one (1).
    """

    pair: Pair
    kept: tuple[Place, ...]
    derived: Mapping[Place, tuple[Place, int]]
    sizes: Mapping[Place, Place]
    specs: Mapping[Place, Spec]  # of rows that are not the values as they are
    unchanging: Unchanging | None

    def spec_at(self, place: Place) -> Spec:
        """The spec of one row."""
        return self.specs.get(place) or _value(self.pair.forward.graph, place).spec

    def rows(self, first: int) -> list[Place]:
        """What the backward pass reads row by row; what it reads besides comes from inputs from number `first` on."""
        found = [place for place in self.pair.sources if not self._is_fixed(place, first)]
        return list(dict.fromkeys([*found, *self.sizes.values()]))

    def captures(self, first: int) -> list[Place]:
        """What the backward pass reads that is the same in every step."""
        return [place for place in dict.fromkeys(self.pair.sources) if self._is_fixed(place, first)]

    def _is_fixed(self, place: Place, first: int) -> bool:
        fixed = self.unchanging.places if self.unchanging else ()
        return place in fixed or (place[0] == "input" and place[1] >= first)


def recorded(body: GraphFunction, n: int, m: int, watched: tuple[bool, ...]) -> tuple[Record, GraphFunction]:
    """The record of a loop for a pattern of watched inputs, and the body that returns what is kept; built once.

    Inputs of the body: `n` that it hands on, `m` rows, then what is the same in every step.
    """
    key = ("recorded", n, m, watched)
    found: tuple[Record, GraphFunction] | None = body.pairs.get(key)
    if found is None:
        found = body.pairs[key] = _record(pair_of(body, watched), n, m)
    return found


def _record(pair: Pair, n: int, m: int) -> tuple[Record, GraphFunction]:
    graph = pair.forward.graph
    sources = [place for place in dict.fromkeys(pair.sources) if place[0] == "output" or place[1] < n]
    still = unchanging_of(graph, n + m, sources)
    elsewhere = {("output", i) for i in range(n, pair.n_outputs)} | set(still.places if still else ())
    changing = [place for place in sources if place not in elsewhere]
    derived = _derived(changing, graph, n, pair.n_outputs)
    vary = varying(graph, n)
    carries = [("input", i) for i, x in enumerate(graph.inputs[:n]) if _is_inexact(x)]  # a gradient may be zeros of it
    sized = [place for place in dict.fromkeys([*changing, *carries]) if _value(graph, place) in vary.uneven]
    sizes = _sizes(sized, graph, range(n, pair.n_outputs))
    kept = tuple(dict.fromkeys([place for place in changing if place not in derived]))
    kept += tuple([place for place in sizes.values() if place[0].startswith(_SIZES)])
    specs = {place: spec for place in (*changing, *kept) if (spec := _other_spec(graph, place, vary)) is not None}
    return Record(pair, kept, derived, sizes, specs, still), GraphFunction(
        _returning(graph, kept, pair.n_outputs, vary)
    )


def _returning(graph: Graph, kept: Sequence[Place], n_outputs: int, vary: Varying) -> Graph:
    """A body that returns, behind its results, what is kept of a step."""
    nodes, outputs = list(graph.nodes), list(graph.outputs[:n_outputs])
    for place in kept:
        value = _value(graph, place)
        spec = _other_spec(graph, place, vary) or value.spec
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
    """Which values are in a result of the loop already, or in a stack of what steps begin with."""
    rows = {marked(graph.outputs[j]) or graph.outputs[j]: ("output", j) for j in range(n, n_outputs)}
    found: dict[Place, tuple[Place, int]] = {}
    for place in places:
        where, i = place
        value = _value(graph, place)
        if value in rows:
            found[place] = rows[value], 0
        elif i < n and where == "input" and graph.outputs[i] in rows:
            found[place] = rows[graph.outputs[i]], -1
        elif i < n and where == "output" and graph.inputs[i] in rows:
            found[place] = rows[graph.inputs[i]], 1
        elif i < n and where == "output" and ("input", i) in places:
            found[place] = ("input", i), 1
    return found


def _sizes(places: Sequence[Place], graph: Graph, rows: Iterable[int]) -> dict[Place, Place]:
    """Which row has the sizes of the values at `places`: one that the loop returns already, or one more."""
    shown = {
        (v.node.inputs[0]): ("output", j) for j in rows if (v := graph.outputs[j]).node and v.node.op == "shape_of"
    }
    return {place: shown.get(_value(graph, place), (f"{_SIZES}{place[0]}", place[1])) for place in places}


def _value(graph: Graph, place: Place) -> Value:
    where, i = place
    return (graph.inputs if where.endswith("input") else graph.outputs)[i]


def _other_spec(graph: Graph, place: Place, vary: Varying) -> Spec | None:
    """The spec of a row of sizes, or of one that is filled up; None where it is that of the value."""
    value = _value(graph, place)
    if not isinstance(value.spec, TensorSpec):
        return None
    if place[0].startswith(_SIZES):
        return known((value.spec.rank,), dtypes.int64)
    return known(vary.hollow[value], value.spec.dtype) if value in vary.hollow else None


def _is_inexact(value: Value) -> bool:
    return isinstance(value.spec, TensorSpec) and value.spec.dtype in INEXACT

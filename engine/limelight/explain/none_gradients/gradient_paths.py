"""Paths of gradients: forwards from a source over what a tape recorded, and backwards from a target over a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from limelight.autodiff import INEXACT, GradientTape
from limelight.autodiff.gradient_cuts import Edge, GradientCut, edge_of
from limelight.control_flow.python_call import Recording, lost_at
from limelight.core.op import Op
from limelight.core.tensor import Tensor
from limelight.explain.none_gradients.op_history import Step
from limelight.graph.effects import effects_of
from limelight.graph.ir import Graph, Node, Value
from limelight.user_code.source_line import Source

_PICKS: Final = frozenset(
    ["call_forward", "embedding", "index", "index_update", "softmax_cross_entropy", "take", "take_along_axis", "where"]
)
"""Ops that take integers or conditions, or may: for a tape that has let go of what they kept."""

NOTHING: Final[Mapping[Any, Source]] = MappingProxyType({})


class Cut(NamedTuple):
    """An op that ends a path, and the user's line; `op` is None for a value that left through NumPy."""

    op: Op | None
    source: Source | None
    integer: bool  # whether it ends there because the result is no floating number
    inside: str  # the staged function that it is in
    outputs: tuple[int, ...]
    beside: tuple[int, ...] = ()  # the other outputs of that function, which have nothing to do with it


class Reach(NamedTuple):
    """What can be got to from a source: uids, the recorded edges on the way, and where paths end."""

    uids: set[int]
    edges: list[Edge]
    cuts: list[Cut]


def edges_of(tape: GradientTape) -> list[Edge]:
    """What the tape recorded, as far as it still has it."""
    if tape._entries or tape._edges_left is None:
        return [edge_of(entry, keep=True) for entry in tape._entries]
    return tape._edges_left


def knows(tape: GradientTape, target: Any) -> bool:
    """Whether the tape saw `target` computed, as far as it still has what it recorded."""
    uid = target._uid
    computed = (*[edge.outputs for edge in edges_of(tape)], *[cut.outputs for cut in tape._cuts])
    return any(uid in outputs for outputs in computed if uid)


def picks(edges: Iterable[Edge]) -> bool:
    """Whether an op takes integers or booleans beside numbers, or may: as an index, labels, a condition.

    In arithmetic these do not mix, so what is an operand beside floating numbers, or is kept for a gradient, picks.
    """
    return any(_picks(edge) for edge in edges)


def _picks(edge: Edge) -> bool:
    graph = _graph_of(edge.saved)
    if graph is not None:
        return any(_picks_in_graph(node) for node in graph.nodes)
    kept = [x.dtype for x in edge.saved if isinstance(x, Tensor)]
    return edge.op.name in _PICKS or any(dtype not in INEXACT for dtype in kept)


def _picks_in_graph(node: Node) -> bool:
    given = [dtype in INEXACT for x in node.inputs if (dtype := getattr(x.spec, "dtype", None)) is not None]
    return node.op.name in _PICKS or (any(given) and not all(given))


def forwards(tape: GradientTape, start: int) -> Reach:
    """What `tape` saw of everything that depends on `start`."""
    reach = Reach({start}, [], [])
    for edge in edges_of(tape):
        if reach.uids.intersection(edge.inputs):
            reach.edges.append(edge)
            _follow(edge, reach)
    for cut in tape._cuts:
        if reach.uids.intersection(cut.inputs):
            reach.cuts.extend(_cuts_of(cut, reach.uids))
    return reach


def _follow(edge: Edge, reach: Reach) -> None:
    """Adds the outputs that a recorded op leads to: of a staged function only those that depend on what was reached."""
    graph = _graph_of(edge.saved)
    if graph is None:
        reach.uids.update(uid for uid in edge.outputs if uid)
        return
    lost = _lost_in(edge.saved)
    outputs, cuts = through(graph, [i for i, uid in enumerate(edge.inputs) if uid in reach.uids], lost)
    reach.uids.update(edge.outputs[i] for i in outputs if edge.outputs[i])
    reach.uids.update(uid for uid in edge.outputs[len(graph.outputs) :] if uid)
    reach.cuts.extend([_cut_in(cut, graph.name, edge.outputs, lost) for cut in cuts])


def _lost_in(saved: Any) -> dict[Any, Source]:
    """The Python functions of a recorded call whose values left through NumPy, and the line at which they did."""
    lines: dict[Any, Source] = {}
    for kept in saved[0] if saved and isinstance(saved[0], tuple) else ():
        recording = getattr(kept, "_data", None)
        if isinstance(recording, Recording) and not any(y._uid in recording.tape._watched for y in recording.outputs):
            line = next(filter(None, [lost_at(recording, x) for x in recording.inputs]), None)
            if line is not None:
                lines[recording.call.function] = line
    return lines


def _graph_of(saved: Any) -> Graph | None:
    """The graph behind a recorded call."""
    pair = saved[0][0] if saved and isinstance(saved[0], tuple) and saved[0] else None
    graph = getattr(pair, "_graph", None)
    return graph if isinstance(graph, Graph) else None


def _cuts_of(note: GradientCut, reached: set[int]) -> list[Cut]:
    """What a tape noted of an op that it did not record, as cuts: for a call, the nodes inside it."""
    for function in note.attrs:
        graph = getattr(function, "graph", None)
        if isinstance(graph, Graph):
            first = len(note.inputs) - len(graph.inputs)
            _, cuts = through(graph, [i for i in range(len(graph.inputs)) if note.inputs[first + i] in reached])
            if cuts:
                return [_cut_in(cut, graph.name, note.outputs) for cut in cuts]
    integer = bool(note.dtypes) and all(dtype not in INEXACT for dtype in note.dtypes)
    return [Cut(note.op, note.source, integer, "", note.outputs)]


class End(NamedTuple):
    """A node at which a path ends, and the outputs of its graph that come of it all the same."""

    node: Node
    outputs: set[int]


def _cut_in(end: End, name: str, outputs: Sequence[int], lost: Mapping[Any, Source] = NOTHING) -> Cut:
    """The end of a path inside a staged function, as a cut.

    Args:
        end: the node, and the outputs of its graph that come of it.
        name: of the function.
        outputs: uids of what the call returned.
        lost: the Python functions whose values left through NumPy, and where.
    """
    node = end.node
    integer = all(getattr(value.spec, "dtype", None) not in INEXACT for value in node.outputs)
    reached = tuple([uid for i, uid in enumerate(outputs) if i in end.outputs])
    others = tuple([uid for i, uid in enumerate(outputs) if i not in end.outputs])
    if (line := _numpy_line(node, lost)) is not None:
        return Cut(None, line, False, name, reached, others)
    return Cut(node.op, node.stack[0] if node.stack else None, integer, name, reached, others)


def _numpy_line(node: Node, lost: Mapping[Any, Source]) -> Source | None:
    """The line at which the values of a py_func left, if that is known of it."""
    return lost.get(node.attrs["function"].function) if lost and node.op == "py_func" else None


def through(graph: Graph, given: Iterable[int], lost: Mapping[Any, Source] = NOTHING) -> tuple[set[int], list[End]]:
    """Which outputs of a graph depend, differentiably, on the inputs `given`; and the nodes where paths end."""
    reached: set[Value] = {graph.inputs[i] for i in given}
    ends: list[End] = []
    for place, node in enumerate(graph.nodes):
        inputs = [i for i, value in enumerate(node.inputs) if value in reached]
        if not inputs:
            continue
        outputs, inner = _through_node(node, inputs, lost)
        reached.update(outputs)
        ends += [End(cut, _outputs_after(graph, place)) for cut in inner]
    return {i for i, value in enumerate(graph.outputs) if value in reached}, ends


def _through_node(node: Node, inputs: Sequence[int], lost: Mapping[Any, Source]) -> tuple[list[Value], list[Node]]:
    outputs = [value for value in node.outputs if getattr(value.spec, "dtype", None) in INEXACT]
    if node.op.vjp is None or not outputs or _numpy_line(node, lost) is not None:
        return [], [node]
    if node.op not in ("call", "cond"):
        return outputs, []
    indices: set[int] = set()
    cuts: list[Node] = []
    for function in node.functions:
        graph: Any = function.graph
        first = len(node.inputs) - len(graph.inputs)
        inner, ends = through(graph, [i - first for i in inputs if i >= first], lost)
        indices |= inner
        cuts += [end.node for end in ends]
    return [node.outputs[i] for i in sorted(indices)], cuts


def _outputs_after(graph: Graph, place: int) -> set[int]:
    """The outputs of a graph that come of its node at `place` in any way, also by way of a variable."""
    node = graph.nodes[place]
    touched = {*node.outputs, *_written(node)}
    for later in graph.nodes[place + 1 :]:
        if not touched.isdisjoint(later.inputs):
            touched.update((*later.outputs, *_written(later)))
    return {i for i, value in enumerate(graph.outputs) if value in touched}


def _written(node: Node) -> frozenset[Value]:
    return effects_of(node).writes


class Ancestry(NamedTuple):
    """What a history says of how a target came about: the steps from the source to it, and all its constants."""

    path: list[Step]
    constants: list[Step]
    is_recorded: bool  # whether the history saw the target come about


def backwards(steps: Sequence[Step], target: int, source: int) -> Ancestry:
    """Walks from `target` back to `source`, or as far as `steps` go."""
    maker: dict[int, Step] = {}
    for step in steps:
        for uid in step.outputs:
            maker[uid] = step
    came_from: dict[int, tuple[Step, int]] = {}
    waiting, seen, constants = [target], {target}, []
    while waiting:
        uid = waiting.pop()
        maker_step = maker.get(uid)
        if maker_step is None:
            continue
        if maker_step.op is None:
            constants.append(maker_step)
        for input_uid in maker_step.inputs:
            if input_uid and input_uid not in seen:
                seen.add(input_uid)
                came_from[input_uid] = (maker_step, uid)
                waiting.append(input_uid)
    path: list[Step] = []
    at = source
    while at in came_from:
        step, at = came_from[at]
        path.append(step)
    return Ancestry(path, constants, target in maker)

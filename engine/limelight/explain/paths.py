"""How values lead to values: forwards over what a tape recorded, and backwards over a history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from limelight.explain.history import Step
from limelight.graph.ir import Graph, Node, Value
from limelight.registry import Op
from limelight.source import Source
from limelight.tape import INEXACT, GradientTape
from limelight.tape.notes import Edge, Note, edge_of


class Cut(NamedTuple):
    """An op that ends a path, and the user's line; `op` is None for a value that left through NumPy."""

    op: Op | None
    source: Source | None
    integer: bool  # whether it ends there because the result is no floating number
    inside: str  # the staged function that it is in
    outputs: tuple[int, ...]


class Reach(NamedTuple):
    """What can be got to from a source: uids, the recorded edges on the way, and where paths end."""

    uids: set[int]
    edges: list[Edge]
    cuts: list[Cut]


def edges_of(tape: GradientTape) -> list[Edge]:
    """What the tape recorded, as far as it still has it."""
    if tape._entries or tape._outline is None:
        return [edge_of(entry, keep=True) for entry in tape._entries]
    return tape._outline


def forwards(tape: GradientTape, start: int) -> Reach:
    """What `tape` saw of everything that depends on `start`."""
    reach = Reach({start}, [], [])
    for edge in edges_of(tape):
        if reach.uids.intersection(edge.inputs):
            reach.edges.append(edge)
            _follow(edge, reach)
    for note in tape._notes:
        if reach.uids.intersection(note.inputs):
            reach.cuts.append(_cut_of(note, reach.uids))
    return reach


def _follow(edge: Edge, reach: Reach) -> None:
    """Adds the outputs that a recorded op leads to: of a staged function only those that depend on what was reached."""
    graph = _graph_of(edge.saved)
    if graph is None:
        reach.uids.update(uid for uid in edge.outputs if uid)
        return
    given = [i for i, uid in enumerate(edge.inputs) if uid in reach.uids]
    outputs, cut = through(graph, given)
    reach.uids.update(edge.outputs[i] for i in outputs if edge.outputs[i])
    reach.uids.update(uid for uid in edge.outputs[len(graph.outputs) :] if uid)
    if cut is not None:
        hidden = tuple(uid for i, uid in enumerate(edge.outputs[: len(graph.outputs)]) if i not in outputs)
        reach.cuts.append(_cut_in(cut, graph.name, hidden))


def _graph_of(saved: Any) -> Graph | None:
    """The graph behind a recorded call."""
    pair = saved[0][0] if saved and isinstance(saved[0], tuple) and saved[0] else None
    found = getattr(pair, "_graph", None)
    return found if isinstance(found, Graph) else None


def _cut_of(note: Note, reached: set[int]) -> Cut:
    """A note as a cut: for a call, the node inside it."""
    integer = bool(note.dtypes) and all(dtype not in INEXACT for dtype in note.dtypes)
    for function in note.attrs:
        graph = getattr(function, "graph", None)
        if isinstance(graph, Graph):
            first = len(note.inputs) - len(graph.inputs)
            _, cut = through(graph, [i for i in range(len(graph.inputs)) if note.inputs[first + i] in reached])
            if cut is not None:
                return _cut_in(cut, graph.name, note.outputs)
    return Cut(note.op, note.source, integer, "", note.outputs)


def _cut_in(node: Node, name: str, outputs: tuple[int, ...]) -> Cut:
    integer = all(getattr(value.spec, "dtype", None) not in INEXACT for value in node.outputs)
    return Cut(node.op, node.stack[0] if node.stack else None, integer, name, outputs)


def through(graph: Graph, given: Iterable[int]) -> tuple[set[int], Node | None]:
    """Which outputs of a graph depend, differentiably, on the inputs `given`; and the first node where a path ends."""
    reached: set[Value] = {graph.inputs[i] for i in given}
    first: Node | None = None
    for node in graph.nodes:
        inputs = [i for i, value in enumerate(node.inputs) if value in reached]
        if not inputs:
            continue
        outputs, cut = _through_node(node, inputs)
        reached.update(outputs)
        first = first or cut
    return {i for i, value in enumerate(graph.outputs) if value in reached}, first


def _through_node(node: Node, inputs: Sequence[int]) -> tuple[list[Value], Node | None]:
    outputs = [value for value in node.outputs if getattr(value.spec, "dtype", None) in INEXACT]
    if node.op.vjp is None or not outputs:
        return [], node
    if node.op == "call":
        inner, cut = through(node.functions[0].graph, inputs)
        return [node.outputs[i] for i in inner], cut
    return outputs, None


class Found(NamedTuple):
    """What a history says of how a target came about: the steps from the source to it, and all its constants."""

    path: list[Step]
    constants: list[Step]
    born: bool  # whether the history saw the target come about


def backwards(steps: Sequence[Step], target: int, source: int) -> Found:
    """Walks from `target` back to `source`, or as far as `steps` go."""
    maker: dict[int, Step] = {}
    for step in steps:
        for uid in step.outputs:
            maker[uid] = step
    came_from: dict[int, tuple[Step, int]] = {}
    waiting, seen, constants = [target], {target}, []
    while waiting:
        uid = waiting.pop()
        made = maker.get(uid)
        if made is None:
            continue
        if made.op is None:
            constants.append(made)
        for given in made.inputs:
            if given and given not in seen:
                seen.add(given)
                came_from[given] = (made, uid)
                waiting.append(given)
    path: list[Step] = []
    at = source
    while at in came_from:
        step, at = came_from[at]
        path.append(step)
    return Found(path, constants, target in maker)

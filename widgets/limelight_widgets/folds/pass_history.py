"""A graph through the passes, or in two traces, as one graph: every node that there ever was, with its life.

Drawn once, so that boxes stay where they are from stop to stop: what a pass removed is a ghost, what it added is
marked. A node whose operands a pass has changed stays the node that it was.

`history` in a graph fold's state is `{graph, stops}`: the index of the graph of all nodes, and for each stop its
`name`, `before`, `removed`, `added` and `after` (`before - removed + added == after`), and `changes`: `[rule, reason,
old, new]` with the nodes by their places. Each node has `born` and, if it went, `gone`: the numbers of these stops;
and `ins`, pairs of a stop and what it reads from there on, where a pass has changed that. Its groups say no sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from types import SimpleNamespace
from typing import Any, Final

from limelight_widgets.folds.fold import State
from limelight_widgets.folds.graph_json import Describer, attribute_text
from limelight_widgets.folds.node_columns import Nodes

MOST_NODES: Final = 3_000
"""Of the traced graph, above which there is no history of passes: it takes as long as all else that is described."""
MOST_COMPARED: Final = 10_000
"""Of each of two traces, above which there is no history from one to the other: to align them would take seconds."""
MOST_CHANGES: Final = 200


@dataclass(eq=False)
class _Life:
    """A node from when it comes to when it goes. `versions` are pairs of a stop and the node as it is from there on."""

    order: tuple[float, ...]
    born: int
    versions: list[tuple[int, Any]]
    gone: int | None = None


class _Lives:
    def __init__(self, nodes: Sequence[Any]) -> None:
        self.all = [_Life((float(k),), 0, [(0, node)]) for k, node in enumerate(nodes)]
        self.now = {life.versions[0][1]: life for life in self.all}
        self.of = dict(self.now)  # also those that are gone

    def die(self, node: Any, stop: int) -> _Life | None:
        life = self.now.pop(node, None)
        if life is not None:
            life.gone = stop
        return life

    def come(self, node: Any, stop: int, place: tuple[float, ...]) -> None:
        if node not in self.now:
            life = _Life((*place, float(len(self.all))), stop, [(stop, node)])
            self.all.append(life)
            self.now[node] = self.of[node] = life

    def rewire(self, old: Any, new: Any, stop: int) -> None:
        life = self.now.pop(old, None)
        if life is not None:
            life.versions.append((stop, new))
            self.now[new] = self.of[new] = life


def of_passes(describer: Describer, traced: Any, optimised: Any, records: Sequence[Any]) -> State | None:
    """The history of a graph through the passes that changed it; None for huge graphs, and where none did."""
    if len(traced.nodes) > MOST_NODES:
        return None
    lives = _Lives(traced.nodes)
    stops: list[State] = []
    for record in records:
        if not (record.removed or record.added):
            for old, new in record.rewired.items():
                lives.rewire(old, new, len(stops))
            continue
        stops.append(_counts(record) | {"name": record.name})
        stops[-1]["told"] = _passed(lives, record, len(stops))
    if not stops or set(lives.now) != set(optimised.nodes):
        return None
    return _state(describer, traced, lives, stops, "traced")


def _counts(record: Any) -> State:
    return {"before": record.before, "removed": record.removed, "added": record.added, "after": record.after}


def _passed(lives: _Lives, record: Any, stop: int) -> list[tuple[Any, ...]]:
    """Takes in what a pass did; its changes by their lives."""
    told = []
    for change in record.changes:
        old = [life for life in (lives.die(node, stop) for node in change.old) if life is not None]
        told.append((change, old))
    if record.added:
        for change, old in told:
            place = old[0].order if old else (float(len(lives.all)),)
            for node in change.new:
                lives.come(node, stop, (*place[:1], -1.0))
    for old_node, new_node in record.rewired.items():
        lives.rewire(old_node, new_node, stop)
    return [(c.rule, c.reason, old, [lives.of[node] for node in c.new if node in lives.of]) for c, old in told if old]


def of_traces(describer: Describer, one: Any, two: Any, names: tuple[str, str]) -> State | None:
    """The history from a trace to another; nodes are the same that have op and line, types and parameters in common.

    None for huge graphs.
    """
    if max(len(one.nodes), len(two.nodes)) > MOST_COMPARED:
        return None
    lives = _Lives(one.nodes)
    places, others = [_place(node) for node in one.nodes], [_place(node) for node in two.nodes]
    removed: list[_Life] = []
    added = 0
    told: list[tuple[Any, ...]] = []
    for tag, a, b, c, d in SequenceMatcher(None, places, others, autojunk=False).get_opcodes():
        pairs = list(zip(one.nodes[a:b], two.nodes[c:d], strict=True)) if tag == "equal" else []
        for old, new in pairs:
            lives.rewire(old, new, 1)
        if not pairs:
            gone = [lives.die(node, 1) for node in one.nodes[a:b]]
            order = lives.of[one.nodes[min(a, len(one.nodes) - 1)]].order if one.nodes else (0.0,)
            for node in two.nodes[c:d]:
                lives.come(node, 1, (*order[:1], -0.5))
            removed += [life for life in gone if life is not None]
            added += d - c
            told.append(("differs", tag, gone, [lives.of[node] for node in two.nodes[c:d]]))
    stop = {"name": names[1], "before": len(one.nodes), "removed": len(removed), "added": added}
    stops = [stop | {"after": len(two.nodes), "told": told}]
    inputs = dict(zip(two.inputs, one.inputs, strict=False))
    return _state(describer, one, lives, stops, names[0], inputs)


def _place(node: Any) -> tuple[Any, ...]:
    attrs = tuple([(name, attribute_text(value)) for name, value in node.attrs.items() if value not in node.functions])
    return (node.source, str(node.op), attrs, *[str(value.spec) for value in node.outputs])


def _state(
    describer: Describer, graph: Any, lives: _Lives, stops: list[State], first: str, inputs: Mapping[Any, Any] = {}
) -> State:
    shown = _Union(graph, lives, inputs)
    index = describer.graph(shown)
    described = describer.described(shown)
    assert described is not None
    _leave_sums_out(described)
    number = {id(life): k for k, life in enumerate(shown.lives)}
    nodes: Nodes = described["nodes"]
    for k, life in enumerate(shown.lives):
        nodes.note(k, "born", life.born)
        if life.gone is not None:
            nodes.note(k, "gone", life.gone)
        if len(ins := shown.reads_of(life)) > 1:
            nodes.note(k, "ins", ins)
    start = {"name": first, "before": len(graph.nodes), "removed": 0, "added": 0, "after": len(graph.nodes)}
    return {"graph": index, "stops": [start | {"changes": []}, *[_told(stop, number) for stop in stops]]}


def _leave_sums_out(described: State) -> None:
    """Takes out what is summed up over all versions, and true of none; `versions` has the page add nothing up."""
    described["versions"] = True
    described.pop("crossings", None)
    for group in described["groups"]:
        for name in ("bytes", "saved"):
            group.pop(name, None)
        group["size"] = group["ops"] = 0


def _told(stop: State, number: Mapping[int, int]) -> State:
    told = stop.pop("told")
    changes = [
        [rule, reason, *[[number[id(life)] for life in lives] for lives in (old, new)]]
        for rule, reason, old, new in told[:MOST_CHANGES]
    ]
    return stop | {"changes": changes}


class _Union:
    """All nodes as one graph, in an order in which they could run, as far as there is one."""

    n_captures: int

    def __init__(self, graph: Any, lives: _Lives, inputs: Mapping[Any, Any]) -> None:
        self.name, self.inputs, self.input_names = graph.name, graph.inputs, graph.input_names
        self.n_captures, self.groups = graph.n_captures, ()
        self._value: dict[Any, Any] = {value: value for value in graph.inputs} | dict(inputs)
        self._life: dict[Any, _Life] = {}
        for life in lives.all:
            first = life.versions[0][1].outputs
            for _, node in life.versions:
                self._value.update(zip(node.outputs, first, strict=True))
            self._life.update(dict.fromkeys(first, life))
        self.lives = self._ordered(lives.all)
        place = {id(life): k for k, life in enumerate(self.lives)}
        self._known = {value: number for number, value in enumerate(graph.inputs)}
        self.nodes = tuple([self._node(life, place) for life in self.lives])
        for node in self.nodes:
            for value in node.outputs:
                self._known[value] = len(self._known)
        self.outputs = tuple([self._value[value] for value in graph.outputs])

    def reads_of(self, life: _Life) -> list[list[object]]:
        """What a node reads, from which stop on."""
        found: list[list[object]] = []
        for stop, node in life.versions:
            reads = [self._known[self._value[value]] for value in node.inputs if self._value.get(value) in self._known]
            if not found or found[-1][1] != reads:
                found.append([stop, reads])
        return found

    def _reads(self, life: _Life) -> Iterable[Any]:
        values = [self._value.get(value) for _, node in life.versions for value in node.inputs]
        return [value for value in dict.fromkeys(values) if value is not None]

    def _ordered(self, lives: Sequence[_Life]) -> list[_Life]:
        """By their places, but what a node reads comes before it; a circle, which no stop has, is cut."""
        found: list[_Life] = []
        begun: set[int] = set()
        done: set[int] = set()
        waiting = sorted(lives, key=lambda life: life.order, reverse=True)
        while waiting:
            life = waiting[-1]
            if id(life) not in begun:
                begun.add(id(life))
                sources = {id(of): of for value in self._reads(life) if (of := self._life.get(value)) is not None}
                left = [of for of in sources.values() if id(of) not in begun]
                waiting += sorted(left, key=lambda of: of.order, reverse=True)
                continue
            waiting.pop()
            if id(life) not in done:
                done.add(id(life))
                found.append(life)
        return found

    def _node(self, life: _Life, place: Mapping[int, int]) -> Any:
        node, here = life.versions[0][1], place[id(life)]
        reads = [value for value in self._reads(life) if self._is_before(value, place, here)]
        return SimpleNamespace(
            op=node.op, inputs=tuple(reads), outputs=node.outputs, params=node.params, attrs=node.attrs, after=(),
            functions=node.functions, device=node.device, stack=node.stack, scope=node.scope, source=node.source,
        )  # fmt: skip

    def _is_before(self, value: Any, place: Mapping[int, int], here: int) -> bool:
        life = self._life.get(value)
        return life is None or place[id(life)] < here

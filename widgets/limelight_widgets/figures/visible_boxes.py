"""What of a described graph is visible: the boxes and edges that remain when groups and calls are closed.

The live view does the same in `js/src/graph/visible-boxes.js`; the tests hold both to the same examples.

Boxes have names that stay the same whatever is open: `i2` is input 2, `n7` node 7, `g1` group 1, `o0` output 0. Inside
an open call they are prefixed by the path to it: `n7.0/i2` is input 2 of the first function that node 7 calls. Fusion
groups are frames too, `f1`: around those of their nodes that are visible in one place, since groups and name scopes cut
across one another. So a group of which some nodes are in an open scope has another frame there, `f1@g0`.

An open `cond` keeps its condition, as a box before its branches. The body of an open loop hands its results to itself,
by dashed edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from limelight_widgets.folds.fold import State

IsOpen = Callable[[str, bool], bool]
"""Whether the group or call of that name is open, given whether it would be by default."""


@dataclass(frozen=True, slots=True)
class Box:
    """A visible box. `kind` is "input", "output", "node" or "group"; `index` counts within graph `graph`.

    A "decision" is what chooses among the functions of an open call: the input at `position` of node `index`.
    """

    name: str
    kind: str
    graph: int
    index: int
    parent: str  # the frame around it, "" for none
    position: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """An open group or call, or a fusion group (`fused` is its number): drawn around what is in it."""

    name: str
    label: str
    parent: str
    fused: int = 0


@dataclass(slots=True)
class Picture:
    """Boxes in execution order, the frames around them, and how many values each edge carries."""

    boxes: list[Box] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    edges: dict[tuple[str, str], int] = field(default_factory=dict)
    again: set[tuple[str, str]] = field(default_factory=set)  # those that lead into the next round of a loop


def by_default(_name: str, default: bool) -> bool:
    """Groups that fit are open; calls are closed."""
    return default


def visible(state: State, graph: int, is_open: IsOpen = by_default) -> Picture:
    """The picture of graph number `graph` of a graph fold's state."""
    builder = _Builder(state["graphs"], is_open)
    builder.walk(graph)
    builder.connect()
    return builder.picture


@dataclass(slots=True)
class _Instance:
    """A graph at one place of the picture: the outermost, or an open call's."""

    path: str
    graph: int
    frame: str
    chain: frozenset[int]  # graphs around it, itself included
    boxes: list[str] = field(default_factory=list)  # for each node its box, "" for an open call and an inline constant
    calls: dict[int, list[_Instance]] = field(default_factory=dict)
    caller: tuple[_Instance, int] | None = None
    producers: list[tuple[int, int]] = field(default_factory=list)


class _Builder:
    def __init__(self, graphs: list[State], is_open: IsOpen) -> None:
        self.graphs = graphs
        self.is_open = is_open
        self.picture = Picture()
        self.instances: list[_Instance] = []

    def walk(self, graph: int) -> None:
        """Finds all boxes and frames."""
        waiting = [_Instance("", graph, "", frozenset({graph}))]
        while waiting:
            instance = waiting.pop()
            self.instances.append(instance)
            waiting += reversed(self._enter(instance))
        root = self.instances[0]
        for k in range(len(self.graphs[graph]["outputs"])):
            self.picture.boxes.append(Box(f"o{k}", "output", root.graph, k, ""))

    def _enter(self, instance: _Instance) -> list[_Instance]:
        graph = self.graphs[instance.graph]
        frames, closed = self._groups(instance, graph)
        for k in range(len(graph["inputs"])):
            self.picture.boxes.append(Box(f"{instance.path}i{k}", "input", instance.graph, k, instance.frame))
            instance.producers.append((-1, k))
        hulls = self._hulls(instance, graph, frames, closed)
        entered: list[_Instance] = []
        seen: set[int] = set()
        for index, node in enumerate(graph["nodes"]):
            instance.producers += [(index, j) for j in range(len(node.get("out", ())))]
            group = node.get("group", -1)
            hiding = closed.get(group, -1)
            if node.get("inline"):
                instance.boxes.append("")
                continue
            if hiding >= 0:
                name = f"{instance.path}g{hiding}"
                instance.boxes.append(name)
                if hiding not in seen:
                    seen.add(hiding)
                    parent = frames[graph["groups"][hiding]["parent"]]
                    self.picture.boxes.append(Box(name, "group", instance.graph, hiding, parent))
                continue
            name = f"{instance.path}n{index}"
            inside = self._open_call(instance, index, node, name, frames[group])
            instance.boxes.append("" if inside else name)
            if not inside:
                parent = hulls.get((node.get("fused", 0), group), frames[group])
                self.picture.boxes.append(Box(name, "node", instance.graph, index, parent))
            entered += inside
        return entered

    def _hulls(
        self, instance: _Instance, graph: State, frames: Mapping[int, str], closed: Mapping[int, int]
    ) -> dict[tuple[int, int], str]:
        """Frames around the visible nodes of each fusion group, by its number and the group that these nodes are in."""
        shown = Counter(
            (node["fused"], node.get("group", -1))
            for node in graph["nodes"]
            if node.get("fused") and closed.get(node.get("group", -1), -1) < 0
        )
        names = {}
        for (number, group), count in shown.items():
            name = f"{instance.path}f{number}" + (f"@g{group}" if group >= 0 else "")
            label = fusion_label(number, len(graph["fusions"][number - 1]["nodes"]), count)
            names[number, group] = name
            self.picture.frames.append(Frame(name, label, frames[group], number))
        return names

    def _groups(self, instance: _Instance, graph: State) -> tuple[dict[int, str], dict[int, int]]:
        """For each group the frame that it is drawn as, and the outermost closed group that hides its members."""
        frames, closed = {-1: instance.frame}, {-1: -1}
        default = set(graph["open"])
        for start in range(len(graph["groups"])):
            chain = [start]
            while chain[-1] not in closed:
                chain.append(graph["groups"][chain[-1]]["parent"])
            for group in reversed(chain[:-1]):
                name, parent = f"{instance.path}g{group}", graph["groups"][group]["parent"]
                if closed[parent] >= 0 or not self.is_open(name, group in default):
                    closed[group] = closed[parent] if closed[parent] >= 0 else group
                    continue
                closed[group], frames[group] = -1, name
                self.picture.frames.append(Frame(name, graph["groups"][group]["label"], frames[parent]))
        return frames, closed

    def _open_call(self, instance: _Instance, index: int, node: State, name: str, frame: str) -> list[_Instance]:
        calls = node.get("calls", ())
        if not calls or not self.is_open(name, False) or any(graph in instance.chain for graph, _ in calls):
            return []
        self.picture.frames.append(Frame(name, call_label(node), frame))
        for position in range(self._decisions(node)):
            box = Box(f"{name}.d{position}", "decision", instance.graph, index, name, position)
            self.picture.boxes.append(box)
        inside = []
        for k, (graph, label) in enumerate(calls):
            around = name
            if len(calls) > 1:
                around = f"{name}.{k}"
                self.picture.frames.append(Frame(around, label, name))
            callee = _Instance(f"{name}.{k}/", graph, around, instance.chain | {graph}, caller=(instance, index))
            inside.append(callee)
        instance.calls[index] = inside
        return inside

    def _decisions(self, node: State) -> int:
        """How many of a call's first inputs go to none of its functions: they choose among them."""
        count = len(node.get("in", ()))
        return max(min(count - len(self.graphs[graph]["inputs"]) for graph, _ in node["calls"]), 0)

    def connect(self) -> None:
        """Finds all edges."""
        for instance in self.instances:
            for index, node in enumerate(self.graphs[instance.graph]["nodes"]):
                if node.get("inline"):
                    continue
                for position, value in enumerate(node.get("in", ())):
                    for target in self._targets(instance, index, position, len(node["in"])):
                        self._connect(instance, value, target)
            for index, calls in instance.calls.items():
                self._go_round(self.graphs[instance.graph]["nodes"][index].get("loop", 0), calls[-1])
        root = self.instances[0]
        for k, value in enumerate(self.graphs[root.graph]["outputs"]):
            self._connect(root, value, f"o{k}")

    def _go_round(self, loop: int, body: _Instance) -> None:
        """What a loop's body gives goes into its next round."""
        for k, value in enumerate(self.graphs[body.graph]["outputs"][:loop]):
            self._connect(body, value, f"{body.path}i{k}", again=True)

    def _connect(self, instance: _Instance, value: int, target: str, *, again: bool = False) -> None:
        for source in self._sources(instance, value):
            if source != target:
                edge = (source, target)
                if again and edge not in self.picture.edges:
                    self.picture.again.add(edge)
                self.picture.edges[edge] = self.picture.edges.get(edge, 0) + 1

    def _targets(self, instance: _Instance, index: int, position: int, count: int) -> list[str]:
        """The boxes that an input of a node ends at: its own, or the inputs of the functions that it calls."""
        if instance.boxes[index]:
            return [instance.boxes[index]]
        decides = position < self._decisions(self.graphs[instance.graph]["nodes"][index])
        targets = [f"{instance.path}n{index}.d{position}"] if decides else []
        for callee in instance.calls[index]:
            inner = position - max(count - len(self.graphs[callee.graph]["inputs"]), 0)
            if inner >= 0:
                targets.append(f"{callee.path}i{inner}")
        return targets

    def _sources(self, instance: _Instance, value: int) -> list[str]:
        """The boxes that a value comes from: more than one where branches were opened."""
        sources, waiting = [], [(instance, value)]
        while waiting:
            place, number = waiting.pop()
            index, output = place.producers[number]
            if index < 0:
                sources.append(f"{place.path}i{output}")
            elif place.boxes[index]:
                sources.append(place.boxes[index])
            else:
                loop = self.graphs[place.graph]["nodes"][index].get("loop", 0)
                for callee in place.calls.get(index, [])[-1 if loop else 0 :]:
                    outputs = self.graphs[callee.graph]["outputs"]
                    if output < len(outputs):
                        waiting.append((callee, outputs[output]))
        return sources


def fusion_label(number: int, ops: int, shown: int) -> str:
    """What is written on the frame around a fusion group of which `shown` ops are in that frame.

    "In one go", not "one kernel": plans run the ops one by one into the same buffers, or block by block.

    >>> fusion_label(1, 4, 4), fusion_label(2, 4, 3)
    ('fused 1: 4 ops in one go', 'fused 2: 3 of 4 ops')
    """
    return f"fused {number}: {shown} ops in one go" if shown == ops else f"fused {number}: {shown} of {ops} ops"


def call_label(node: State) -> str:
    """What a call says: the op, and the functions that it calls."""
    names = ", ".join(label for _, label in node["calls"])
    return f"{node['op']} {names}"

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

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from limelight_widgets.folds.fold import State
from limelight_widgets.folds.node_columns import Integers, NodeColumns
from limelight_widgets.format import UNSIZED

MOST_MEMBERS = 8  # of a repeat that are all shown
SHOWN = 2  # of one with more, besides those that are open
FUSED_OPS = 3  # of a fusion group that are named on the frame around it
_VARIABLE = re.compile(r"(\w+ )?var ")
_SPEC = re.compile(r"[a-z]+(\d*)\[([\d,]*)\]$")

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
    lane: str = ""
    path: str = ""  # the same for a layer and its gradient
    more: int = 0  # for how many equal groups, or rounds of a loop, it stands besides those that are shown


@dataclass(frozen=True, slots=True)
class Frame:
    """An open group or call, or a fusion group (`fused` is its number): drawn around what is in it."""

    name: str
    label: str
    parent: str
    fused: int = 0
    lane: str = ""
    path: str = ""


@dataclass(slots=True)
class Picture:
    """Boxes in execution order, the frames around them, and how many values each edge carries."""

    boxes: list[Box] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    edges: dict[tuple[str, str], int] = field(default_factory=dict)
    again: set[tuple[str, str]] = field(default_factory=set)  # into the next round of a loop, or to a failure
    bytes: dict[tuple[str, str], float] = field(default_factory=dict)  # that an edge carries, in a folded picture
    carried: dict[tuple[str, str], dict[tuple[str, int], float]] = field(default_factory=dict)  # value by value
    tags: dict[str, dict[str, None]] = field(
        default_factory=dict
    )  # in order, what is told on a box: variables, and "▶ output"


def by_default(_name: str, default: bool) -> bool:
    """Groups that fit are open; calls are closed."""
    return default


def visible(
    state: State,
    graph: int,
    is_open: IsOpen = by_default,
    *,
    folded: bool = False,
    dissolved: Set[str] = frozenset(),
    most: int | None = None,
    tables: dict[int, Table] | None = None,
) -> Picture:
    """The picture of a graph of a graph fold's state.

    Args:
        state: what the fold says.
        graph: the graph's number.
        is_open: which groups and calls are open.
        folded: whether variables, and nodes that say little, are told on the boxes that use them.
        dissolved: open groups without a frame: what is in them stands in what is around them.
        most: the number of boxes beyond which nobody asks for edges.
        tables: what the last pictures of the same state have found out about its graphs; what this one does is added.
    """
    builder = _Builder(state["graphs"], is_open, folded=folded, dissolved=dissolved)
    if tables is not None:
        builder.tables = tables
    builder.walk(graph)
    if most is None or len(builder.picture.boxes) <= most:
        builder.connect()
    return builder.picture


class Table:
    """A described graph by columns, for all pictures of it: one is tried after the other, and few nodes matter.

    `hidden` and `folded` say which nodes have no box in any picture and in a folded one; `outputs` is the place of each
    value among what its node, or the graph as its inputs, gives; `wires` are node, place among its inputs, value and
    maker of everything that is read.
    """

    def __init__(self, graph: State) -> None:
        self.nodes = NodeColumns.of(graph)
        read = self.nodes.where(lambda kind: kind["op"] == "read_variable")
        reads = [k for k in read if len(self.nodes.reads[k]) == 1]
        self.reads = self.nodes.flags(reads)
        self.hidden = self.nodes.flags(self.nodes.noted("inline"))
        self.folded = self.hidden | self.nodes.flags([*self.nodes.noted("folded_into"), *reads])
        unfolds = sorted(self.nodes.noted("folded_into").keys() - self.nodes.noted("inline").keys() - set(reads))
        self.unfolds = np.array(unfolds, np.int64)
        into = self.nodes.noted("folded_into")
        self.unfold_into = np.array([into[k] for k in unfolds], np.int64)
        self._members: dict[bool, dict[int, list[int]]] = {}

    @cached_property
    def wires(self) -> tuple[Integers, Integers, Integers]:
        """Everything that is read: the node, the value, and the node that makes it."""
        reader, value = self.nodes.wires
        return reader, value, self.nodes.makers[value]

    @cached_property
    def places(self) -> Integers:
        """The place of what is read among the inputs of the node that reads it, of all wires."""
        reader = self.wires[0]
        return np.arange(len(reader)) - np.searchsorted(reader, reader)

    @cached_property
    def positions(self) -> Integers:
        """The place of each value among what its node, or the graph as its inputs, gives."""
        nodes = self.nodes
        starts = np.where(nodes.makers < 0, 0, nodes.firsts[nodes.makers])
        return np.arange(len(nodes.makers)) - starts

    @cached_property
    def groups(self) -> list[int]:
        """The innermost group of each node."""
        groups: list[int] = self.nodes.group.tolist()
        return groups

    def of_group(self, folded: bool) -> dict[int, list[int]]:
        """By innermost group the nodes that have a box in a picture that is `folded` or not."""
        if folded not in self._members:
            self._members[folded] = self.nodes.by_group(~(self.folded if folded else self.hidden))
        return self._members[folded]


def _table(graph: State) -> Table:
    return Table(graph)


class _Boxes:
    """The box of each node: "" for an open call and an inline constant. Boxes have numbers, 0 for none."""

    def __init__(self, groups: Integers, without: npt.NDArray[np.bool_], count: int, names: Mapping[int, str]) -> None:
        self.names = ["", *dict.fromkeys(names.values())]
        self._numbers = {name: number for number, name in enumerate(self.names)}
        of_group = np.zeros(count + 1, np.int64)  # the last is of nodes without a group
        of_group[list(names)] = [self._numbers[name] for name in names.values()]
        self.number = np.where(without, 0, of_group[groups])

    def __getitem__(self, node: int) -> str:
        return self.names[int(self.number[node])]

    def __setitem__(self, node: int, name: str) -> None:
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        self.number[node] = number


@dataclass(slots=True)
class _Instance:
    """A graph at one place of the picture: the outermost, or an open call's."""

    path: str
    graph: int
    frame: str
    chain: frozenset[int]  # graphs around it, itself included
    boxes: _Boxes = field(init=False)
    calls: dict[int, list[_Instance]] = field(default_factory=dict)
    caller: tuple[_Instance, int] | None = None


class _Builder:
    def __init__(self, graphs: list[State], is_open: IsOpen, *, folded: bool, dissolved: Set[str]) -> None:
        self.graphs = graphs
        self.is_open = is_open
        self.folded = folded
        self.dissolved = dissolved
        self.keys: dict[int, list[str]] = {}
        self.tables: dict[int, Table] = {}
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
        for k in range(0 if self.folded else len(self.graphs[graph]["outputs"])):
            self.picture.boxes.append(Box(f"o{k}", "output", root.graph, k, ""))

    def _enter(self, instance: _Instance) -> list[_Instance]:
        graph = self.graphs[instance.graph]
        frames, closed, more = self._groups(instance, graph)
        nodes, table = graph["nodes"], self._table(instance.graph)
        rounds = _rounds(graph, table.nodes, closed)
        for k, given in enumerate(graph["inputs"]):
            if not self._is_told(given):
                self.picture.boxes.append(Box(f"{instance.path}i{k}", "input", instance.graph, k, instance.frame))
        hulls = self._hulls(instance, graph, frames, closed)
        entered: list[_Instance] = []
        seen: set[str] = set()
        names = {group: f"{instance.path}g{hiding}" for group, hiding in closed.items() if hiding >= 0}
        without_box = table.folded if self.folded else table.hidden
        boxes = instance.boxes = _Boxes(table.nodes.group, without_box, len(graph["groups"]), names)
        for index in _with_boxes(table.of_group(self.folded), names):  # hidden: most nodes of a large graph are
            group, node = table.groups[index], nodes[index]
            if group in names:
                self._add_closed(instance, closed[group], frames, more)
                continue
            if index in rounds:
                boxes[index] = f"{instance.path}g{group}+"
                self._add_rest(instance, group, frames[group], rounds[index], seen)
                continue
            name = f"{instance.path}n{index}"
            inside = self._open_call(instance, index, node, name, frames[group])
            boxes[index] = "" if inside else name
            if not inside:
                parent = hulls.get((node.get("fused", 0), group), frames[group])
                lane, path = node.get("lane", ""), node.get("path", "")
                self.picture.boxes.append(Box(name, "node", instance.graph, index, parent, 0, lane, path))
            entered += inside
        if self.folded:
            boxes.number[table.unfolds] = boxes.number[table.unfold_into]
        return entered

    def _add_closed(self, instance: _Instance, group: int, frames: Mapping[int, str], more: Mapping[int, int]) -> None:
        parent = frames[self.graphs[instance.graph]["groups"][group]["parent"]]
        about = self._lane_and_path(instance.graph, group)
        name = f"{instance.path}g{group}"
        self.picture.boxes.append(Box(name, "group", instance.graph, group, parent, 0, *about, more.get(group, 0)))

    def _add_rest(self, instance: _Instance, group: int, parent: str, more: int, seen: set[str]) -> None:
        """One box for the rounds of a loop that are not shown."""
        name = f"{instance.path}g{group}+"
        if name not in seen:
            seen.add(name)
            about = self._lane_and_path(instance.graph, group)
            self.picture.boxes.append(Box(name, "group", instance.graph, group, parent, 0, *about, more))

    def _lane_and_path(self, graph: int, group: int) -> tuple[str, str]:
        described = self.graphs[graph]["groups"][group]
        lane = described.get("lane", "")
        if lane not in {"forward", "loss", "backward"}:
            return lane, described.get("path", "")
        if graph not in self.keys:
            self.keys[graph] = _keys(self.graphs[graph]["groups"])
        return lane, self.keys[graph][group]

    def _hulls(
        self, instance: _Instance, graph: State, frames: Mapping[int, str], closed: Mapping[int, int]
    ) -> dict[tuple[int, int], str]:
        """Frames around the visible nodes of each fusion group, by its number and the group that these nodes are in."""
        if self.folded:
            return {}
        table = self._table(instance.graph)
        fused, groups = table.nodes.noted("fused"), table.groups
        shown = Counter((fused[k], groups[k]) for k in sorted(fused) if closed.get(groups[k], -1) < 0)
        names = {}
        for (number, group), count in shown.items():
            name = f"{instance.path}f{number}" + (f"@g{group}" if group >= 0 else "")
            ops = [table.nodes.kind_of(index)["op"] for index in graph["fusions"][number - 1]["nodes"]]
            label = fusion_label(number, ops, count)
            names[number, group] = name
            self.picture.frames.append(Frame(name, label, frames[group], number))
        return names

    def _groups(self, instance: _Instance, graph: State) -> tuple[dict[int, str], dict[int, int], dict[int, int]]:
        """For each group the frame that it is drawn as, and the outermost closed group that hides its members.

        Last, for those that stand for others like them, how many these are.
        """
        frames, closed, more = {-1: instance.frame}, {-1: -1}, dict[int, int]()
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
                closed[group], frames[group] = -1, frames[parent]
                if name not in self.dissolved:
                    frames[group] = name
                    about = self._lane_and_path(instance.graph, group)
                    frame = Frame(name, graph["groups"][group]["label"], frames[parent], 0, *about)
                    self.picture.frames.append(frame)
                members = graph["groups"][group].get("repeat", {}).get("members", [])
                self._gather(instance.path, members, default, closed, more)
        return frames, closed, more

    def _gather(
        self, path: str, members: Sequence[int], default: Set[int], closed: dict[int, int], more: dict[int, int]
    ) -> None:
        """Of many equal groups the first ones are shown, those that are open, and one box for the others."""
        others = [group for group in members[SHOWN:] if not self.is_open(f"{path}g{group}", group in default)]
        if len(members) > MOST_MEMBERS and len(others) > 1:
            closed.update(dict.fromkeys(others, others[0]))
            more[others[0]] = len(others)

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
            for index, position, value, direct in self._leaving(instance):
                if direct:
                    self._join(instance, value, direct, index)
                    continue
                count = len(self._table(instance.graph).nodes.reads[index])
                for target in self._targets(instance, index, position, count):
                    self._connect(instance, value, target)
        for instance in self.instances:
            for index, calls in instance.calls.items():
                self._go_round(self.graphs[instance.graph]["nodes"][index].get("loop", 0), calls[-1])
        root = self.instances[0]
        self._follow(root)
        for k, value in enumerate(self.graphs[root.graph]["outputs"]):
            if self.folded:
                self._result(root, value, k)
            else:
                self._connect(root, value, f"o{k}")

    def _follow(self, root: _Instance) -> None:
        """Where a trace failed comes after what had run, of which it may have read nothing."""
        nodes = self.graphs[root.graph]["nodes"]
        after = nodes[-1].get("after", ()) if nodes else ()
        target = root.boxes[len(nodes) - 1] if after else ""
        edges = [(source, target) for value in after for source in self._sources(root, value, target)]
        self.picture.edges |= dict.fromkeys(edges, 1)
        self.picture.again.update(edges)

    def _leaving(self, instance: _Instance) -> Iterator[tuple[int, int, int, list[int]]]:
        """What comes from elsewhere into the box of a node: the node, the place among its inputs, the value.

        Last, where it comes from another box, all values that go from that one to this, which are told once.
        """
        box, table = instance.boxes.number, self._table(instance.graph)
        reader, value, maker = table.wires
        target, source = box[reader], np.where(maker < 0, 0, box[maker])
        opened = table.nodes.flags(instance.calls)
        leaves = np.flatnonzero(np.where(target == 0, opened[reader], (maker < 0) | (source != target)))
        direct = (target[leaves] != 0) & (source[leaves] != 0)
        between, pair = leaves[direct], (source * len(instance.boxes.names) + target)[leaves[direct]]
        order = np.argsort(pair, kind="stable")
        _, starts = np.unique(pair[order], return_index=True)
        joined = {int(part[0]): part for part in np.split(between[order], starts[1:])} if len(pair) else {}
        for wire in sorted([*joined, *leaves[~direct].tolist()]):
            values = value[joined[wire]].tolist() if wire in joined else []
            yield int(reader[wire]), int(table.places[wire]), int(value[wire]), values

    def _join(self, instance: _Instance, value: int, values: Sequence[int], index: int) -> None:
        """An edge for all values that go from the box that makes `value` to that of a node."""
        maker = int(self._table(instance.graph).nodes.makers[value])
        edge = (instance.boxes[maker], instance.boxes[index])
        if self.folded:
            for one in dict.fromkeys(values):
                self._weigh(instance, one, edge)
        self.picture.edges[edge] = self.picture.edges.get(edge, 0) + len(values)

    def _table(self, graph: int) -> Table:
        known = self.tables.get(graph)
        if known is None:
            known = self.tables[graph] = _table(self.graphs[graph])
        return known

    def _result(self, root: _Instance, value: int, k: int) -> None:
        """Tells an output of the graph on the box that it comes from."""
        graph = self.graphs[root.graph]
        default = "output" if len(graph["outputs"]) == 1 else f"output {k}"
        name = graph["output_names"][k] if "output_names" in graph else default
        for source in self._sources(root, value, ""):
            self._tag(source, f"▶ {name}")

    def _is_told(self, given: State) -> bool:
        """Whether an input is told on the boxes that read it: in a picture of all ops only what is read beside them."""
        return is_variable(given) if self.folded else bool(given.get("folded"))

    def _tag(self, target: str, name: str) -> None:
        self.picture.tags.setdefault(target, {})[name] = None

    def _go_round(self, loop: int, body: _Instance) -> None:
        """What a loop's body gives goes into its next round."""
        for k, value in enumerate(self.graphs[body.graph]["outputs"][:loop]):
            self._connect(body, value, f"{body.path}i{k}", again=True)

    def _connect(self, instance: _Instance, value: int, target: str, *, again: bool = False) -> None:
        for source in self._sources(instance, value, target):
            if source != target:
                edge = (source, target)
                if self.folded:
                    self._weigh(instance, value, edge)
                if again and edge not in self.picture.edges:
                    self.picture.again.add(edge)
                self.picture.edges[edge] = self.picture.edges.get(edge, 0) + 1

    def _weigh(self, instance: _Instance, value: int, edge: tuple[str, str]) -> None:
        """Adds the bytes of a value to an edge, once."""
        values = self.picture.carried.setdefault(edge, {})
        if (instance.path, value) in values:
            return
        table, graph = self._table(instance.graph), self.graphs[instance.graph]
        index, output = int(table.nodes.makers[value]), int(table.positions[value])
        spec = graph["inputs"][output]["spec"] if index < 0 else table.nodes.kind_of(index)["out"][output]
        size = values[instance.path, value] = bytes_of(spec)
        self.picture.bytes[edge] = self.picture.bytes.get(edge, 0) + size

    def _targets(self, instance: _Instance, index: int, position: int, count: int) -> list[str]:
        """The boxes that an input of a node ends at: its own, or the inputs of the functions that it calls."""
        if instance.boxes[index]:
            return [instance.boxes[index]]
        if index not in instance.calls:
            return []
        decides = position < self._decisions(self.graphs[instance.graph]["nodes"][index])
        targets = [f"{instance.path}n{index}.d{position}"] if decides else []
        for callee in instance.calls[index]:
            inner = position - max(count - len(self.graphs[callee.graph]["inputs"]), 0)
            if inner >= 0:
                targets.append(f"{callee.path}i{inner}")
        return targets

    def _sources(self, instance: _Instance, value: int, target: str) -> list[str]:
        """The boxes that a value comes from: several where branches were opened, none where it is told on `target`."""
        sources, waiting = [], [(instance, value)]
        while waiting:
            place, number = waiting.pop()
            table, graph = self._table(place.graph), self.graphs[place.graph]
            index, output = int(table.nodes.makers[number]), int(table.positions[number])
            if index < 0 and self._is_told(graph["inputs"][output]):
                self._tag(target, graph["inputs"][output]["name"])
            elif index < 0:
                sources.append(f"{place.path}i{output}")
            elif place.boxes[index]:
                sources.append(place.boxes[index])
            elif table.reads[index] and (self.folded or table.hidden[index]):
                waiting.append((place, table.nodes.reads[index][0]))
            else:
                loop = graph["nodes"][index].get("loop", 0)
                for callee in place.calls.get(index, [])[-1 if loop else 0 :]:
                    outputs = self.graphs[callee.graph]["outputs"]
                    if output < len(outputs):
                        waiting.append((callee, outputs[output]))
        return sources


def _with_boxes(members: Mapping[int, Sequence[int]], names: Mapping[int, str]) -> list[int]:
    """The nodes that have a box of their own, and the first one of each closed group (`names`), in order."""
    first: dict[str, int] = {}
    visible: list[int] = []
    for group, nodes in members.items():
        if group in names:
            first[names[group]] = min(nodes[0], first.get(names[group], nodes[0]))
        else:
            visible += nodes
    return sorted([*visible, *first.values()])


def is_variable(given: State) -> bool:
    """Whether an input of a graph is a variable, or has no box of its own in a folded picture for another reason."""
    return bool(given.get("folded")) or _VARIABLE.match(given["spec"]) is not None


@lru_cache(maxsize=1024)
def bytes_of(spec: str) -> float:
    """The bytes of a value, `UNSIZED` where its shape is not known.

    >>> bytes_of("f32[2,3]"), bytes_of("f32[?,3]") == UNSIZED
    (24, True)
    """
    parts = _SPEC.search(spec)
    if parts is None:
        return UNSIZED
    return -(-int(parts[1] or 8) // 8) * prod(int(size) for size in parts[2].split(",") if size)


def _rounds(graph: State, nodes: NodeColumns, closed: Mapping[int, int]) -> dict[int, int]:
    """The nodes of open groups that are rounds of an unrolled loop, but for the first: for each how many rounds."""
    rest: dict[int, int] = {}
    told = nodes.flags([*nodes.noted("folded_into"), *nodes.noted("inline")])
    for number, group in enumerate(graph["groups"]):
        repeat = group.get("repeat", {})
        if "period" not in repeat or "members" in repeat or closed[number] != -1 or repeat["count"] <= MOST_MEMBERS:
            continue
        own = np.flatnonzero((nodes.group == number) & ~told).tolist()
        rest |= dict.fromkeys(own[SHOWN * repeat["period"] :], repeat["count"] - SHOWN)
    return rest


def _keys(groups: Sequence[State]) -> list[str]:
    """What each group has in common with its gradient: its path, or the least of those in it."""
    known = ["" if "repeat" in group or group["kind"] == "step" else group.get("path", "") for group in groups]
    least = list(known)
    for index in range(len(groups) - 1, -1, -1):
        parent = groups[index]["parent"]
        if not known[index] and least[index]:
            known[index] = f"{'repeat' if 'repeat' in groups[index] else groups[index]['kind']} of {least[index]}"
        if parent >= 0 and least[index] and (not least[parent] or least[index] < least[parent]):
            least[parent] = least[index]
    return known


def fusion_label(number: int, ops: Sequence[str], shown: int) -> str:
    """What is written on the frame around a fusion group of `ops`, of which `shown` are in that frame.

    Ops beyond the third are counted: a wide frame makes the whole picture smaller. That they run "in one go", not as
    "one kernel", is said in the details: plans run the ops one by one into the same buffers, or block by block.

    >>> fusion_label(1, ["add", "multiply", "tanh"], 3), fusion_label(2, ["add", "tanh"], 1)
    ('fused 1: add · multiply · tanh', 'fused 2: add · tanh (1 of 2)')
    >>> fusion_label(1, ["add", "multiply", "tanh", "exp", "log", "sin"], 6)
    'fused 1: add · multiply · tanh + 3'
    """
    more = f" + {len(ops) - FUSED_OPS}" if len(ops) > FUSED_OPS else ""
    part = "" if shown == len(ops) else f" ({shown} of {len(ops)})"
    return f"fused {number}: {' · '.join(ops[:FUSED_OPS])}{more}{part}"


def call_label(node: State) -> str:
    """What a call says: the op, and the functions that it calls, by the names that their authors gave them."""
    labels = [label.removeprefix("forward_") for _, label in node["calls"]]
    names = [f"gradient of {label[9:]}" if label.startswith("backward_") else label for label in labels]
    return f"{node['op'].removesuffix('_forward')} {', '.join(names)}"

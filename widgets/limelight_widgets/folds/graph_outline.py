"""The tree of a graph as an outline: a row for each group, what repeats once, loose ops of one place in one row.

Groups are opened from the outside in, those of the forward pass first, as long as the outline stays short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from limelight_widgets.folds.fold import State
from limelight_widgets.folds.node_columns import NodeColumns
from limelight_widgets.folds.node_places import LANES

MOST_ROWS = 36
_OPENED_FIRST = ("forward", "update", "loss", "backward")
_NAMED = 8  # ops of one row that are named
_ROOT = -1


@dataclass(slots=True)
class Row:
    """A row: a lane, a group, or consecutive ops that are in no further group.

    `index` is that of the group, or of the first op, -1 for a lane; `ops` counts those folded into these, too;
    `holds` names what is in it: ops, or parameters.
    """

    depth: int
    kind: str
    index: int
    title: str
    cls: str = ""
    ops: int = 0
    bytes: float = 0
    saved: float = 0
    holds: str = ""


def outline(graph: State, most: int = MOST_ROWS) -> list[Row]:
    """The outline of a described graph, of about `most` rows at the most.

    Args:
        graph: one of the `graphs` of a graph fold's state.
        most: rows up to which groups are opened; outermost groups are shown however many they are.
    """
    inside = _children(graph)
    lanes: dict[str, list[int]] = {lane: [] for lane in LANES}
    for child in inside.get(_ROOT, ()):
        lanes[_lane(graph, child)].append(child)
    opened = _opened(graph, inside, lanes, most)
    rows: list[Row] = []
    used = [lane for lane in LANES if lanes[lane]]
    for lane in used:
        own = list(_rows(graph, inside, lanes[lane], opened, int(len(used) > 1)))
        if len(used) > 1:
            top = [row for row in own if row.depth == 1]
            sums = (sum(getattr(row, what) for row in top) for what in ("ops", "bytes", "saved"))
            rows.append(Row(0, "lane", -1, lane, "", *sums))
        rows += own
    return rows


def _children(graph: State) -> dict[int, list[int]]:
    """What is in each container, in order: a node is its index, a group -2 minus its own; of repeats the first."""
    columns, groups = NodeColumns.of(graph), graph["groups"]
    inside = columns.by_group(~columns.flags(columns.noted("folded_into")))
    first = {group: nodes[0] for group, nodes in inside.items()}
    for index in range(len(groups) - 1, -1, -1):  # those inside come after those around
        parent = groups[index]["parent"]
        if index in first:
            first[parent] = min(first[index], first.get(parent, first[index]))
            inside.setdefault(parent, []).append(-2 - index)
    for index, group in enumerate(groups):
        if "repeat" in group:
            inside[index] = _one_of(index, group["repeat"], inside)
    for children in inside.values():  # by their first nodes
        children.sort(key=lambda child: child if child >= 0 else first.get(-2 - child, 0))
    return inside


def _one_of(index: int, repeat: State, inside: Mapping[int, list[int]]) -> list[int]:
    members = repeat.get("members")
    return inside.get(members[0], []) if members else inside[index][: repeat["period"]]


def _lane(graph: State, child: int) -> str:
    place: State = NodeColumns.of(graph).kind_of(child) if child >= 0 else graph["groups"][-2 - child]
    return str(place["lane"])


def _opened(graph: State, inside: Mapping[int, list[int]], lanes: Mapping[str, list[int]], most: int) -> set[int]:
    """The groups whose contents are listed."""
    rows = sum(_count(children) + 1 for children in lanes.values() if children)
    opened: set[int] = set()
    level = [-2 - child for lane in _OPENED_FIRST for child in lanes[lane] if child < 0]
    while level:
        deeper: list[int] = []
        for group in level:
            contents = inside.get(group, [])
            more = _count(contents)
            if any(child < 0 for child in contents) and rows + more <= most:
                opened.add(group)
                rows += more
                deeper += [-2 - child for child in contents if child < 0]
        level = deeper
    return opened


def _count(children: list[int]) -> int:
    """The rows that children take: ops in a row share one."""
    return sum(child < 0 or k == 0 or children[k - 1] < 0 for k, child in enumerate(children))


def _rows(
    graph: State, inside: Mapping[int, list[int]], children: list[int], opened: set[int], depth: int
) -> Iterator[Row]:
    loose: list[int] = []
    for child in [*children, None]:
        if child is not None and child >= 0:
            loose.append(child)
            continue
        if loose:
            yield Row(depth, "ops", loose[0], _named(graph, loose), ops=_told_on(graph, loose))
            loose = []
        if child is not None:
            index = -2 - child
            yield _group_row(graph, inside, index, index in opened, depth)
            if index in opened:
                yield from _rows(graph, inside, inside[index], opened, depth + 1)


def _group_row(graph: State, inside: Mapping[int, list[int]], index: int, is_open: bool, depth: int) -> Row:
    group = graph["groups"][index]
    contents = inside.get(index, [])
    holds = ", ".join(_own_name(tag, group.get("path", "")) for tag in group.get("tags", ()))
    nodes = [child for child in contents if child >= 0]
    if not is_open and not holds and nodes and len(nodes) == len(contents):
        holds = _named(graph, nodes)
    if not is_open and not holds:
        holds = ", ".join(graph["groups"][-2 - child]["label"] for child in contents if child < 0)
    cls = group.get("cls", "") or _member_class(graph, group)
    return Row(depth, group["kind"], index, group["label"], cls, group["ops"], group["bytes"], group["saved"], holds)


def _own_name(tag: str, path: str) -> str:
    """A tag without the path that its group has: "kernel f32[3,4]" in "model.head"."""
    name, _, spec = tag.partition(" ")
    holder, _, last = name.rpartition(".")
    return f"{last} {spec}" if holder and f".{path}".endswith(f".{holder}") else tag


def _member_class(graph: State, group: State) -> str:
    members = group.get("repeat", {}).get("members")
    return str(graph["groups"][members[0]].get("cls", "")) if members else ""


def _told_on(graph: State, nodes: list[int]) -> int:
    """How many ops the boxes of these nodes tell of: themselves, and what is folded into them."""
    columns = NodeColumns.of(graph)
    return int(np.count_nonzero(columns.flags(nodes)[columns.boxes]))


def folded(graph: State) -> int:
    """How many ops have no box of their own, and count with the one that uses them."""
    return len(NodeColumns.of(graph).noted("folded_into"))


def _named(graph: State, nodes: list[int]) -> str:
    columns = NodeColumns.of(graph)
    ops = ", ".join(str(columns.kind_of(k)["op"]) for k in nodes[:_NAMED])
    return ops + (f" and {len(nodes) - _NAMED:,} more" if len(nodes) > _NAMED else "")

"""Groups of nodes: what a group is, and the tree of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from limelight_widgets.folds.node_places import Lane, Place, Segment

ROOT: Final = -1
MOST_CHILDREN: Final = 60
"""Of a container: only what is visible is laid out."""

Kind = Literal["module", "optimiser", "variable", "scope", "function", "gradient", "line", "block", "step", "repeat"]


@dataclass(slots=True)
class Repeat:
    """`count` equal members: the groups `members`, or, without these, the nodes of the group, `period` for each."""

    count: int
    members: list[int]
    period: int = 0


@dataclass(slots=True)
class Group:
    """A set of nodes drawn as one box; `parent` is the index of the group around it, or -1.

    `id` is made of lane and path, and so the same in each trace and each version of a graph. `first` and `last` are the
    positions of its first and last node.
    """

    id: str
    kind: Kind
    title: str
    parent: int
    lane: Lane
    path: str = ""
    segment: Segment | None = None
    repeat: Repeat | None = None
    size: int = 0
    first: int = 0
    last: int = 0
    children: list[Child] = field(default_factory=list)


class Child(NamedTuple):
    """A node (`is_group` false) or a group, as a member of a container."""

    is_group: bool
    at: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What the hierarchy is made from, for each node.

    Args:
        places: lane and path.
        signatures: what must be equal where nodes are: op, parameters, dtypes, line, for updates of variables (0 for
            all but assignments, which may differ there); and the same with ranks, for all other groups.
        lines: the file, or what stands for it, and the number of the line that made it; 0 where that is not known.
        inputs: the nodes that it reads from; -1 is an input of the graph.
        folded: the node that it is drawn as a part of, -1 for one that is drawn itself.
        begin: the file, as in `lines`, and the line where the statement begins that a position is in.
        titles: what groups of ops of one line are called, by file and number; by default "In[3] line 4".
    """

    places: Sequence[Place]
    signatures: Sequence[tuple[int, int]]
    lines: Sequence[tuple[Any, int]]
    inputs: Sequence[Sequence[int]]
    folded: Sequence[int]
    begin: Callable[[Any], tuple[Any, int]] = attrgetter("file", "line")
    titles: Callable[[Any, int], str] = "{} line {}".format


class GroupTree:
    """Groups over nodes 0 .. n-1. `of[i]` is the innermost group of node i, or -1.

    Every node is in one container. A folded node is in that of the node that it is drawn with, and in nobody's count
    of children.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.groups: list[Group] = []
        self.of: list[int] = [ROOT] * len(facts.places)
        self.top: list[Child] = []
        self._ids: dict[str, int] = {}  # with the last number of those that are told apart by one

    def children(self) -> dict[int, int]:
        """The number of direct children of each group that are drawn; that of the whole graph under -1."""
        return {ROOT: len(self.top)} | {index: len(group.children) for index, group in enumerate(self.groups)}

    def initially_open(self, budget: int = MOST_CHILDREN) -> list[int]:
        """Groups to show open: outermost first, the smallest first, as long as at most `budget` boxes are visible."""
        count = self.children()
        visible, opened, level = count[ROOT], [], [child.at for child in self.top if child.is_group]
        while level:
            deeper: list[int] = []
            for index in sorted(level, key=lambda g: (count[g], g)):
                group = self.groups[index]
                if visible - 1 + count[index] <= budget and group.kind in {"scope", "module", "function"}:
                    visible += count[index] - 1
                    opened.append(index)
                    deeper += [child.at for child in group.children if child.is_group]
            level = deeper
        return opened

    # Containers

    def children_of(self, container: int) -> list[Child]:
        """The children of a group, or of the whole graph."""
        return self.top if container == ROOT else self.groups[container].children

    def set_children(self, container: int, children: list[Child]) -> None:
        """Gives a group, or the whole graph, other children."""
        if container == ROOT:
            self.top = children
        else:
            self.groups[container].children = children

    def add(self, group: Group, node: int) -> int:
        """Makes a group, the last child of its parent so far."""
        group.id = self.distinct(group.id)
        group.first = node
        self.groups.append(group)
        self.children_of(group.parent).append(Child(True, len(self.groups) - 1))
        return len(self.groups) - 1

    def distinct(self, name: str) -> str:
        """An id for a group that no other one has."""
        chosen, number = name, self._ids.get(name, 1)
        while chosen in self._ids:
            number += 1
            chosen = f"{name}~{number}"
        self._ids[name] = number
        self._ids[chosen] = self._ids.get(chosen, 1)
        return chosen

    def move(self, children: Iterable[Child], into: int) -> None:
        """Has nodes and groups be those of another group."""
        for child in children:
            if child.is_group:
                self.groups[child.at].parent = into
            else:
                self.of[child.at] = into

    def nodes_of(self, container: int) -> Iterable[int]:
        """The drawn nodes of a group, in order."""
        stack = [iter(self.groups[container].children)]
        while stack:
            child = next(stack[-1], None)
            if child is None:
                stack.pop()
            elif child.is_group:
                stack.append(iter(self.groups[child.at].children))
            else:
                yield child.at

    # Children

    def first_of(self, child: Child) -> int:
        """Its first node."""
        return self.groups[child.at].first if child.is_group else child.at

    def place_of(self, child: Child) -> tuple[Any, int]:
        """The file and the line that calls a group that is a call, else those of the first node."""
        segment = self.groups[child.at].segment if child.is_group else None
        if segment is not None and segment.at is not None:
            return self.facts.begin(segment.at)
        return self.facts.lines[self.first_of(child)]

    def line_of(self, child: Child) -> int:
        """The line alone, 0 where it is not known."""
        return self.place_of(child)[1]

    def lane_of(self, child: Child) -> Lane:
        """The lane that it is in."""
        return self.groups[child.at].lane if child.is_group else self.facts.places[child.at].lane

    def lanes_of(self, children: Iterable[Child]) -> list[Lane]:
        """The lanes that children are in."""
        groups, places = self.groups, self.facts.places
        return [groups[at].lane if is_group else places[at].lane for is_group, at in children]

    def firsts_of(self, children: Iterable[Child]) -> list[int]:
        """The first nodes of children."""
        groups = self.groups
        return [groups[at].first if is_group else at for is_group, at in children]

    def sort_children(self, container: int, by: Callable[[Iterable[Child]], Sequence[Any]]) -> None:
        """Sorts the children of a container by what `by` tells of each."""
        children = self.children_of(container)
        keys = by(children)
        if any(one > other for one, other in pairwise(keys)):  # most are in order
            order = sorted(range(len(children)), key=keys.__getitem__)
            self.set_children(container, [children[k] for k in order])

    # At the end

    def sort(self) -> None:
        """Numbers the groups as an outline lists them: those inside after it, siblings as their nodes run."""
        order: list[int] = []
        waiting = [child.at for child in reversed(self.top) if child.is_group]
        while waiting:
            order.append(waiting.pop())
            waiting += [child.at for child in reversed(self.groups[order[-1]].children) if child.is_group]
        place = {old: new for new, old in enumerate(order)} | {ROOT: ROOT}
        self.groups = [self.groups[old] for old in order]
        self.of = [place[group] for group in self.of]
        self.top = [Child(c.is_group, place[c.at]) if c.is_group else c for c in self.top]
        for group in self.groups:
            group.parent = place[group.parent]
            group.children = [Child(c.is_group, place[c.at]) if c.is_group else c for c in group.children]
            if group.repeat is not None:
                group.repeat.members = [place[member] for member in group.repeat.members]

    def count_nodes(self) -> None:
        """Notes the size of each group, and its last node."""
        of = np.array(self.of, np.int64)
        nodes = np.flatnonzero(of != ROOT)
        sizes: list[int] = np.bincount(of[nodes], minlength=len(self.groups)).tolist()
        ends = np.zeros(len(self.groups), np.int64)
        np.maximum.at(ends, of[nodes], nodes)
        last: list[int] = ends.tolist()
        for index in range(len(self.groups) - 1, -1, -1):  # those inside come after those around
            group, parent = self.groups[index], self.groups[index].parent
            group.size, group.last = sizes[index], last[index]
            if parent != ROOT:
                sizes[parent] += sizes[index]
                last[parent] = max(last[parent], last[index])

"""The hierarchy of a graph's nodes: modules, name scopes and functions, repeats of these, lines of code, then blocks.

Groups follow the path of each node (`node_places`), within its lane. Siblings that are equal and follow one another, or
sequences of ops that a loop has repeated, become one group of the kind "repeat" (`repeated_groups`). Only what is
visible is laid out, so every container must be small: where one has more than `MOST_CHILDREN` children, consecutive
nodes of one line of code become a group, then blocks of consecutive children (`small_containers`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from limelight_widgets.folds.group_tree import ROOT, Child, Facts, Group, GroupTree
from limelight_widgets.folds.node_places import Lane, Place, Segment
from limelight_widgets.folds.repeated_groups import fold_repeats
from limelight_widgets.folds.small_containers import limit_children


class Hierarchy(GroupTree):
    """The groups of a graph's nodes, as they are drawn."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._place_nodes()
        fold_repeats(self)
        limit_children(self)
        self.sort()
        self.count_nodes()

    def _place_nodes(self) -> None:
        """Makes the groups of all paths, in the order of their first nodes; puts each drawn node into one."""
        places, folded = self.facts.places, self.facts.folded
        drawn = [i for i, into in enumerate(folded) if into < 0]
        paths = _useful_paths([places[i] for i in drawn])
        index: dict[tuple[Lane, tuple[Segment, ...]], int] = {}
        innermost_of: dict[int, int] = {}  # by the identity of a place, of which there are few
        before, innermost, into_list = None, ROOT, self.top
        for i in drawn:
            place = places[i]
            if place is not before:
                before, known = place, innermost_of.get(id(place))
                if known is None:
                    known = innermost_of[id(place)] = self._group_at(place.lane, paths[place], index, i)
                innermost, into_list = known, self.children_of(known)
            self.of[i] = innermost
            into_list.append(Child(False, i))
        for i, into in enumerate(folded):
            if into >= 0:
                self.of[i] = self.of[into]
        self._order_gradients(drawn)

    def _order_gradients(self, drawn: Sequence[int]) -> None:
        """Has groups of the backward pass stand where their middle op does: what calls share is with the first."""
        inside: dict[int, list[int]] = {}
        backward = {at for at, group in enumerate(self.groups) if group.lane == "backward"}
        for i in drawn if backward else ():
            at = self.of[i]
            while at in backward:
                inside.setdefault(at, []).append(i)
                at = self.groups[at].parent
        for at, nodes in inside.items():
            self.groups[at].first = nodes[len(nodes) // 2]
        for at in (*inside, ROOT):
            self.sort_children(at, self.firsts_of)

    def _group_at(
        self,
        lane: Lane,
        path: tuple[Segment, ...],
        index: dict[tuple[Lane, tuple[Segment, ...]], int],
        node: int,
    ) -> int:
        """The innermost group of a path, which is made with those around it unless `index` has it."""
        innermost = ROOT
        for depth in range(1, len(path) + 1):
            key = (lane, path[:depth])
            if key not in index:
                index[key] = self.add(_of_segment(lane, path[:depth], innermost), node)
            innermost = index[key]
        return innermost


def _useful_paths(places: Sequence[Place]) -> dict[Place, tuple[Segment, ...]]:
    """The paths without scopes and functions that hold one node, or all that the group around them holds."""
    counts = Counter(map(id, places))
    known = {id(place): place for place in places}
    sizes: dict[tuple[Lane, tuple[Segment, ...]], int] = {}
    for key, place in known.items():
        for depth in range(len(place.path) + 1):
            sizes[place.lane, place.path[:depth]] = sizes.get((place.lane, place.path[:depth]), 0) + counts[key]

    return {place: _useful_path(place, sizes) for place in known.values()}


def _useful_path(place: Place, sizes: Mapping[tuple[Lane, tuple[Segment, ...]], int]) -> tuple[Segment, ...]:
    useful: list[Segment] = []
    for depth, step in enumerate(place.path, start=1):
        size, around = (sizes[place.lane, place.path[:k]] for k in (depth, depth - 1))
        if step.kind not in {"scope", "function"} or (size > 1 and (not useful or size < around)):
            useful.append(step)
        elif size == around and useful[-1:] and useful[-1].kind == step.kind == "scope":  # two boxes would say no more
            useful[-1] = Segment(f"{useful[-1].key}/{step.key}", "scope", f"{useful[-1].title}/{step.title}")
    return tuple(useful)


def _of_segment(lane: Lane, path: Sequence[Segment], parent: int) -> Group:
    name, segment = ".".join(step.key for step in path), path[-1]
    return Group(f"{lane}:{name}", segment.kind, segment.title, parent, lane, name, segment)

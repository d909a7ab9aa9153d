"""The hierarchy of a graph's nodes: name scopes, then lines of code, then blocks of consecutive nodes.

Only what is visible is laid out, so every container must be small. Scopes come from the user. Where a container still
has more than `MOST_CHILDREN` children, runs of nodes made by one line of code become a group; where that is not
enough, so do blocks of consecutive children. Runs and blocks follow execution order, so edges between them point
forward only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

MOST_CHILDREN = 60
BLOCKS = 40
ROOT = -1


@dataclass(slots=True)
class Group:
    """A set of nodes drawn as one box; `parent` is the index of the group around it, or -1."""

    label: str
    kind: Literal["scope", "line", "block"]
    parent: int
    size: int = 0


@dataclass(frozen=True, slots=True)
class _Child:
    """A node (`is_group` false) or a group, as a member of a container."""

    is_group: bool
    index: int
    first: int  # positions, in execution order, of its first and its last node
    last: int


class Hierarchy:
    """Groups over nodes 0 .. n-1. `of[i]` is the innermost group of node i, or -1.

    Args:
        scopes: for each node its name scope, such as "encoder/dense/", or "".
        lines: for each node a label of the line that made it, or "".
    """

    def __init__(self, scopes: Sequence[str], lines: Sequence[str]) -> None:
        self.groups: list[Group] = []
        self.of: list[int] = []
        self._lines = lines
        self._make_scopes(scopes)
        self._limit_children()
        self._count()

    def children(self) -> dict[int, int]:
        """The number of direct children of each group; that of the whole graph under -1."""
        counts = dict.fromkeys(range(ROOT, len(self.groups)), 0)
        for parent in self.of:
            counts[parent] += 1
        for group in self.groups:
            counts[group.parent] += 1
        return counts

    def initially_open(self, budget: int = MOST_CHILDREN) -> list[int]:
        """Groups to show open: outermost first, the smallest first, as long as at most `budget` boxes are visible."""
        count = self.children()
        members: dict[int, list[int]] = {}
        for index, group in enumerate(self.groups):
            members.setdefault(group.parent, []).append(index)
        visible, opened, level = count[ROOT], [], members.get(ROOT, [])
        while level:
            deeper: list[int] = []
            for index in sorted(level, key=lambda g: (count[g], g)):
                if visible - 1 + count[index] <= budget and self.groups[index].kind == "scope":
                    visible += count[index] - 1
                    opened.append(index)
                    deeper += members.get(index, [])
            level = deeper
        return opened

    def _make_scopes(self, scopes: Sequence[str]) -> None:
        sizes: dict[str, int] = {}
        for scope, count in Counter(scopes).items():
            for prefix in _prefixes(scope):
                sizes[prefix] = sizes.get(prefix, 0) + count
        index: dict[str, int] = {}
        innermost = {scope: self._place(scope, sizes, index) for scope in dict.fromkeys(scopes)}
        self.of = [innermost[scope] for scope in scopes]

    def _place(self, scope: str, sizes: dict[str, int], index: dict[str, int]) -> int:
        """Makes the groups that lead to `scope`, unless they exist; returns the innermost."""
        innermost, above = ROOT, ""
        prefixes = _prefixes(scope)
        for prefix, inner in zip(prefixes, [*prefixes[1:], None], strict=False):
            if sizes[prefix] < 2 or (inner is not None and sizes[inner] == sizes[prefix]):
                continue  # one node needs no box, and two boxes around the same nodes say no more than one
            if prefix not in index:
                index[prefix] = len(self.groups)
                self.groups.append(Group(prefix.removeprefix(above).strip("/"), "scope", innermost))
            innermost, above = index[prefix], prefix
        return innermost

    def _limit_children(self) -> None:
        waiting = list(self._containers().items())
        while waiting:
            container, children = waiting.pop()
            if len(children) <= MOST_CHILDREN:
                continue
            if container == ROOT or self.groups[container].kind == "scope":
                children = self._by_line(container, children, waiting)
            if len(children) > MOST_CHILDREN:
                self._by_block(container, children, waiting)

    def _containers(self) -> dict[int, list[_Child]]:
        """The children of every container, in execution order of their first nodes."""
        last = {group: node for node, innermost in enumerate(self.of) for group in self._around(innermost)}
        children_of: dict[int, list[_Child]] = {}
        placed: set[int] = set()
        for node, innermost in enumerate(self.of):
            children_of.setdefault(innermost, []).append(_Child(False, node, node, node))
            for group in self._around(innermost):
                if group not in placed:
                    placed.add(group)
                    children_of.setdefault(self.groups[group].parent, []).append(_Child(True, group, node, last[group]))
        return children_of

    def _around(self, group: int) -> Iterator[int]:
        """`group` and the groups around it, from the inside out."""
        while group != ROOT:
            yield group
            group = self.groups[group].parent

    def _by_line(self, container: int, children: list[_Child], waiting: list[tuple[int, list[_Child]]]) -> list[_Child]:
        """Gathers runs of nodes of one line; returns the container's new children."""
        result: list[_Child] = []
        for label, run in _runs(children, self._lines):
            if label and len(run) > 1:
                result.append(self._wrap(Group(label, "line", container), run, waiting))
            else:
                result += run
        return result

    def _by_block(self, container: int, children: list[_Child], waiting: list[tuple[int, list[_Child]]]) -> None:
        length = -(-len(children) // BLOCKS)
        for start in range(0, len(children), length):
            block = children[start : start + length]
            label = f"nodes {block[0].first}–{max(child.last for child in block)}"
            self._wrap(Group(label, "block", container), block, waiting)

    def _wrap(self, group: Group, members: list[_Child], waiting: list[tuple[int, list[_Child]]]) -> _Child:
        """Puts `members` into a new group, and that on the list of containers to look at."""
        index = len(self.groups)
        self.groups.append(group)
        for child in members:
            if child.is_group:
                self.groups[child.index].parent = index
            else:
                self.of[child.index] = index
        waiting.append((index, members))
        return _Child(True, index, members[0].first, max(child.last for child in members))

    def _count(self) -> None:
        for innermost in self.of:
            for group in self._around(innermost):
                self.groups[group].size += 1


def _prefixes(scope: str) -> list[str]:
    parts = [part for part in scope.split("/") if part]
    return ["/".join(parts[: n + 1]) + "/" for n in range(len(parts))]


def _runs(children: list[_Child], lines: Sequence[str]) -> list[tuple[str, list[_Child]]]:
    """Consecutive children with one label; a group has none and stands alone."""
    runs: list[tuple[str, list[_Child]]] = []
    for child in children:
        label = "" if child.is_group else lines[child.index]
        if label and runs and runs[-1][0] == label:
            runs[-1][1].append(child)
        else:
            runs.append((label, [child]))
    return runs

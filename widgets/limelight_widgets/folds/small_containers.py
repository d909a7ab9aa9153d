"""Small containers: where a group has too many children, those of a line of code become one, then blocks of them.

At the top of a graph, where all of them are to be seen at once, so do the calls of a statement and the ops beside them,
lines that follow one another, and, where that is not enough, the calls of one function, and the rounds of one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import isqrt
from operator import itemgetter
from typing import Any, Final

from limelight_widgets.folds.group_tree import MOST_CHILDREN, ROOT, Child, Group, GroupTree, Kind
from limelight_widgets.folds.node_places import Lane

_MOST_AT_TOP: Final = 16  # boxes beyond which ops of one line are one: all of them are to be seen at once, and read
_FEW_AT_TOP: Final = 12  # the same for lines that follow one another, where there were more than that
_MOST_LINES: Final = 8  # of those in one group
_BLOCKS: Final = 40


def limit_children(tree: GroupTree) -> None:
    """Gathers children until no container has more than `MOST_CHILDREN`."""
    _Gatherer(tree).limit()


class _Gatherer:
    """Puts children of containers into groups."""

    def __init__(self, tree: GroupTree) -> None:
        self._tree = tree

    def limit(self) -> None:
        waiting = [ROOT, *[k for k, group in enumerate(self._tree.groups) if group.repeat is None]]
        while waiting:
            container = waiting.pop()
            most = _MOST_AT_TOP if container == ROOT else MOST_CHILDREN
            if len(self._tree.children_of(container)) > most and not self._is_line(container):
                self._by_line(container, waiting)
            if container == ROOT and len(self._tree.top) > _MOST_AT_TOP:
                self._by_statement(waiting)
                if len(self._tree.top) > _FEW_AT_TOP:
                    self._by_neighbours(waiting)
                if len(self._tree.top) > _MOST_AT_TOP:
                    self._by_name(waiting)
            if len(self._tree.children_of(container)) > MOST_CHILDREN:
                self._by_block(container, waiting)

    def _is_line(self, container: int) -> bool:
        return container != ROOT and self._tree.groups[container].kind in {"line", "block"}

    def _by_line(self, container: int, waiting: list[int]) -> None:
        """Gathers runs of nodes of one line."""
        children: list[Child] = []
        for (file, line), run in self._line_runs(self._tree.children_of(container)):
            if line and len(run) > 1:
                title = self._tree.facts.titles(file, line)
                children.append(self._wrap(container, "line", title, f"line{line}", run, waiting))
            else:
                children += run
        self._tree.set_children(container, children)

    def _by_statement(self, waiting: list[int]) -> None:
        """Gathers calls of modules and functions at the top with the ops of the statement that calls them."""
        tree = self._tree
        runs: list[list[Child]] = []
        for child in tree.top:
            last = runs[-1][-1] if runs else None
            place = ("", 0) if child.is_group and tree.groups[child.at].repeat else tree.place_of(child)
            if last and place[1] and (place, tree.lane_of(child)) == (tree.place_of(last), tree.lane_of(last)):
                runs[-1].append(child)
            else:
                runs.append([child])
        children: list[Child] = []
        for run in runs:
            plain = [child for child in run if not child.is_group or self._tree.groups[child.at].kind == "line"]
            if len(run) > 1 and plain and self._tree.lane_of(run[0]) != "update":
                nodes = plain[0].at if not plain[0].is_group else self._tree.groups[plain[0].at].first
                title = self._tree.facts.titles(*self._tree.facts.lines[nodes])
                key = f"statement{self._tree.line_of(run[0])}"
                children.append(self._wrap(ROOT, "line", title, key, self._unwrapped(run), waiting))
            else:
                children += run
        self._tree.top = children

    def _by_neighbours(self, waiting: list[int]) -> None:
        """Gathers lines without calls that follow one another in a lane, at the top."""
        children: list[Child] = []
        for (plain, *_), run in groupby(
            self._tree.top,
            lambda child: (self._is_plain(child), self._tree.lane_of(child), self._tree.place_of(child)[0]),
        ):
            members = list(run)
            if not plain or len(members) == 1:
                children += members
                continue
            length = -(-len(members) // -(-len(members) // _MOST_LINES))
            for part in (members[k : k + length] for k in range(0, len(members), length)):
                lines = sorted({self._tree.line_of(child) for child in part})
                title = f"lines {lines[0]}–{lines[-1]}" if len(lines) > 1 else f"line {lines[0]}"
                children.append(self._wrap(ROOT, "line", title, f"lines{self._tree.line_of(part[0])}", part, waiting))
        self._tree.top = children

    def _by_name(self, waiting: list[int]) -> None:
        """Gathers the calls of one function in a lane, and the groups of one line, wherever they stand at the top."""
        alike: dict[tuple[str, Lane], list[Child]] = {}
        for child in self._tree.top:
            group = self._tree.groups[child.at] if child.is_group else None
            if group is not None and group.kind in {"function", "line", "repeat"}:
                name = group.title.partition(" (call ")[0]
                alike.setdefault((name, group.lane), []).append(child)
        gathered = {
            members[0]: self._wrap(ROOT, "block", self._called(name, members), f"all {name}", members, waiting)
            for (name, _), members in alike.items()
            if len(members) > 1
        }
        hidden = {child for members in alike.values() if members[0] in gathered for child in members}
        self._tree.top = [
            gathered.get(child, child) for child in self._tree.top if child in gathered or child not in hidden
        ]

    def _called(self, name: str, members: Sequence[Child]) -> str:
        return f"calls of {name}" if any(self._tree.groups[child.at].kind == "function" for child in members) else name

    def _is_plain(self, child: Child) -> bool:
        """Whether it is an op, or ops of a line, that bears no name of a module or function."""
        inside = self._tree.groups[child.at].children if child.is_group else []
        if not self._tree.line_of(child):
            return False
        return not child.is_group or (
            self._tree.groups[child.at].kind == "line" and not any(c.is_group for c in inside)
        )

    def _unwrapped(self, run: Sequence[Child]) -> list[Child]:
        """The same without groups of a line: what is around them is one of that line."""
        found: list[Child] = []
        for child in run:
            of_line = child.is_group and self._tree.groups[child.at].kind == "line"
            found += self._tree.groups[child.at].children if of_line else [child]
            if of_line:
                self._tree.groups[child.at].children = []
        return found

    def _line_runs(self, children: Sequence[Child]) -> list[tuple[tuple[Any, int], list[Child]]]:
        """Consecutive children of one line and lane; a group has no line and stands alone."""
        result: list[tuple[tuple[Any, int], list[Child]]] = []
        before: tuple[tuple[Any, int], Lane] | None = None
        lines = self._tree.facts.lines
        for child, lane in zip(children, self._tree.lanes_of(children), strict=True):
            line = ("", 0) if child.is_group else lines[child.at]
            if line[1] and (line, lane) == before:
                result[-1][1].append(child)
            else:
                result.append((line, [child]))
                before = line, lane
        return result

    def _by_block(self, container: int, waiting: list[int]) -> None:
        """Cuts the children by number, but not across lanes."""
        children = self._tree.children_of(container)
        length = _block_length(len(children), container == ROOT)
        blocks: list[list[Child]] = []
        for _, run in groupby(zip(children, self._tree.lanes_of(children), strict=True), itemgetter(1)):
            of_lane = [child for child, _ in run]
            blocks += [of_lane[k : k + length] for k in range(0, len(of_lane), length)]
        self._tree.set_children(container, [self._block(container, block, waiting) for block in blocks])

    def _block(self, container: int, block: list[Child], waiting: list[int]) -> Child:
        if len(block) == 1:
            return block[0]
        first = self._tree.first_of(block[0])
        title = f"nodes {first}–{self._tree.first_of(block[-1])}"
        if container == ROOT:
            lines = sorted({self._tree.line_of(child) for child in block} - {0})
            of_lines = f"lines {lines[0]}–{lines[-1]}" if len(lines) > 1 else title
            title = of_lines if all(group.title != of_lines for group in self._tree.groups) else title
        return self._wrap(container, "block", title, f"nodes{first}", block, waiting)

    def _wrap(
        self, container: int, kind: Kind, title: str, key: str, members: list[Child], waiting: list[int]
    ) -> Child:
        """Puts `members` into a new group, and that on the list of containers to look at."""
        lane = self._tree.lane_of(members[0])
        around = self._tree.groups[container].id if container != ROOT else f"{lane}:"
        index = len(self._tree.groups)
        self._tree.groups.append(
            Group(self._tree.distinct(f"{around}/{key}"), kind, title, container, lane, children=members)
        )
        self._tree.groups[index].first = self._tree.first_of(members[0])
        self._tree.move(members, index)
        waiting.append(index)
        return Child(True, index)


def _block_length(count: int, at_top: bool) -> int:
    """How many of `count` children a block has: not so few that there would be a group for every other node.

    At the top there are `_BLOCKS` at the most, since all of them are seen at once.

    >>> _block_length(63, False), _block_length(2_500, False), _block_length(2_500, True), _block_length(100_000, True)
    (8, 42, 63, 2500)
    """
    length = max(-(-count // _BLOCKS), isqrt(count - 1) + 1)
    more = -(-count // MOST_CHILDREN)
    return more if more <= MOST_CHILDREN < length and not at_top else length

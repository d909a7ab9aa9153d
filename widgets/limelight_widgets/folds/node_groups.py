"""The hierarchy of a graph's nodes: modules, name scopes and functions, repeats of these, lines of code, then blocks.

Groups follow the path of each node (`node_places`), within its lane. Siblings that are equal and follow one another, or
sequences of ops that a loop has repeated, become one group of the kind "repeat". Only what is visible is laid out, so
every container must be small: where one still has more than `MOST_CHILDREN` children, consecutive nodes of one line of
code become a group; where that is not enough, so do blocks of consecutive children.

Two siblings are equal when the sequences of their ops are: op, parameters, dtypes, ranks, line of code, and which op in
the same group each operand comes from. Updates of variables are equal where their assignments are, whatever the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from math import isqrt
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from limelight_widgets.folds.node_places import Lane, Place, Segment
from limelight_widgets.folds.periods import Run, runs

MOST_CHILDREN = 60
MOST_AT_TOP = 16  # boxes beyond which ops of one line are one: all of them are to be seen at once, and read
FEW_AT_TOP = 12  # the same for lines that follow one another, where there were more than that
MOST_LINES = 8  # of those in one group
BLOCKS = 40
ROOT = -1
LEAST_UNROLLED = 12  # ops without a group of their own that a repeat must have
MOST_TITLES = 3  # of groups in one round of a loop, that are named
MOST_ROUNDS = 4  # of looking for repeats of repeats

Kind = Literal["module", "optimiser", "variable", "scope", "function", "line", "block", "step", "repeat"]


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
        lines: the label and number of the line that made it, "" and 0 where not known.
        inputs: the nodes that it reads from; -1 is an input of the graph.
        folded: the node that it is drawn as a part of, -1 for one that is drawn itself.
        begin: the line where the statement begins that a position is in.
        titles: what groups of ops of one line are called, by its label and number; by default "In[3] line 4".
    """

    places: Sequence[Place]
    signatures: Sequence[tuple[int, int]]
    lines: Sequence[tuple[str, int]]
    inputs: Sequence[Sequence[int]]
    folded: Sequence[int]
    begin: Callable[[Any], int] = attrgetter("line")
    titles: Callable[[str, int], str] = "{} line {}".format


class Hierarchy:
    """Groups over nodes 0 .. n-1. `of[i]` is the innermost group of node i, or -1.

    Every node is in one container. A folded node is in that of the node that it is drawn with, and in nobody's count
    of children.
    """

    def __init__(self, facts: Facts) -> None:
        self.groups: list[Group] = []
        self.of: list[int] = [ROOT] * len(facts.places)
        self._facts = facts
        self.top: list[Child] = []
        self._ids: set[str] = set()
        self._hashes: dict[int, int] = {}
        self._place_nodes()
        self._fold_repeats()
        self._limit_children()
        self._sort()
        self._count()

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

    # By path

    def _place_nodes(self) -> None:
        """Makes the groups of all paths, in the order of their first nodes; puts each drawn node into one."""
        places, folded = self._facts.places, self._facts.folded
        drawn = [i for i, into in enumerate(folded) if into < 0]
        paths = _useful_paths([places[i] for i in drawn])
        index: dict[tuple[Lane, tuple[Segment, ...]], int] = {}
        innermost_of: dict[int, int] = {}  # by the identity of a place, of which there are few
        for i in drawn:
            place = places[i]
            innermost = innermost_of.get(id(place))
            if innermost is None:
                innermost = innermost_of[id(place)] = self._group_at(place.lane, paths[place], index, i)
            self.of[i] = innermost
            self._children(innermost).append(Child(False, i))
        for i, into in enumerate(folded):
            if into >= 0:
                self.of[i] = self.of[into]
        self._order_gradients(drawn)

    def _order_gradients(self, drawn: Sequence[int]) -> None:
        """Has groups of the backward pass stand where their middle op does: what calls share is with the first."""
        inside: dict[int, list[int]] = {}
        for i in drawn:
            at = self.of[i]
            while at != ROOT and self.groups[at].lane == "backward":
                inside.setdefault(at, []).append(i)
                at = self.groups[at].parent
        for at, nodes in inside.items():
            self.groups[at].first = nodes[len(nodes) // 2]
        for at in inside:
            self.groups[at].children.sort(key=self._first)
        self.top.sort(key=self._first)

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
                index[key] = self._add(_of_segment(lane, path[:depth], innermost), node)
            innermost = index[key]
        return innermost

    def _add(self, group: Group, node: int) -> int:
        """Makes a group, the last child of its parent so far."""
        group.id = self._distinct(group.id)
        group.first = node
        self.groups.append(group)
        self._children(group.parent).append(Child(True, len(self.groups) - 1))
        return len(self.groups) - 1

    def _distinct(self, name: str) -> str:
        chosen, number = name, 1
        while chosen in self._ids:
            number += 1
            chosen = f"{name}~{number}"
        self._ids.add(chosen)
        return chosen

    def _children(self, container: int) -> list[Child]:
        return self.top if container == ROOT else self.groups[container].children

    def _set_children(self, container: int, children: list[Child]) -> None:
        if container == ROOT:
            self.top = children
        else:
            self.groups[container].children = children

    # Repeats

    def _fold_repeats(self) -> None:
        """Folds from the inside out, so that equal groups look equal inside as well."""
        self.top.sort(key=self._lane)  # what a lane repeats has other lanes in between, each time
        for container in [*range(len(self.groups) - 1, -1, -1), ROOT]:
            for _ in range(MOST_ROUNDS):
                if not self._fold_children(container):
                    break
            if container != ROOT:
                self._hashes[container] = self._hash(container)
        self.top.sort(key=self._first)

    def _fold_children(self, container: int) -> bool:
        children = self._children(container)
        if len(children) < 2:
            return False
        signatures = self._facts.signatures
        symbols = [self._hashes[c.at] if c.is_group else signatures[c.at][1] for c in children]
        groups = [0, *accumulate(child.is_group for child in children)]
        lanes = list(map(self._lane, children))
        changes = [0, *accumulate(one != other for one, other in pairwise(lanes))]  # of lanes, before each child

        def worth(run: Run) -> bool:
            if changes[run.start + run.period - 1] > changes[run.start]:
                return False
            with_groups = groups[run.start + run.period] > groups[run.start]
            return with_groups or (run.count > 2 and run.count * run.period >= LEAST_UNROLLED)

        def begins(at: int) -> int:
            return -self._line(children[at]) if lanes[at] == "backward" else self._line(children[at])

        found = runs(symbols, worth, begins)
        if len(found) == 1 and found[0].count * found[0].period == len(children) and self._is_repeat(container):
            return False
        rest: list[Child] = []
        done = 0
        for run, end in zip(found, [*(other.start for other in found[1:]), len(children)], strict=False):
            start, rounds = self._with_ends(run, children, done, end)
            rest += children[done:start]
            rest.append(self._repeated(container, run.period, rounds))
            done = start + sum(map(len, rounds))
        self._set_children(container, rest + children[done:])
        return bool(found)

    def _with_ends(self, run: Run, children: list[Child], low: int, high: int) -> tuple[int, list[list[Child]]]:
        """The rounds of a repeat, and where they begin: with those between `low` and `high` that differ a little.

        The first and the last round of a loop often do, since passes have found more or less to do there. They call
        the same modules and functions at the same lines, in the same order, and have ops of no other lines.
        """
        rounds = [children[k : k + run.period] for k in range(run.start, run.stop, run.period)]
        start, stop = run.start, run.stop
        calls = [self._call(child) for child in rounds[0] if child.is_group]
        if len(calls) < 2 or None in calls or not rounds[0][0].is_group:
            return start, rounds
        lines = {(self._line(child), self._lane(child)) for child in rounds[0] if not child.is_group}

        def span(at: int, step: int, wanted: list[object]) -> int:
            """One past the last of the children from `at` on, going by `step`, that make a round; `at` for none."""
            begin, left = at, list(wanted)
            while low <= at < high:
                child = children[at]
                if child.is_group and (not left or self._call(child) != left.pop(0)):
                    break
                if not child.is_group and (self._line(child), self._lane(child)) not in lines:
                    break
                at += step
                if step < 0 and not left:
                    break
            return begin if left else at

        while (before := span(start - 1, -1, calls[::-1]) + 1) < start:
            rounds.insert(0, children[before:start])
            start = before
        while (after := span(stop, 1, calls)) > stop:
            rounds.append(children[stop:after])
            stop = after
        return start, rounds

    def _call(self, child: Child) -> object:
        """What is called, and where, for a group that is a call; None for others."""
        group = self.groups[child.at]
        segment = group.segment
        if segment is None or segment.at is None:
            return None
        return group.kind, group.lane, segment.cls, segment.key.partition("#")[0], segment.at

    def _is_repeat(self, container: int) -> bool:
        return container != ROOT and self.groups[container].repeat is not None

    def _repeated(self, container: int, period: int, rounds: list[list[Child]]) -> Child:
        """A new group of the kind "repeat" around `rounds`, of which the members are groups, or slices of nodes."""
        first, children = rounds[0][0], [child for one in rounds for child in one]
        lane = self._lane(first)
        title, key = self._title(max(rounds, key=len))
        around = self.groups[container].id if container != ROOT else f"{lane}:"
        group = Group(self._distinct(f"{around}/{key}×"), "repeat", title, container, lane)
        group.path = self.groups[first.at].path if first.is_group else ""
        group.first = self._first(first)
        index = len(self.groups)
        self.groups.append(group)
        if not any(child.is_group for child in children):
            group.repeat, group.children = Repeat(len(rounds), [], period), children
            self._move(children, index)
        else:
            group.children = [self._member(index, k, member) for k, member in enumerate(rounds)]
            group.repeat = Repeat(len(rounds), [child.at for child in group.children])
        self._hashes[index] = hash((len(rounds), self._hash(index)))
        return Child(True, index)

    def _member(self, repeat: int, number: int, children: list[Child]) -> Child:
        """One member: the group that it is, or a new one around what a round of a loop has done."""
        if len(children) == 1 and children[0].is_group:
            self.groups[children[0].at].parent = repeat
            return children[0]
        above = self.groups[repeat]
        group = Group(self._distinct(f"{above.id}/{number}"), "step", f"step {number}", repeat, above.lane)
        group.first, group.children = self._first(children[0]), children
        self.groups.append(group)
        self._move(children, len(self.groups) - 1)
        self._hashes[len(self.groups) - 1] = self._hash(len(self.groups) - 1)
        return Child(True, len(self.groups) - 1)

    def _move(self, children: Iterable[Child], into: int) -> None:
        for child in children:
            if child.is_group:
                self.groups[child.at].parent = into
            else:
                self.of[child.at] = into

    def _hash(self, container: int) -> int:
        """What is equal for groups that are equal."""
        nodes = list(self.nodes_of(container))
        number = {node: k for k, node in enumerate(nodes)}
        group = self.groups[container]
        kinds = (group.kind, group.lane, group.segment.cls if group.segment else "")
        signatures = self._facts.signatures
        if group.kind == "variable":
            return hash((kinds, *[loose for node in nodes if (loose := signatures[node][0])]))
        edges = [tuple([number.get(self._end(k), -1) for k in self._facts.inputs[node]]) for node in nodes]
        return hash((kinds, *zip([signatures[node][1] for node in nodes], edges, strict=True)))

    def _end(self, node: int) -> int:
        """The node itself, or the one that it is drawn with."""
        folded = self._facts.folded[node] if node >= 0 else -1
        return node if folded < 0 else folded

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

    def _first(self, child: Child) -> int:
        return self.groups[child.at].first if child.is_group else child.at

    def _line(self, child: Child) -> int:
        segment = self.groups[child.at].segment if child.is_group else None
        if segment is not None and segment.at is not None:
            return self._facts.begin(segment.at)
        return self._facts.lines[self._first(child)][1]

    def _lane(self, child: Child) -> Lane:
        return self.groups[child.at].lane if child.is_group else self._facts.places[child.at].lane

    def _title(self, children: Sequence[Child]) -> tuple[str, str]:
        """What a repeat of `children` is called, and a word for its id."""
        groups = [self.groups[child.at] for child in children if child.is_group]
        if len(groups) == 1:
            return groups[0].title, groups[0].segment.key if groups[0].segment else groups[0].id.rpartition("/")[2]
        if 1 < len(groups) <= MOST_TITLES:
            title = " + ".join(group.title.partition(" (call ")[0] for group in groups)
            return title, groups[0].segment.key if groups[0].segment else "groups"
        lines = sorted({self._line(child) for child in children} - {0})
        if not lines:
            return f"{len(children)} ops", "ops"
        text = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]}–{lines[-1]}"
        if len(lines) == 1 and not groups:  # by what it assigns; how it begins would leave no room for the count
            title = self._facts.titles(*self._facts.lines[children[0].at]).partition(": ")[0]
            return title, text.replace(" ", "")
        return text, text.replace(" ", "")

    # Small containers

    def _limit_children(self) -> None:
        waiting = [ROOT, *[k for k, group in enumerate(self.groups) if group.repeat is None]]
        while waiting:
            container = waiting.pop()
            most = MOST_AT_TOP if container == ROOT else MOST_CHILDREN
            if len(self._children(container)) > most and not self._is_line(container):
                self._by_line(container, waiting)
            if container == ROOT and len(self.top) > MOST_AT_TOP:
                self._by_statement(waiting)
                if len(self.top) > FEW_AT_TOP:
                    self._by_neighbours(waiting)
            if len(self._children(container)) > MOST_CHILDREN:
                self._by_block(container, waiting)

    def _is_line(self, container: int) -> bool:
        return container != ROOT and self.groups[container].kind in {"line", "block"}

    def _by_line(self, container: int, waiting: list[int]) -> None:
        """Gathers runs of nodes of one line."""
        children: list[Child] = []
        for (label, line), run in self._line_runs(self._children(container)):
            if line and len(run) > 1:
                title = self._facts.titles(label, line)
                children.append(self._wrap(container, "line", title, f"line{line}", run, waiting))
            else:
                children += run
        self._set_children(container, children)

    def _by_statement(self, waiting: list[int]) -> None:
        """Gathers calls of modules and functions at the top with the ops of the statement that calls them."""
        runs: list[list[Child]] = []
        for child in self.top:
            last = runs[-1][-1] if runs else None
            line = 0 if child.is_group and self.groups[child.at].repeat else self._line(child)
            if last and line and (line, self._lane(child)) == (self._line(last), self._lane(last)):
                runs[-1].append(child)
            else:
                runs.append([child])
        children: list[Child] = []
        for run in runs:
            plain = [child for child in run if not child.is_group or self.groups[child.at].kind == "line"]
            if len(run) > 1 and plain and self._lane(run[0]) != "update":
                nodes = plain[0].at if not plain[0].is_group else self.groups[plain[0].at].first
                title = self._facts.titles(*self._facts.lines[nodes])
                key = f"statement{self._line(run[0])}"
                children.append(self._wrap(ROOT, "line", title, key, self._unwrapped(run), waiting))
            else:
                children += run
        self.top = children

    def _by_neighbours(self, waiting: list[int]) -> None:
        """Gathers lines without calls that follow one another in a lane, at the top."""
        children: list[Child] = []
        for (plain, _), run in groupby(self.top, lambda child: (self._is_plain(child), self._lane(child))):
            members = list(run)
            if not plain or len(members) == 1:
                children += members
                continue
            length = -(-len(members) // -(-len(members) // MOST_LINES))
            for part in (members[k : k + length] for k in range(0, len(members), length)):
                lines = sorted({self._line(child) for child in part})
                title = f"lines {lines[0]}–{lines[-1]}" if len(lines) > 1 else f"line {lines[0]}"
                children.append(self._wrap(ROOT, "line", title, f"lines{self._line(part[0])}", part, waiting))
        self.top = children

    def _is_plain(self, child: Child) -> bool:
        """Whether it is an op, or ops of a line, that bears no name of a module or function."""
        inside = self.groups[child.at].children if child.is_group else []
        if not self._line(child):
            return False
        return not child.is_group or (self.groups[child.at].kind == "line" and not any(c.is_group for c in inside))

    def _unwrapped(self, run: Sequence[Child]) -> list[Child]:
        """The same without groups of a line: what is around them is one of that line."""
        found: list[Child] = []
        for child in run:
            of_line = child.is_group and self.groups[child.at].kind == "line"
            found += self.groups[child.at].children if of_line else [child]
            if of_line:
                self.groups[child.at].children = []
        return found

    def _line_runs(self, children: Sequence[Child]) -> list[tuple[tuple[str, int], list[Child]]]:
        """Consecutive children of one line and lane; a group has no line and stands alone."""
        result: list[tuple[tuple[str, int], list[Child]]] = []
        for child in children:
            line = ("", 0) if child.is_group else self._facts.lines[child.at]
            if line[1] and result and result[-1][0] == line and self._lane(result[-1][1][0]) == self._lane(child):
                result[-1][1].append(child)
            else:
                result.append((line, [child]))
        return result

    def _by_block(self, container: int, waiting: list[int]) -> None:
        """Cuts the children by number, but not across lanes."""
        children = self._children(container)
        length = _block_length(len(children), container == ROOT)
        blocks: list[list[Child]] = []
        for child in children:
            if not blocks or len(blocks[-1]) == length or self._lane(blocks[-1][0]) != self._lane(child):
                blocks.append([])
            blocks[-1].append(child)
        self._set_children(container, [self._block(container, block, waiting) for block in blocks])

    def _block(self, container: int, block: list[Child], waiting: list[int]) -> Child:
        if len(block) == 1:
            return block[0]
        first = self._first(block[0])
        lines = sorted({self._line(child) for child in block} - {0})
        title = f"nodes {first}–{self._first(block[-1])}"
        of_lines = f"lines {lines[0]}–{lines[-1]}" if len(lines) > 1 else title
        if container == ROOT and all(group.title != of_lines for group in self.groups):
            title = of_lines
        return self._wrap(container, "block", title, f"nodes{first}", block, waiting)

    def _wrap(
        self, container: int, kind: Kind, title: str, key: str, members: list[Child], waiting: list[int]
    ) -> Child:
        """Puts `members` into a new group, and that on the list of containers to look at."""
        lane = self._lane(members[0])
        around = self.groups[container].id if container != ROOT else f"{lane}:"
        index = len(self.groups)
        self.groups.append(Group(self._distinct(f"{around}/{key}"), kind, title, container, lane, children=members))
        self.groups[index].first = self._first(members[0])
        self._move(members, index)
        waiting.append(index)
        return Child(True, index)

    def _sort(self) -> None:
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

    def _count(self) -> None:
        for node, innermost in enumerate(self.of):
            group = innermost
            while group != ROOT:
                self.groups[group].size += 1
                self.groups[group].last = max(self.groups[group].last, node)
                group = self.groups[group].parent


def _block_length(count: int, at_top: bool) -> int:
    """How many of `count` children a block has: not so few that there would be a group for every other node.

    At the top there are `BLOCKS` at the most, since all of them are seen at once.

    >>> _block_length(63, False), _block_length(2_500, False), _block_length(2_500, True), _block_length(100_000, True)
    (8, 42, 63, 2500)
    """
    length = max(-(-count // BLOCKS), isqrt(count - 1) + 1)
    more = -(-count // MOST_CHILDREN)
    return more if more <= MOST_CHILDREN < length and not at_top else length


def _useful_paths(places: Iterable[Place]) -> dict[Place, tuple[Segment, ...]]:
    """The paths without scopes and functions that hold one node, or all that the group around them holds."""
    counts: dict[int, int] = {}
    known: dict[int, Place] = {}
    for place in places:
        counts[id(place)] = counts.get(id(place), 0) + 1
        known[id(place)] = place
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

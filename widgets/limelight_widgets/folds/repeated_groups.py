"""Repeats among the groups of a graph: equal siblings, and rounds of a loop, become one group of the kind "repeat".

Two siblings are equal when the sequences of their ops are: op, parameters, dtypes, ranks, line of code, and which op in
the same group each operand comes from. Updates of variables are equal where their assignments are, whatever the ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise, takewhile
from typing import Final

import numpy as np

from limelight_widgets.folds.group_tree import ROOT, Child, Group, GroupTree, Repeat
from limelight_widgets.folds.mirrored_repeats import mirror_repeats
from limelight_widgets.folds.periods import Integers, Run, runs

LEAST_UNROLLED: Final = 12  # ops without a group of their own that a repeat must have
_MOST_TITLES: Final = 3  # of groups in one round of a loop, that are named
_MOST_ROUNDS: Final = 4  # of looking for repeats of repeats
_MOST_COMPARED: Final = 60  # ops and groups of a round that are compared with those of the next, for each beginning


def fold_repeats(tree: GroupTree) -> None:
    """Makes groups of what is repeated, in all containers."""
    _Repeats(tree).fold()


class _Repeats:
    """What is known of groups while repeats are looked for."""

    def __init__(self, tree: GroupTree) -> None:
        self._tree = tree
        self._hashes: dict[int, int] = {}
        # The node that each is drawn with, and behind the last one -1, for what comes from outside.
        self._ends = [*(k if into < 0 else into for k, into in enumerate(tree.facts.folded)), -1]

    def fold(self) -> None:
        """Folds from the inside out, so that equal groups look equal inside as well."""
        self._tree.sort_children(ROOT, self._tree.lanes_of)  # what a lane repeats has others in between, each time
        for container in [*range(len(self._tree.groups) - 1, -1, -1), ROOT]:
            for _ in range(_MOST_ROUNDS):
                if not self._fold_children(container):
                    break
            if container != ROOT:
                self._hashes[container] = self._hash(container)
        mirror_repeats(self._tree, lambda container, rounds: self._repeated(container, 0, rounds))
        self._tree.sort_children(ROOT, self._tree.firsts_of)

    def _fold_children(self, container: int) -> bool:
        children = self._tree.children_of(container)
        if len(children) < 2:
            return False
        signatures = self._tree.facts.signatures
        symbols = [self._hashes[c.at] if c.is_group else signatures[c.at][1] for c in children]
        groups = [0, *accumulate(child.is_group for child in children)]
        lanes = self._tree.lanes_of(children)
        changes = [0, *accumulate(one != other for one, other in pairwise(lanes))]  # of lanes, before each child

        def worth(run: Run) -> bool:
            if changes[run.start + run.period - 1] > changes[run.start]:
                return False
            with_groups = groups[run.start + run.period] > groups[run.start]
            return with_groups or (run.count > 2 and run.count * run.period >= LEAST_UNROLLED)

        def begins(at: int, period: int) -> tuple[int, int]:
            line = self._tree.line_of(children[at])
            return self._called_elsewhere(children[at : at + 2 * period]), -line if lanes[at] == "backward" else line

        calls_before = np.array(groups)

        def shortest(starts: Integers, periods: Integers) -> Integers:
            rounds = np.maximum(3, -(-LEAST_UNROLLED // periods))
            return periods * np.where(calls_before[starts + periods] > calls_before[starts], 2, rounds)

        found = runs(symbols, worth, begins, shortest)
        if len(found) == 1 and found[0].count * found[0].period == len(children) and self._is_repeat(container):
            return False
        rest: list[Child] = []
        done = 0
        for run, end in zip(found, [*(other.start for other in found[1:]), len(children)], strict=False):
            start, rounds = self._with_ends(run, children, done, end)
            rest += children[done:start]
            rest.append(self._repeated(container, run.period, rounds))
            done = start + sum(map(len, rounds))
        self._tree.set_children(container, rest + children[done:])
        return bool(found)

    def _called_elsewhere(self, two_rounds: Sequence[Child]) -> int:
        """How many of one round are called at another line than the same of the next, as what came before a loop is."""
        period = len(two_rounds) // 2
        if period > _MOST_COMPARED:
            return 0
        of = self._tree.place_of
        return sum(of(one) != of(other) for one, other in zip(two_rounds, two_rounds[period:], strict=False))

    def _with_ends(self, run: Run, children: list[Child], low: int, high: int) -> tuple[int, list[list[Child]]]:
        """The rounds of a repeat, and where they begin: with those between `low` and `high` that differ a little.

        The first and the last round of a loop often do, since passes have found more or less to do there. They call
        the same modules and functions at the same lines, in the same order, and have ops of no other lines.
        """
        rounds = [children[k : k + run.period] for k in range(run.start, run.stop, run.period)]
        start, stop = run.start, run.stop
        calls = [self._call(child) for child in rounds[0] if child.is_group]
        if len(calls) < 2 or None in calls:
            return start, rounds

        def place(child: Child) -> object:
            return self._tree.line_of(child), self._tree.lane_of(child)

        lines = {place(child) for child in rounds[0] if not child.is_group}
        leading = [place(child) for child in takewhile(lambda child: not child.is_group, rounds[0])]

        def span(at: int, step: int, wanted: list[object]) -> int:
            """One past the last of the children from `at` on, going by `step`, that make a round; `at` for none."""
            begin, left, before = at, list(wanted), list(leading)
            while low <= at < high:
                child = children[at]
                if child.is_group and (not left or self._call(child) != left.pop(0)):
                    break
                if not child.is_group and place(child) not in lines:
                    break
                if not child.is_group and not left and (step < 0 or place(child) in leading):
                    begins = step < 0 and before and place(child) == before.pop()
                    if not begins:  # what a round begins with is of the next one
                        break
                at += step
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
        group = self._tree.groups[child.at]
        segment = group.segment
        if segment is None or segment.at is None:
            return None
        return group.kind, group.lane, segment.cls, segment.key.partition("#")[0], segment.at

    def _is_repeat(self, container: int) -> bool:
        return container != ROOT and self._tree.groups[container].repeat is not None

    def _repeated(self, container: int, period: int, rounds: list[list[Child]]) -> Child:
        """A new group of the kind "repeat" around `rounds`, of which the members are groups, or slices of nodes."""
        first, children = rounds[0][0], [child for one in rounds for child in one]
        lane = self._tree.lane_of(first)
        title, key = self._title(max(rounds, key=len))
        around = self._tree.groups[container].id if container != ROOT else f"{lane}:"
        group = Group(self._tree.distinct(f"{around}/{key}×"), "repeat", title, container, lane)
        group.path = self._tree.groups[first.at].path if first.is_group else ""
        group.first = self._tree.first_of(first)
        index = len(self._tree.groups)
        self._tree.groups.append(group)
        if not any(child.is_group for child in children):
            group.repeat, group.children = Repeat(len(rounds), [], period), children
            self._tree.move(children, index)
        else:
            group.children = [self._member(index, k, len(rounds), member) for k, member in enumerate(rounds)]
            group.repeat = Repeat(len(rounds), [child.at for child in group.children])
        self._hashes[index] = hash((len(rounds), self._hash(index)))
        return Child(True, index)

    def _member(self, repeat: int, number: int, count: int, children: list[Child]) -> Child:
        """One member: the group that it is, or a new one around what a round of a loop has done."""
        if len(children) == 1 and children[0].is_group:
            self._tree.groups[children[0].at].parent = repeat
            return children[0]
        above = self._tree.groups[repeat]
        title = f"{number + 1} of {count}: {self._title(children)[0].partition(' (call ')[0]}"
        group = Group(self._tree.distinct(f"{above.id}/{number}"), "step", title, repeat, above.lane)
        group.first, group.children = self._tree.first_of(children[0]), children
        at = len(self._tree.groups)
        self._tree.groups.append(group)
        self._tree.move(children, at)
        self._fold_children(at)  # what is repeated within a round
        self._hashes[at] = self._hash(at)
        return Child(True, at)

    def _hash(self, container: int) -> int:
        """What is equal for groups that are equal."""
        nodes = list(self._tree.nodes_of(container))
        number = {node: k for k, node in enumerate(nodes)}
        group = self._tree.groups[container]
        kinds = (group.kind, group.lane, group.segment.cls if group.segment else "")
        signatures = self._tree.facts.signatures
        if group.kind == "variable":
            return hash((kinds, *[loose for node in nodes if (loose := signatures[node][0])]))
        ends, inputs = self._ends, self._tree.facts.inputs
        edges = [tuple([number.get(ends[k], -1) for k in inputs[node]]) for node in nodes]
        return hash((kinds, *zip([signatures[node][1] for node in nodes], edges, strict=True)))

    def _title(self, children: Sequence[Child]) -> tuple[str, str]:
        """What a repeat of `children` is called, and a word for its id."""
        groups = [self._tree.groups[child.at] for child in children if child.is_group]
        if len(groups) == 1:
            return groups[0].title, groups[0].segment.key if groups[0].segment else groups[0].id.rpartition("/")[2]
        if 1 < len(groups) <= _MOST_TITLES:
            title = " + ".join(group.title.partition(" (call ")[0] for group in groups)
            return title, groups[0].segment.key if groups[0].segment else "groups"
        lines = sorted({self._tree.line_of(child) for child in children} - {0})
        if not lines:
            return f"{len(children)} ops", "ops"
        text = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]}–{lines[-1]}"
        if len(lines) == 1 and not groups:  # by what it assigns; how it begins would leave no room for the count
            title = self._tree.facts.titles(*self._tree.facts.lines[children[0].at]).partition(": ")[0]
            return title, text.replace(" ", "")
        return text, text.replace(" ", "")

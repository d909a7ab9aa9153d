"""What became of each node of a traced graph, by the records of the passes: the many-to-many mapping, in words.

One story for each op: the annotated cell, its HTML, the graph view and the listing all tell what is found here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from limelight.optimise import pipeline

MOST_NODES = 20_000  # of a graph whose nodes are followed: beyond that nobody reads it
_LISTED = 4  # ops of a group that are named
_GROUPS = 12  # groups that are listed


class Step(NamedTuple):
    """One change that a pass made to a node: `said` is a clause, "shared with line 3"; `line` is the user's, or 0.

    `run` is the number, from 0, of the record that tells of it: passes run more than once.
    """

    made_by: str
    rule: str
    said: str
    line: int = 0
    run: int = -1


class Fate(NamedTuple):
    """What happened to a node: the `steps` in order, and which nodes `after` optimisation stand for it.

    `groups` are the numbers, from 1, of the fusion groups that these are in.
    """

    steps: tuple[Step, ...]
    after: tuple[Any, ...]
    groups: tuple[int, ...]

    @property
    def words(self) -> str:
        """All of it as a clause: "shared with line 3; fused into group 1"."""
        said = [step.said for step in self.steps] or ["kept"]
        fused = [f"fused into group {number}" for number in self.groups]
        return "; ".join(dict.fromkeys([*said, *fused]))

    @property
    def mark(self) -> str:
        """The last change in a word, "shared"; "" for a node that was kept."""
        if not self.steps:
            return ""
        last = pipeline.named(self.steps[-1].made_by)
        return self.steps[-1].made_by if last is None else last.mark


def fates(traced: Any, optimised: Any, records: Sequence[Any]) -> dict[Any, Fate]:
    """The fate of every node of `traced`, of which `records` tell how it came to `optimised`; empty for huge graphs."""
    if len(traced.nodes) > MOST_NODES:
        return {}
    now: dict[Any, list[Any]] = {node: [node] for node in traced.nodes}
    steps: dict[Any, list[Step]] = {node: [] for node in traced.nodes}
    for run, record in enumerate(records):
        changed = {old: change for change in record.changes for old in change.old}
        if not changed and not record.rewired:
            continue
        for node, standing in now.items():
            for one in standing:
                if one in changed and (step := _step(run, record.name, changed[one], one)) not in steps[node]:
                    steps[node].append(step)
            now[node] = list(dict.fromkeys(_moved(standing, changed, record.rewired)))
    there = set(optimised.nodes)
    number = group_numbers(optimised)
    return {node: _fate(steps[node], [one for one in now[node] if one in there], number) for node in traced.nodes}


def arrivals(optimised: Any, records: Sequence[Any]) -> dict[Any, str]:
    """Why the nodes are there that stand for no traced one: "hoist: ...", for those that came out of a loop."""
    reasons: dict[Any, str] = {}
    for record in records:
        reasons = {record.rewired.get(node, node): said for node, said in reasons.items()}
        if record.added:
            new = [(node, change) for change in record.changes if not change.old for node in change.new]
            reasons |= {node: f"{record.name}: {change.reason}" for node, change in new}
    there = set(optimised.nodes) if reasons else set()
    return {node: said for node, said in reasons.items() if node in there}


def group_numbers(graph: Any) -> dict[Any, int]:
    """The number, from 1, of the fusion group of each node that is in one."""
    return {node: k for k, group in enumerate(getattr(graph, "groups", ()), start=1) for node in group.nodes}


def group_texts(graph: Any) -> list[str]:
    """The fusion groups of a graph, the first few of many: "group 1: multiply, where, multiply in one go"."""
    groups = getattr(graph, "groups", ())
    said = [
        f"group {k}: {_named([str(node.op) for node in group.nodes])} in one go"
        for k, group in enumerate(groups[:_GROUPS], start=1)
    ]
    return said + ([f"and {len(groups) - _GROUPS} groups more"] if len(groups) > _GROUPS else [])


def _named(ops: Sequence[str]) -> str:
    return ", ".join(ops[:_LISTED]) + (f" and {len(ops) - _LISTED} more" if len(ops) > _LISTED else "")


def _moved(standing: Iterable[Any], changed: Mapping[Any, Any], rewired: Mapping[Any, Any]) -> Iterable[Any]:
    for one in standing:
        yield from changed[one].new if one in changed else (rewired.get(one, one),)


def _fate(steps: Sequence[Step], after: Sequence[Any], number: Mapping[Any, int]) -> Fate:
    groups = dict.fromkeys(number[one] for one in after if one in number)
    return Fate(tuple(steps), tuple(after), tuple(groups))


def _step(run: int, made_by: str, change: Any, old: Any) -> Step:
    return _told(made_by, change, old)._replace(run=run)


def _told(made_by: str, change: Any, old: Any) -> Step:
    """A change in the words of the pass that made it."""
    line = _line(change.new[0]) if change.new else 0
    where = f"line {line}" if line and line != _line(old) else f"an earlier {old.op} of this line"
    known = pipeline.named(made_by)
    says = pipeline.SAYS if known is None else known.says
    said = says.format(name=made_by, rule=change.rule, reason=change.reason, where=where)
    return Step(made_by, change.rule, said, line)


def _line(node: Any) -> int:
    return int(node.source[1]) if node.source else 0

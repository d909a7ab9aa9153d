"""What became of each node of a line, before and after optimisation: records that are words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from limelight.executors import base as executors
from limelight.graph.printer import describe, nested
from limelight_widgets.folds.node_fates import Fate, fates
from limelight_widgets.folds.source_excerpts import own_stack
from limelight_widgets.format import counted

_GONE = "not followed: the call of its function was changed or dropped"
MOST_STORIES = 40  # of one line: a loop in Python may make thousands of nodes


@dataclass(frozen=True, slots=True)
class NodeStory:
    """A node as `traced`, what the passes did to it in `words`, and the nodes that stand for it as `optimised`.

    `groups` are the numbers of the fusion groups that those are in; `inside` names the function that the graph calls
    and that has the node, "" for the graph itself.
    """

    traced: str
    words: str
    optimised: tuple[str, ...]
    groups: tuple[int, ...] = ()
    inside: str = ""

    def to_dict(self) -> dict[str, Any]:
        said = {"traced": self.traced, "words": self.words, "optimised": list(self.optimised)}
        return {**said, "groups": list(self.groups), "inside": self.inside}


def line_of(node: Any, filename: str, function: str = "") -> int:
    """The innermost line of a cell that made a node, 0 where none did; of lines in `function`, if it is given.

    What a function does stands at its own lines, and not at that of the call for which it was traced first.
    """
    stack = own_stack(node.stack, function) if function else node.stack
    return next((int(source.line) for source in stack if source.file == filename), 0)


class Part(NamedTuple):
    """A graph `before` and `after` optimisation, with the `fates` of its nodes.

    `name` is that of the function it belongs to, "" for the graph itself.
    """

    name: str
    before: Any
    after: Any
    fates: Mapping[Any, Fate]


def parts_of(traced: Any, optimised: Any, records: Sequence[Any]) -> list[Part]:
    """A graph and the functions that it calls; empty without a graph.

    Those that the optimised form does not call as they are have no fates.
    """
    if traced is None or optimised is None:
        return []
    return [Part("", traced, optimised, fates(traced, optimised, records)), *_inside(traced, optimised)]


def stories(parts: Iterable[Part], filename: str) -> dict[int, list[NodeStory]]:
    """The stories of all nodes by the cell's lines."""
    stories_of: dict[int, list[NodeStory]] = {}
    untold: Counter[int] = Counter()
    for name, before, after, fate_of in parts:
        for node in before.nodes:
            line = line_of(node, filename, before.name if name else "")
            if line and len(stories_of.get(line, ())) >= MOST_STORIES:
                untold[line] += 1
            elif line and node in fate_of:
                fate = fate_of[node]
                runs_as = tuple(describe(after, one) for one in fate.after)
                story = NodeStory(describe(before, node), fate.words, runs_as, fate.groups, name)
                stories_of.setdefault(line, []).append(story)
            elif line and name:
                stories_of.setdefault(line, []).append(NodeStory(describe(before, node), _GONE, (), (), name))
    for line, count in untold.items():
        stories_of[line].append(NodeStory(f"and {counted(count, 'more op')}", "", ()))
    return stories_of


def _inside(traced: Any, optimised: Any) -> Iterator[Part]:
    still = {id(function) for function in nested(optimised)}
    for function in nested(traced):
        result = getattr(function, "optimised", None) if id(function) in still else None
        if result is None:
            yield Part(function.name, function.graph, function.graph, {})
        else:
            yield Part(function.name, function.graph, result.graph, fates(function.graph, result.graph, result.records))


def plans(optimised: Any, filename: str, tier: str) -> dict[int, list[str]]:
    """What the executor of that name runs for each node of a graph, by the cell's lines."""
    code_of: dict[int, list[str]] = {}
    for node, code in executors.get(tier).code(optimised):
        lines = code_of.setdefault(line_of(node, filename), [])
        lines += [code] if len(lines) < MOST_STORIES else ["..."] if len(lines) == MOST_STORIES else []
    return code_of


def shared_line(node_fates: Collection[Fate]) -> int:
    """The line that all of these nodes were merged with, 0 where there is no such single line."""
    lines = [{step.line for step in fate.steps if step.made_by == "share"} for fate in node_fates]
    common = set.intersection(*lines) if lines else set()
    return common.pop() if len(common) == 1 else 0

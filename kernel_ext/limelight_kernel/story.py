"""What became of each node of a line, before and after optimisation: records that are words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from limelight.graph.text import describe, nested
from limelight_widgets.folds.fates import Fate, fates
from limelight_widgets.units import counted

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


def line_of(node: Any, filename: str) -> int:
    """The innermost line of a cell that made a node, 0 where none did."""
    return next((int(source.line) for source in node.stack if source.file == filename), 0)


def stories(traced: Any, optimised: Any, known: Mapping[Any, Fate], filename: str) -> dict[int, list[NodeStory]]:
    """The stories of a graph's nodes by the cell's lines, and of those in the functions that it calls.

    Empty where there is no graph; `known` are the fates of the graph's own nodes.
    """
    found: dict[int, list[NodeStory]] = {}
    untold: Counter[int] = Counter()
    if traced is None or optimised is None:
        return found
    parts = [("", traced, optimised, known), *_inside(traced, optimised)]
    for name, before, after, fate_of in parts:
        for node in before.nodes:
            line = line_of(node, filename)
            if line and len(found.get(line, ())) >= MOST_STORIES:
                untold[line] += 1
            elif line and node in fate_of:
                fate = fate_of[node]
                runs_as = tuple(describe(after, one) for one in fate.after)
                story = NodeStory(describe(before, node), fate.words, runs_as, fate.groups, name)
                found.setdefault(line, []).append(story)
    for line, count in untold.items():
        found[line].append(NodeStory(f"and {counted(count, 'more op')}", "", ()))
    return found


def _inside(traced: Any, optimised: Any) -> Iterator[tuple[str, Any, Any, Mapping[Any, Fate]]]:
    """The functions that a graph calls, and that its optimised form still calls as they are."""
    still = {id(function) for function in nested(optimised)}
    for function in nested(traced):
        result = getattr(function, "optimised", None) if id(function) in still else None
        if result is not None:
            followed = fates(function.graph, result.graph, result.records)
            yield function.name, function.graph, result.graph, followed


def shared_line(found: Iterable[Fate]) -> int:
    """The line that all of these nodes were merged with, 0 where there is no such single line."""
    lines = {step.line for fate in found for step in fate.steps if step.made_by == "share"}
    return lines.pop() if len(lines) == 1 else 0

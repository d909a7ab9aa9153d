"""Which groups and calls of a described graph are open, where they are to be open so many levels deep."""

from __future__ import annotations

from collections.abc import Iterator

from limelight_widgets.folds.fold import State
from limelight_widgets.folds.node_columns import NodeColumns

MOST_BOXES = 400
"""Beyond which a picture that nobody can zoom has nothing to tell: deeper levels stay closed."""


def opened_to(state: State, root: int, depth: int) -> frozenset[str]:
    """The names of the groups and calls of the first `depth` levels; of fewer levels where boxes would be too many.

    The live view does the same in `js/src/graph/open-all.js`.
    """
    opened: frozenset[str] = frozenset()
    boxes = len(state["graphs"][root]["inputs"]) + len(state["graphs"][root]["outputs"])
    for level in range(depth):
        deeper = dict(_level(state, root, level))
        boxes += sum(deeper.values())
        if not deeper or boxes > MOST_BOXES:
            break
        opened |= deeper.keys()
    return opened


def _level(state: State, root: int, wanted: int) -> Iterator[tuple[str, int]]:
    """The groups and calls of one level, 0 for the outermost, each with the number of what is directly in it."""
    waiting: list[tuple[str, int, tuple[int, ...], int]] = [("", root, (root,), 0)]
    for path, index, chain, above in waiting:
        graph = state["graphs"][index]
        levels = [-1] * len(graph["groups"])

        def level_of(group: int, graph: State = graph, levels: list[int] = levels, above: int = above) -> int:
            """Of what is directly in a group, -1 for none."""
            if group < 0:
                return above
            if levels[group] < 0:
                levels[group] = level_of(graph["groups"][group]["parent"]) + 1
            return levels[group]

        for number, group in enumerate(graph["groups"]):
            if level_of(group["parent"]) == wanted:
                yield f"{path}g{number}", group["size"]
        nodes = NodeColumns.of(graph)
        for number in nodes.where(lambda kind: kind.get("calls")):
            calls = nodes.kind_of(number)["calls"]
            level = level_of(int(nodes.group[number]))
            if level > wanted or any(callee in chain for callee, _ in calls):
                continue
            if level == wanted:
                yield f"{path}n{number}", sum(len(state["graphs"][callee]["nodes"]) for callee, _ in calls)
            inner = [
                (f"{path}n{number}.{k}/", callee, (*chain, callee), level + 1) for k, (callee, _) in enumerate(calls)
            ]
            waiting += inner

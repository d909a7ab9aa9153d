"""Lists whose elements changed places between a save and a restore: values go by position, which may not be meant."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from limelight.checkpoint.object_graph import Node, ObjectGraph
from limelight.errors import CheckpointWarning
from limelight.user_code.warn_at import warn_here

Orders: TypeAlias = dict[str, list[Callable[[], Any]]]
MOST_FILES: Final = 8
"""Of so many files, the last that a checkpoint has written, it knows which object was where."""


def orders_of(graph: ObjectGraph, nodes: Iterable[Node]) -> Orders:
    """The objects in each list among `nodes`, by the path of the list."""
    found: Orders = {}
    for node in nodes:
        if node.kind == "list" and len(node.children) > 1:
            found[node.path] = [_weakly(graph.nodes[to].object) for _, to in node.children]
    return found


def warn_of_moved(orders: Orders, root: Any) -> None:
    """Warns of lists that have the objects of then at other places."""
    lists = {node.path: node for node in ObjectGraph(root).nodes if node.kind == "list"}
    for path, references in orders.items():
        was = [id(reference()) for reference in references if reference() is not None]
        now = [id(x) for x in lists[path].object] if path in lists else []
        common = set(was) & set(now)
        if [x for x in was if x in common] != [x for x in now if x in common]:
            warn_here(
                f"`{path}` has another order than when the file was written, and values go by position: put the "
                "list in the order of then, or keep the objects in a dictionary",
                CheckpointWarning,
            )


def _weakly(x: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(x)
    except TypeError:
        return lambda: None

"""Links between the two versions of a graph, as traced and as it runs, and of the functions that both call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from limelight.graph.printer import nested
from limelight_widgets.folds.graph_json import Describer
from limelight_widgets.folds.node_fates import Fate, arrivals, fates

MOST_LISTED = 100  # changes of a pass


def link(describer: Describer, traced: Any, optimised: Any, records: Sequence[Any]) -> dict[int, list[list[object]]]:
    """Tells each traced node what `became` of it, and each that runs what it `was`, or why it `came`.

    Functions are linked where both versions call them.

    Args:
        describer: has described both versions.
        traced: the graph as traced.
        optimised: the graph as it runs.
        records: what the passes did in between.

    Returns:
        by the number of a pass's record, the nodes of the traced graph that it changed, each with a clause that says
        how.
    """
    known = fates(traced, optimised, records)
    _pair(describer, traced, optimised, known, arrivals(optimised, records))
    still = {id(function) for function in nested(optimised)}
    for function in nested(traced):
        result = getattr(function, "optimised", None) if id(function) in still else None
        if result is not None and result.graph is not function.graph:
            followed = fates(function.graph, result.graph, result.records)
            _pair(describer, function.graph, result.graph, followed, arrivals(result.graph, result.records))
    return _by_record(traced, known)


def _pair(
    describer: Describer, traced: Any, optimised: Any, known: Mapping[Any, Fate], came: Mapping[Any, str]
) -> None:
    before, after = describer.described(traced), describer.described(optimised, optimised=True)
    if before is None or after is None or before is after:
        return
    place = {node: index for index, node in enumerate(optimised.nodes)}
    was: dict[int, list[int]] = {}
    for index, node in enumerate(traced.nodes):
        if node in known:
            standing = [place[one] for one in known[node].after]
            before["nodes"].note(index, "became", [known[node].words, standing, known[node].mark])
            for one in standing:
                was.setdefault(one, []).append(index)
    for index, several in was.items():
        after["nodes"].note(index, "was", several)
    for node, said in came.items():
        if place[node] not in was:
            after["nodes"].note(place[node], "came", said)


def _by_record(traced: Any, known: Mapping[Any, Fate]) -> dict[int, list[list[object]]]:
    changes_of: dict[int, list[list[object]]] = {}
    for index, node in enumerate(traced.nodes):
        for step in known[node].steps if node in known else ():
            listed = changes_of.setdefault(step.run, [])
            if len(listed) < MOST_LISTED:
                listed.append([index, step.said])
    return changes_of

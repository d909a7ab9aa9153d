"""Which saved values wait in vain, since a later restore has values for the same places: the latest decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from limelight.checkpoint.manifest import SavedNode
from limelight.checkpoint.object_graph import LEAVES


def superseded(older: Sequence[SavedNode], newer: Sequence[SavedNode], pairs: Iterable[tuple[int, int]]) -> set[int]:
    """The numbers of the values of one restore for which another one has values, too.

    Args:
        older: what the earlier restore read.
        newer: what the later one read.
        pairs: numbers in both that have been matched with one object; what lies below them is found by edges.
    """
    partners: dict[int, int] = {}
    pending = list(pairs)
    while pending:
        number, other = pending.pop()
        if number not in partners:
            partners[number] = other
            edges = dict(newer[other].children)
            pending += [(child, edges[edge]) for edge, child in older[number].children if edge in edges]
    found = {n for n, other in partners.items() if older[n].kind in LEAVES and newer[other].kind in LEAVES}
    for number in partners:
        for to, slots in older[number].slots:
            if to in partners:  # slots that the later one has not begin anew with the variable
                found.update(slots.values())
    return found

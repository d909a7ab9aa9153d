"""Runs the passes of `pipeline.PASSES` over a graph.

The repeated ones take turns until they find little, so that each may use what the others have found. Then each of the
others runs once. If one of these has changed the graph, the passes that tidy run once more before the last pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from limelight import events
from limelight.core.collector import collector_paused
from limelight.graph.ir import Graph
from limelight.graph.verify import verify
from limelight.optimise import pipeline
from limelight.optimise.pass_record import PassRecord
from limelight.optimise.pipeline import Pass, When
from limelight.optimise.setting import Setting, checked, setting

ROUNDS: Final = 4
"""Passes that find work for one another are repeated at most so often."""
NOT_WORTH_IT: Final = 1000
"""Fewer changes than one in so many nodes are not followed by another round, which would look at all of them again."""


class Optimised(NamedTuple):
    """A graph after all passes, and what each run of a pass did."""

    graph: Graph
    records: tuple[PassRecord, ...]


def optimise(graph: Graph, level: int | None = None, *, check: bool = False) -> Optimised:
    """Runs the passes of a level over a graph, some of them again while they find something to do.

    The result computes the same outputs with the same effects in the same order.

    Args:
        graph: the graph as traced; it is left as it is.
        level: 0 is none, 1 only what is unused, 2 what keeps every bit of every result, 3 what may round otherwise too;
            without a level, what `ll.config.optimiser` says.
        check: whether to verify the graph after each pass.

    Returns:
        The graph after all passes, and a record of each run of a pass.

    Raises:
        ArgumentError: there is no such level.
    """
    chosen = setting.get() if level is None else checked(level)
    with collector_paused():
        return _Run(chosen, check).all(graph)


class _Run:
    """One run of the passes that a setting asks for, over one graph."""

    def __init__(self, chosen: Setting, check: bool) -> None:
        self._chosen = chosen
        self._check = check
        self._records: list[PassRecord] = []
        self._results: dict[str, Graph] = {}  # of each pass: in what it has just made it would find nothing

    def all(self, graph: Graph) -> Optimised:
        graph = self._rounds(graph)
        changed = self._some(self._at(When.ONCE), graph)
        if changed is not graph:
            changed = self._some(pipeline.tidy_passes(), changed)
        return Optimised(self._some(self._at(When.LAST), changed), tuple(self._records))

    @staticmethod
    def _at(when: When) -> list[Pass]:
        return [one for one in pipeline.PASSES if one.when is when]

    def _rounds(self, graph: Graph) -> Graph:
        repeated = self._at(When.REPEATED)
        leading = {one.name for one in repeated if one.leads_on}
        for _ in range(ROUNDS):
            before, n = graph, len(self._records)
            graph = self._some(repeated, graph)
            n_changes = sum(len(record.changes) for record in self._records[n:] if record.name in leading)
            if graph is before or n_changes <= len(graph.nodes) // NOT_WORTH_IT:
                break
        return graph

    def _some(self, some: Iterable[Pass], graph: Graph) -> Graph:
        for one in some:
            if self._chosen.has(one) and self._results.get(one.name) is not graph:
                graph = self._results[one.name] = self._one(one, graph)
        return graph

    def _one(self, one: Pass, graph: Graph) -> Graph:
        graph, record = one.at(self._chosen.level)(graph)
        self._records.append(record)
        _announce(graph, record)
        return verify(graph) if self._check else graph


def _announce(graph: Graph, record: PassRecord) -> None:
    if events.wanted(events.PassApplied):
        name, before, removed, added, after, seconds = record[:6]
        events.emit(events.PassApplied(graph.name, name, before, removed, added, after, seconds))

"""The passes in order, until nothing changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from limelight import events
from limelight.graph.build import collector_paused
from limelight.graph.ir import Graph
from limelight.graph.verify import verify
from limelight.optimise.broadcasts import spread
from limelight.optimise.constant_folding import fold
from limelight.optimise.cse import share
from limelight.optimise.dead_code import prune
from limelight.optimise.fusion import fuse
from limelight.optimise.levels import Setting, checked, setting
from limelight.optimise.loop_invariants import hoist
from limelight.optimise.pass_record import Pass, PassRecord
from limelight.optimise.simplify import simplify, simplify_exactly
from limelight.optimise.stacked_sums import stack

ROUNDS: Final = 4
"""Passes that find work for one another are repeated at most so often."""
NOT_WORTH_IT: Final = 1000
"""Fewer changes than one in so many nodes are not followed by another round, which would look at all of them again."""
_REPEATED: Final = ("prune", "fold", "simplify", "share")
_ONCE: Final = ("hoist", "stack", "spread")
_AFTERWARDS: Final = ("fold", "share", "prune")
_BY_NAME: Final[Mapping[str, Pass]] = {
    "prune": prune,
    "fold": fold,
    "share": share,
    "simplify": simplify,
    "hoist": hoist,
    "stack": stack,
    "spread": spread,
    "fuse": fuse,
}


class Optimised(NamedTuple):
    """A graph after all passes, and what each run of a pass did."""

    graph: Graph
    records: tuple[PassRecord, ...]


def optimise(graph: Graph, level: int | None = None, *, check: bool = False) -> Optimised:
    """Runs the passes of `level` over `graph`, some of them again while they find something to do.

    0 is none, 1 only what is unused, 2 what keeps every bit of every result, 3 what may round otherwise too; without a
    level, what `ll.config.optimiser` says. The result computes the same outputs with the same effects in the same
    order. With `check` the graph is verified after each pass. Raises ArgumentError for a level that does not exist.
    """
    chosen = setting.get() if level is None else checked(level)
    with collector_paused():
        return _Run(chosen, check).all(graph)


class _Run:
    def __init__(self, chosen: Setting, check: bool) -> None:
        self._chosen = chosen
        self._names = frozenset(chosen.names())
        self._check = check
        self._records: list[PassRecord] = []
        self._results: dict[str, Graph] = {}  # passes find nothing in what they have just made

    def all(self, graph: Graph) -> Optimised:
        for _ in range(ROUNDS):
            before, n = graph, len(self._records)
            graph = self._some(_REPEATED, graph)
            found = sum(len(record.changes) for record in self._records[n:] if record.name != "prune")
            if graph is before or found <= len(graph.nodes) // NOT_WORTH_IT:
                break
        again = self._some(_ONCE, graph)
        if again is not graph:
            graph = self._some(_AFTERWARDS, again)
        return Optimised(self._some(("fuse",), graph), tuple(self._records))

    def _some(self, names: Iterable[str], graph: Graph) -> Graph:
        for name in names:
            if name in self._names and self._results.get(name) is not graph:
                graph = self._results[name] = self._one(name, graph)
        return graph

    def _one(self, name: str, graph: Graph) -> Graph:
        step = simplify_exactly if name == "simplify" and not self._chosen.inexact else _BY_NAME[name]
        graph, record = step(graph)
        self._records.append(record)
        _announce(graph, record)
        return verify(graph) if self._check else graph


def _announce(graph: Graph, record: PassRecord) -> None:
    if events.wanted(events.PassApplied):
        name, before, removed, added, after, seconds = record[:6]
        events.emit(events.PassApplied(graph.name, name, before, removed, added, after, seconds))

"""The passes in order, until nothing changes."""

from __future__ import annotations

from typing import Final, NamedTuple

from limelight import events
from limelight.errors import ArgumentError
from limelight.graph.build import collector_paused
from limelight.graph.ir import Graph
from limelight.graph.verify import verify
from limelight.optimise.fold import fold
from limelight.optimise.prune import prune
from limelight.optimise.record import Pass, PassRecord
from limelight.optimise.share import share

LEVELS: Final[tuple[tuple[Pass, ...], ...]] = ((), (prune,), (prune, fold, share, prune))
"""The passes of each level: nothing, only what is unused, everything."""
ROUNDS: Final = 4
"""The passes of a level are repeated at most so often."""


class Optimised(NamedTuple):
    """A graph after all passes, and what each run of a pass did."""

    graph: Graph
    records: tuple[PassRecord, ...]


def optimise(graph: Graph, level: int = 2, *, check: bool = False) -> Optimised:
    """Runs the passes of `level` (0 none, 1 prune, 2 all) over `graph`, again while they find something to do.

    The result computes the same outputs with the same effects in the same order. With `check` the graph is verified
    after each pass. Raises ArgumentError for a level that does not exist.
    """
    if level not in range(len(LEVELS)):
        raise ArgumentError(f"optimisation levels are 0 to {len(LEVELS) - 1}, got {level!r}")
    with collector_paused():
        return _run(graph, LEVELS[level], check)


def _run(graph: Graph, passes: tuple[Pass, ...], check: bool) -> Optimised:
    records: list[PassRecord] = []
    results: dict[Pass, Graph] = {}  # passes find nothing in what they have just made
    for _ in range(ROUNDS):
        before = graph
        for step in passes:
            if results.get(step) is graph:
                continue
            graph, record = step(graph)
            results[step] = graph
            records.append(record)
            _announce(graph, record)
            if check:
                verify(graph)
        if graph is before:
            break
    return Optimised(graph, tuple(records))


def _announce(graph: Graph, record: PassRecord) -> None:
    if events.wanted(events.PassApplied):
        name, before, removed, added, after, seconds = record[:6]
        events.emit(events.PassApplied(graph.name, name, before, removed, added, after, seconds))

"""The passes in order, until nothing changes."""

from __future__ import annotations

from typing import Final, NamedTuple

from limelight import events
from limelight.errors import ArgumentError
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
    records: list[PassRecord] = []
    for _ in range(ROUNDS):
        changed = False
        for step in LEVELS[level]:
            graph, record = step(graph)
            records.append(record)
            changed = changed or bool(record.changes)
            _announce(graph, record)
            if check:
                verify(graph)
        if not changed or not _may_enable_more(records):
            break
    return Optimised(graph, tuple(records))


def _may_enable_more(records: list[PassRecord]) -> bool:
    """Whether another round can find anything: removing alone opens no new way to compute or to merge."""
    return any(record.changes for record in records[-len(LEVELS[2]) :] if record.name not in ("prune", "share"))


def _announce(graph: Graph, record: PassRecord) -> None:
    if events.wanted(events.PassApplied):
        name, before, removed, added, after, seconds = record[:6]
        events.emit(events.PassApplied(graph.name, name, before, removed, added, after, seconds))

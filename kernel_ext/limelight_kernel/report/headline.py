"""What is said of a run, or of all staged cells, before any line is shown: a sentence, or a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from limelight_kernel.report.result import StageResult
from limelight_kernel.staged.execution import Run
from limelight_kernel.staged.staged_cell import StagedCell
from limelight_widgets.figures.static_forms import Table, text_table
from limelight_widgets.format import counted, seconds_text


def headline(staged: StagedCell, done: Run, known: bool) -> str:
    """What happened: a cache hit, a first trace, or a trace again and why."""
    entry = done.entry
    took = seconds_text(done.seconds)
    if done.hit:
        same = "unchanged cell, " if known else ""
        uses = counted(entry.hits + 1, "time")
        return f"{staged.name}: {same}cache hit on trace #{entry.index + 1} (used {uses}), {took}"
    if not entry.miss.first:
        through = [
            f"`{name}` is read by `{helper}`."
            for name, helper in sorted(staged.through.items())
            if name in _paths(entry)
        ]
        return " ".join([entry.reason, *through])
    sizes = f"{counted(len(entry.graph.nodes), 'op')}, {len(entry.optimised.nodes):,} after optimisation"
    ran = f"; {took} in all" if done.made is not None else "; not run"
    return f"{staged.name}: traced ({sizes}) in {seconds_text(entry.trace_seconds)}{ran}"


def _paths(entry: Any) -> set[str]:
    """The names of the inputs that differed from the closest trace."""
    return {difference.path.partition("[")[0].partition(".")[0] for difference in entry.miss.differences}


def newest_trace_report(staged: StagedCell, parts: tuple[str, ...] = ()) -> StageResult | None:
    """The newest trace of a staged cell, line by line, without running anything; None where there is none."""
    if not len(staged.trace_cache):
        return None
    entry = staged.trace_cache[-1]
    uses = counted(entry.hits + 1, "time")
    head = f"{staged.name}: trace #{entry.index + 1}, the newest of {len(staged.trace_cache)} (used {uses})"
    return StageResult(staged.name, head, True, False, {}, None, 0.0, entry, staged, parts)


def staged_table(cells: Iterable[StagedCell]) -> str:
    """The staged cells as a table of text."""
    rows = [
        (staged.name, str(len(staged.cell.lines)), str(len(staged.trace_cache)), str(_hits(staged))) for staged in cells
    ]
    if not rows:
        return "No cell is staged yet: write %%stage on the first line of one."
    return text_table(Table(("name", "lines", "traces", "hits"), rows, frozenset({"lines", "traces", "hits"})))


def _hits(staged: StagedCell) -> int:
    return sum(int(entry.hits) for entry in staged.trace_cache)

"""`%trace_cache --why`: a story for each cause of traces, the costliest first unless asked for otherwise.

Beyond some stories there is the table of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limelight.explain.story import Story
from limelight_kernel.explain.retrace_fixes import worded_for_cell

MOST = 8  # stories in a text; beyond them there is the table


@dataclass(frozen=True)
class Retraces:
    """Why a function traced, each time; `retrace` is the engine's answer.

    `sort` is "cost", "count" (the cause of the most traces first) or "time" (the latest first).
    """

    retrace: Any
    of_cell: bool = False
    sort: str = "cost"

    @property
    def records(self) -> tuple[Any, ...]:
        """The engine's records, the newest last."""
        records: tuple[Any, ...] = self.retrace.records
        return records

    @property
    def stories(self) -> tuple[Story, ...]:
        """One for each cause, in the order that was asked for; then of values that no call sees."""
        groups = self.retrace.groups
        told: tuple[Story, ...] = self.retrace.stories
        if self.sort != "cost":
            order = sorted(range(len(groups)), key=lambda i: -_rank(groups[i], self.sort))
            told = (*[told[i] for i in order], *told[len(groups) :])
        return tuple([story.reworded(worded_for_cell) for story in told]) if self.of_cell else told

    def table(self) -> str:
        """One line for each argument and cause."""
        return str(self.retrace.table())

    def __str__(self) -> str:
        told = self.stories
        if not told:
            return str(self.retrace)
        left = [f"{len(told) - MOST:,} more causes. All of them:", self.table()] if len(told) > MOST else []
        return "\n".join([*map(str, told[:MOST]), *left])

    __repr__ = __str__


def _rank(group: Any, sort: str) -> float:
    """What comes first has the largest."""
    return float(group.traces) if sort == "count" else float(group.latest.made_at)

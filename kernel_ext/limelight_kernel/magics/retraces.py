"""`%trace_cache --why`: a story for each cause of traces, the costliest first; beyond some, the table of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limelight.explain.story import Story
from limelight_kernel.explain.retrace_fixes import worded_for_cell

MOST = 8  # stories in a text; beyond them there is the table


@dataclass(frozen=True)
class Retraces:
    """Why a function traced, each time; `retrace` is the engine's answer."""

    retrace: Any
    of_cell: bool = False

    @property
    def records(self) -> tuple[Any, ...]:
        """The engine's records, the newest last."""
        records: tuple[Any, ...] = self.retrace.records
        return records

    @property
    def stories(self) -> tuple[Story, ...]:
        """One for each cause, the costliest first."""
        told: tuple[Story, ...] = self.retrace.stories
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

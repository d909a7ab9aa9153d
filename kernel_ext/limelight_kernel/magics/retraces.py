"""`%trace_cache --why`: the sentence of every trace, the newest first, and what they cost together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limelight_kernel.explain.retrace_fixes import worded_for_cell

MOST = 8  # sentences; beyond them there is the table


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

    def table(self) -> str:
        """One line for each argument and cause."""
        return str(self.retrace.table())

    def __str__(self) -> str:
        earlier = [str(record) for record in reversed(self.records[-MOST:-1])]
        parts = [str(self.retrace), *(["Before that:", *earlier] if earlier else [])]
        if len(self.records) > MOST:
            parts += [
                f"{len(self.records) - MOST:,} more before these. All of them by argument and cause:",
                self.table(),
            ]
        text = "\n".join(parts)
        return worded_for_cell(text) if self.of_cell else text

    __repr__ = __str__

"""`%%trace_cache --expect N`: runs a cell and counts the traces that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from limelight import events
from limelight_kernel.report.listing import wrapped
from limelight_kernel.run.ordinary_cell import run_ordinary
from limelight_kernel.tracebacks import runs_cells
from limelight_widgets.format import counted

runs_cells(__file__)


class TraceCountError(AssertionError):
    """A cell made other traces than `%%trace_cache` expects; shown without a traceback.

    See docs/errors/TraceCountError.md.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"TraceCountError: {self}"]


@dataclass(frozen=True)
class Traces:
    """The traces that a cell made: of which function, which one of it, and why."""

    made: tuple[events.CacheMiss, ...]

    def __str__(self) -> str:
        if not self.made:
            return "The cell made no trace."
        return "\n".join([f"The cell made {counted(len(self.made), 'trace')}:", *_told(self.made)])

    __repr__ = __str__

    def check(self, expect: int | None, most: int | None, names: str) -> None:
        """Raises TraceCountError where there are not `expect`, or more than `most`."""
        allowed = expect if expect is not None else most or 0
        wanted = counted(allowed, "trace") if allowed else "no trace"
        many = len(self.made)
        if (expect is None or many == expect) and (most is None or many <= most):
            return
        exact = expect is not None and many != expect
        limit = f"{('exactly ' if exact else 'at most ') if allowed else ''}{wanted} were"
        traces = f"{counted(many, 'trace')} {names}".rstrip()
        said = f"the cell made {traces}, and {limit} expected".replace("trace were", "trace was")
        if many < (expect or 0):
            raise TraceCountError("\n".join([f"{said}: the other calls found theirs in the cache", *_told(self.made)]))
        extra = self.made[allowed:]
        raise TraceCountError("\n".join([f"{said}. Too many:", *_told(extra)]))


def _told(misses: Sequence[events.CacheMiss]) -> list[str]:
    return [wrapped(f"- trace #{event.entry + 1}: {event.reason}") for event in misses]


def run_and_count(shell: InteractiveShell, line: str, cell: str, wanted: Callable[[], Any]) -> tuple[Any, Traces]:
    """Runs a cell as an ordinary one; returns the value of its last expression, and the traces that it made.

    Args:
        shell: whose namespace the code runs in.
        line: what stands on the line of the magic.
        cell: the text below it.
        wanted: finds, after the cell has run, the function whose traces are counted; None for those of all functions.
    """
    __tracebackhide__ = True
    misses: list[Any] = []
    listening = events.listen(misses.append, events.CacheMiss)
    try:
        value = run_ordinary(shell, "trace_cache", line, cell)
    finally:
        listening.close()
    function = wanted()
    if function is None:
        return value, Traces(tuple(misses))
    ids = {function.id, *(bound.id for bound in getattr(function, "instances", ()))}
    return value, Traces(tuple(event for event in misses if event.function_id in ids))

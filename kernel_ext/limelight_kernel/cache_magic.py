"""What `%trace_cache` answers."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from IPython.core.error import UsageError

from limelight import explain
from limelight_kernel.arguments import positive
from limelight_kernel.expect import Traces, run_and_count
from limelight_kernel.result import PlainText
from limelight_kernel.retraces import Retraces
from limelight_kernel.session import Session, position
from limelight_kernel.staged import StagedCell
from limelight_kernel.would import would, written_call
from limelight_widgets.figures.differences import differences
from limelight_widgets.units import counted


def check(given: Namespace, cell: str | None) -> None:
    """Raises UsageError where flags of the line magic stand on a cell, or the other way round."""
    positive(given.expect, "%%trace_cache --expect", least=0)
    positive(given.max, "%%trace_cache --max", least=0)
    for_cells = [flag for flag in ("expect", "max") if getattr(given, flag) is not None]
    for_lines = [flag for flag in ("why", "would", "diff", "clear") if getattr(given, flag) not in (None, False)]
    if len(questions := [flag for flag in for_lines if flag != "clear"]) > 1:
        raise UsageError(f"%trace_cache: {' and '.join(f'--{flag}' for flag in questions)}: ask one at a time")
    if cell is None and for_cells:
        raise UsageError(f"%trace_cache: --{for_cells[0]} counts the traces of a cell; write %%trace_cache above one")
    if cell is not None and for_lines:
        raise UsageError(f"%%trace_cache: --{for_lines[0]} asks about no cell; write %trace_cache on a line of its own")


def shows_all(given: Namespace) -> bool:
    """Whether nothing is asked about one function."""
    return not (given.why or given.clear or given.diff) and given.would is None


def function(session: Session, given: Namespace) -> Any:
    """The function that the line is about, None where there is none or a call names it."""
    return None if given.would is not None and given.name is None else session.function(given.name)


def answer(session: Session, asked: Any, given: Namespace, line: str) -> Any:
    """What is to be shown: None for the cache itself."""
    if given.would is not None:
        return PlainText(would(session, written_call(line), asked))
    if given.clear:
        count = len(asked.trace_cache) + sum(len(one.trace_cache) for one in asked.instances)
        asked.clear_cache()
        if not given.diff and not given.why:
            return PlainText(_forgotten(asked.name, count))
    if given.diff:
        found = differences(asked, *(position(asked, number, "%trace_cache --diff") for number in given.diff))
        return PlainText(found) if given.text else found
    return PlainText(Retraces(explain.retrace(asked), isinstance(asked, StagedCell))) if given.why else None


def _forgotten(name: str, count: int) -> str:
    if not count:
        return f"{name} has no traces to forget."
    return f"{name} has forgotten {counted(count, 'trace')}: its next call traces."


def expecting(session: Session, given: Namespace, line: str, cell: str) -> tuple[Any, Traces]:
    """Runs a cell; its value and the traces that it made, if they are as expected."""
    __tracebackhide__ = True
    named = given.name
    if named is not None and named.partition(".")[0] in session.shell.user_ns:
        session.function(named)  # before the cell runs, if it can be known
    value, traces = run_and_count(session.shell, line, cell, lambda: None if named is None else session.function(named))
    traces.check(given.expect, given.max, "" if named is None else f"of {named}")
    return value, traces

"""Runs a staged cell for the notebook: traces, runs, writes back, and says what happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from limelight.errors import LimelightError, StateCreationError, SymbolicValueError
from limelight.staging import partial_trace
from limelight_kernel.explain.retrace_fixes import worded_for_cell, worded_for_line
from limelight_kernel.explain.side_effects import lines_run
from limelight_kernel.line.options import Options, Shown
from limelight_kernel.report.gradients import Gradients, Recording, check_sources
from limelight_kernel.report.headline import headline
from limelight_kernel.report.result import StageResult
from limelight_kernel.report.surprises import StrictError, check_strict
from limelight_kernel.report.timing import Times, measure
from limelight_kernel.run.bindings import check_bindings
from limelight_kernel.staged.execution import Run
from limelight_kernel.staged.session import Session
from limelight_kernel.staged.staged_cell import StagedCell
from limelight_kernel.tracebacks import runs_cells, trim

runs_cells(__file__)

NOTHING = Shown()


def run_cell(
    session: Session,
    text: str,
    line: str,
    options: Options,
    run: bool = True,
    output: str | None = None,
    shown: Shown = NOTHING,
) -> StageResult:
    """Stages the body of a notebook cell, and runs it on the notebook's values.

    The names that it assigns are written back, and `options.name` is bound to the staged cell, once all has gone well;
    until then the notebook is as it was. Errors show the user's frames only.

    Args:
        session: keeps the staged cells of the shell.
        text: the body of the cell.
        line: what stands on the line of the magic.
        options: what that line asks for.
        run: false to trace alone.
        output: the name that the result will be kept under, None for none.
        shown: what is wanted besides the annotated lines.

    Raises:
        UsageError: a name to bind is in use, or the cell reads nothing of a name to differentiate by.
    """
    staged = None
    try:
        staged, known = session.cell(text, line, options)
        check_bindings(staged, output, session.shell.user_ns)
        check_sources(staged, shown.wrt)
        if shown.force and len(staged.trace_cache):
            staged.clear_cache()
        done, recording = _run(staged, run, shown)
    except BaseException as error:
        session.raised = staged
        if staged is not None and partial_trace.of(staged.id) is not None:
            session.note_failure(staged)
        if isinstance(error, StateCreationError):
            error.args = (worded_for_cell(str(error)),)
        if (
            isinstance(error, SymbolicValueError)
            and staged is not None
            and f"the graph of {staged.name!r}" in str(error)
        ):
            error.args = (worded_for_line(str(error), options),)
        if session.failed is not None and session.failed is staged:
            partial_trace.reword(staged.id, error)
        trim(session.shell, error, None if staged is None else staged.cell.filename)
        raise
    finally:
        if staged is not None and len(staged.trace_cache):
            session.keep(text, options, staged)
    times = measure(staged, done.entry, run) if shown.time else None  # before the notebook's names change
    _write_back(session, staged, done)
    gradients = _gradients(recording, done, session.shell.user_ns) if recording is not None else None
    return _result(staged, done, known and not shown.force, shown, times, gradients)


def _gradients(recording: Recording, done: Run, scope: Mapping[str, Any]) -> Gradients:
    """The gradients; the cell has run, so that one which cannot be computed is no error of the cell's."""
    try:
        return recording.finish(done, scope)
    except LimelightError as error:
        return Gradients(f"No gradient: {error}")


def _run(staged: StagedCell, run: bool, shown: Shown) -> tuple[Run, Recording | None]:
    __tracebackhide__ = True
    traced = _strictly(staged) if staged.options.strict else None
    if not (shown.grad and run):
        done, recording = staged.call({}, run), None
    else:
        recording = Recording(staged, shown.wrt)
        with recording.running():
            done = staged.call(recording.overrides, changed=recording.values)
    if traced is not None:
        done = replace(done, hit=False, seconds=traced.seconds + done.seconds)
    return done, recording


def _strictly(staged: StagedCell) -> Run | None:
    """Traces, if that is to be done, and looks at the trace before it runs; None where there was a trace.

    A trace that is objected to is forgotten.
    """
    __tracebackhide__ = True
    with lines_run(staged.cell.filename) as ran:
        traced = staged.call({}, run=False)
    if traced.hit:
        return None
    staged.uncounted = traced.entry
    try:
        check_strict(staged, traced.entry, None if staged.options.autograph else ran)
    except StrictError:
        staged.clear_cache()
        raise
    return traced


def _write_back(session: Session, staged: StagedCell, done: Run) -> None:
    shell = session.shell
    if done.made is not None:
        shell.push(done.made.assigned)
        for name in done.made.deleted:
            shell.user_ns.pop(name, None)
    if staged.options.name is not None:
        shell.push({staged.options.name: staged})


def _result(
    staged: StagedCell, done: Run, known: bool, shown: Shown, times: Times | None, gradients: Gradients | None
) -> StageResult:
    made = done.made
    if shown.grad and gradients is None:
        gradients = Gradients("No gradient: the cell did not run.")
    return StageResult(
        name=staged.name,
        headline=headline(staged, done, known),
        hit=done.hit,
        ran=made is not None,
        outputs={} if made is None else made.assigned,
        result=None if made is None else made.result,
        seconds=done.seconds,
        entry=done.entry,
        staged=staged,
        parts=shown.annotate,
        times=times,
        gradients=gradients,
    )

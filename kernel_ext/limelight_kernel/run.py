"""Runs a staged cell for the notebook: traces, runs, writes back, and says what happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from limelight.errors import LimelightError, StateCreationError, SymbolicValueError
from limelight_kernel.advice import for_cell, for_line
from limelight_kernel.binding import check_bindings
from limelight_kernel.effects import lines_run
from limelight_kernel.grad import Gradients, Recording
from limelight_kernel.options import Options, Shown
from limelight_kernel.result import StageResult
from limelight_kernel.session import Session
from limelight_kernel.staged import Run, StagedCell
from limelight_kernel.surprises import StrictError, check_strict
from limelight_kernel.times import Times, measure
from limelight_kernel.tracebacks import trim
from limelight_widgets.figures.static import Table, text_table
from limelight_widgets.units import counted, seconds_text

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
    """Stages `text`, the body of a notebook cell, and runs it on the notebook's values.

    The names that it assigns are written back, and `options.name` is bound to the staged cell, once all has gone well;
    until then the notebook is as it was. `output` is the name that the result will be kept under, None for none;
    `shown` is what is wanted besides. Errors show the user's frames only. Raises UsageError where a name to bind is in
    use.
    """
    staged = None
    try:
        staged, known = session.cell(text, line, options)
        check_bindings(staged, output, session.shell.user_ns)
        if shown.force and len(staged.trace_cache):
            staged.clear_cache()
        done, recording = _run(staged, run, shown)
    except BaseException as error:
        if isinstance(error, StateCreationError):
            error.args = (for_cell(str(error)),)
        if (
            isinstance(error, SymbolicValueError)
            and staged is not None
            and f"the graph of {staged.name!r}" in str(error)
        ):
            error.args = (for_line(str(error), options),)
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
        recording = Recording(staged)
        with recording.running():
            done = staged.call(recording.overrides)
    if traced is not None:
        done = replace(done, hit=False, seconds=traced.seconds + done.seconds)
    return done, recording


def _strictly(staged: StagedCell) -> Run | None:
    """Traces, if that is to be done, and looks at the trace before it runs; None where there was a trace."""
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


def as_it_was(staged: StagedCell, parts: tuple[str, ...] = ()) -> StageResult | None:
    """The newest trace of a staged cell, line by line, without running anything; None where there is none."""
    if not len(staged.trace_cache):
        return None
    entry = staged.trace_cache[-1]
    uses = counted(entry.hits + 1, "time")
    head = f"{staged.name}: trace #{entry.index + 1}, the newest of {len(staged.trace_cache)} (used {uses})"
    return StageResult(staged.name, head, True, False, {}, None, 0.0, entry, staged, parts)


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

"""`%trace_cache` shows the traces of a function and answers about them; `%%trace_cache` counts those of a cell."""

from __future__ import annotations

from argparse import REMAINDER, Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

import limelight_widgets as views
from limelight import explain
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument, positive
from limelight_kernel.line.completion import Names
from limelight_kernel.magics.call_on_line import answer_about_call, called, prediction, written_call
from limelight_kernel.magics.magic import NO_FUNCTION, Cards, LimelightMagic, PlainText
from limelight_kernel.magics.retraces import Retraces
from limelight_kernel.run.expected_traces import Traces, run_and_count
from limelight_kernel.staged.session import Session, position, refuse_loaded
from limelight_kernel.staged.staged_cell import StagedCell
from limelight_widgets.figures.trace_diff import differences
from limelight_widgets.folds.trace_cache import SORTS, Sort
from limelight_widgets.format import counted


@magics_class
class TraceCacheMagic(LimelightMagic):
    """`%trace_cache` and `%%trace_cache`."""

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="a staged function; default: all that are alive")
    @argument(
        "--why",
        metavar="N",
        nargs="?",
        default=False,
        const=True,
        help="say why it was traced, each time or for trace #N",
    )
    @argument(
        "--would", nargs=REMAINDER, metavar="CALL", help="say whether this call would hit or miss; the rest of the line"
    )
    @argument(
        "--gain", nargs=REMAINDER, metavar="CALL", help="measure what the executor of this call gains over the plan"
    )
    @argument("--diff", nargs=2, type=int, metavar=("I", "J"), help="what distinguishes traces #I and #J")
    @argument(
        "--sort",
        choices=SORTS,
        help="the order of traces, or of causes with --why: by the time of tracing (cost), by calls or traces (count), "
        "or as they came (time)",
    )
    @argument("--all", action="store_true", help="with functions that the library has staged")
    @argument("--clear", action="store_true", help="forget its traces")
    @argument("--expect", type=int, metavar="N", help="as %%%%trace_cache: the cell must make exactly so many traces")
    @argument("--max", type=int, metavar="N", help="as %%%%trace_cache: the cell may make so many traces at most")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @no_var_expand
    @line_cell_magic
    def trace_cache(self, line: str, cell: str | None = None) -> Any:
        """Show the traces of a staged function: for what arguments, how often used, and why there is more than one.

            %trace_cache double --why
            %trace_cache double --why 1
            %trace_cache --sort cost
            %trace_cache --would double(x=x[:1])
            %trace_cache --gain double(x=x)

        --diff 1 2 shows what distinguishes traces #1 and #2: their signatures, and the nodes of their graphs.
        As %%trace_cache it runs a cell, reports the traces that it makes, and fails where they are too many:

            %%trace_cache double --max 1
            double(x=x + 1)

        Sizes: that of a trace is what it keeps alive, the constants of its graph and tensors that it has found outside.

        From Python: limelight_widgets.trace_cache(double), limelight.explain.retrace(double), double.explain(x=x[:1]),
        limelight.explain.gain(double, x=x)
        """
        given = arguments.parse(self.trace_cache, line, cell)
        _take_name(given)
        _check(given, cell)
        if cell is not None:
            value, traces = _run_expecting(self.session, given, line, cell)
            self._display(given, PlainText(traces))
            return value
        sort: Sort = given.sort or "time"
        if given.name is None and _shows_all(given):
            return self._show(given, views.trace_cache(sort=sort, internals=given.all))
        if given.all:
            raise UsageError("%trace_cache --all: it is about all functions; write no NAME and no question")
        function = _function(self.session, given)
        if function is None and given.would is given.gain is None:
            return self._nothing(given, NO_FUNCTION)
        answer = _answer(self.session, function, given, line)
        if answer is None:
            return self._show(given, views.trace_cache(function, sort=sort))
        return self._answered(given, answer)

    def names(self) -> Iterable[str]:
        return self.session.function_names()

    def flag_values(self) -> Mapping[str, Names]:
        return {"--would": self.session.function_names, "--gain": self.session.function_names}


def _take_name(given: Namespace) -> None:
    """The word after `--why` is its number, or else NAME; raises UsageError where it can be neither."""
    if isinstance(given.why, str):
        if given.why.removeprefix("#").isdecimal():
            given.why = int(given.why.removeprefix("#"))
        elif given.name is None:
            given.why, given.name = True, given.why
        else:
            raise UsageError(f"%trace_cache --why: {given.why!r} is no number of a trace; NAME goes first")


def _check(given: Namespace, cell: str | None) -> None:
    """Raises UsageError where flags of the line magic stand on a cell, or the other way round."""
    positive(given.expect, "%%trace_cache --expect", least=0)
    positive(given.max, "%%trace_cache --max", least=0)
    for_cells = [flag for flag in ("expect", "max") if getattr(given, flag) is not None]
    for_lines = [
        flag
        for flag in ("why", "would", "gain", "diff", "clear", "sort", "all")
        if getattr(given, flag) not in (None, False)
    ]
    if len(questions := [flag for flag in for_lines if flag in ("why", "would", "gain", "diff")]) > 1:
        raise UsageError(f"%trace_cache: {' and '.join(f'--{flag}' for flag in questions)}: ask one at a time")
    if cell is None and for_cells:
        raise UsageError(f"%trace_cache: --{for_cells[0]} counts the traces of a cell; write %%trace_cache above one")
    if cell is not None and for_lines:
        raise UsageError(f"%%trace_cache: --{for_lines[0]} asks about no cell; write %trace_cache on a line of its own")


def _shows_all(given: Namespace) -> bool:
    """Whether nothing is asked about one function."""
    return given.why is False and not (given.clear or given.diff) and given.would is given.gain is None


def _function(session: Session, given: Namespace) -> Any:
    """The function that the line is about, None where there is none or a call names it."""
    asks_about_call = given.would is not None or given.gain is not None
    return None if asks_about_call and given.name is None else session.function(given.name)


def _answer(session: Session, asked: Any, given: Namespace, line: str) -> Any:
    """What is to be shown: None for the cache itself."""
    if given.would is not None:
        text = written_call(line)
        return Cards(prediction(session, text, asked), called(session, text))
    if given.gain is not None:
        text = written_call(line, "--gain")
        return PlainText(str(answer_about_call(session, text, explain.gain, "%trace_cache --gain")))
    for flag in ("clear", "why"):
        if getattr(given, flag) is not False:
            refuse_loaded(asked, f"%trace_cache --{flag}")
    if given.clear:
        count = len(asked.trace_cache) + sum(len(one.trace_cache) for one in asked.instances)
        asked.clear_cache()
        if not given.diff and given.why is False:
            return PlainText(_forgotten(asked.name, count))
    if given.diff:
        difference = differences(asked, *(position(asked, number, "%trace_cache --diff") for number in given.diff))
        return Cards(difference, asked)
    if given.why is False:
        return None
    retrace = explain.retrace(asked)
    retrace = retrace if given.why is True else _of_trace(retrace, given.why)
    return Cards(Retraces(retrace, isinstance(asked, StagedCell), given.sort or "cost"), asked)


def _of_trace(retrace: Any, number: int) -> Any:
    """Why trace #`number` was made alone; raises UsageError where that is not known."""
    records = tuple([one for one in retrace.records if one.number == number])
    if not records:
        known = _ranges([one.number for one in retrace.records]) or "none yet: call it first"
        raise UsageError(
            f"%trace_cache --why {number}: why {retrace.function} made trace #{number} is not known; it is of {known}"
        )
    return replace(retrace, records=records, unseen=())


def _forgotten(name: str, count: int) -> str:
    if not count:
        return f"{name} has no traces to forget."
    return f"{name} has forgotten {counted(count, 'trace')}: its next call traces."


def _run_expecting(session: Session, given: Namespace, line: str, cell: str) -> tuple[Any, Traces]:
    """Runs a cell; its value and the traces that it made, if they are as expected."""
    __tracebackhide__ = True
    named = given.name
    if named is not None and named.partition(".")[0] in session.shell.user_ns:
        session.function(named)  # before the cell runs, if it can be known
    value, traces = run_and_count(session.shell, line, cell, lambda: None if named is None else session.function(named))
    traces.check(given.expect, given.max, "" if named is None else f"of {named}")
    return value, traces


def _ranges(numbers: Sequence[int]) -> str:
    """Traces by number, those in a row in short: "#1 to #4, #7"."""
    ordered = sorted(set(numbers))
    starts = [n for n in ordered if n - 1 not in ordered]
    ends = [n for n in ordered if n + 1 not in ordered]
    return ", ".join([f"#{a}" if a == b else f"#{a} to #{b}" for a, b in zip(starts, ends, strict=True)])

"""`%%stage --time`: what tracing, passes and planning took, what a cached call takes, and what Python takes instead."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from limelight import explain
from limelight.core.variable import Variable
from limelight.executors import base as executors
from limelight.explain.tracing.side_effects import not_known
from limelight.random import Generator
from limelight.user_code import source_line
from limelight_kernel.report.listing import wrapped
from limelight_kernel.staged.staged_cell import StagedCell
from limelight_widgets.figures.static_forms import Table, text_table
from limelight_widgets.format import counted, seconds_text

AT_MOST = 0.3  # seconds that the repeats of one kind may take in all, after the first three
REPEATS = 200
FEWEST = 3
ALIKE = 1.1  # a ratio of times that says nothing


@dataclass(frozen=True)
class Repeated:
    """Seconds of repeated calls: the shortest, the mean, and how many there were."""

    least: float
    mean: float
    repeats: int


@dataclass(frozen=True)
class Times:
    """What a staged cell costs, in seconds.

    A first call pays `tracing`, `passes` and `planning`; `cached` are calls that find their trace, `eager` runs of the
    same code by Python. These two are None where running the cell again could be noticed: `note` says why.
    """

    tracing: float
    passes: float
    planning: float
    cached: Repeated | None
    eager: Repeated | None
    note: str = ""

    def table(self) -> Table:
        rows = [
            ("first call", seconds_text(self.tracing + self.passes + self.planning), ""),
            ("· tracing", seconds_text(self.tracing), ""),
            ("· passes", seconds_text(self.passes), ""),
            ("· planning", seconds_text(self.planning), ""),
        ]
        rows += [_row("cached call", self.cached)] if self.cached else []
        rows += [_row("eager", self.eager)] if self.eager else []
        return Table(("what", "shortest", "mean"), rows, frozenset({"shortest", "mean"}), self._sentence())

    def text(self) -> str:
        table = self.table()
        return f"{text_table(replace(table, note=''))}\n{wrapped(table.note)}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _sentence(self) -> str:
        if self.cached is None or self.eager is None:
            return self.note
        words = _compared(self.eager.least / self.cached.least)
        by_mean = _compared(self.eager.mean / self.cached.mean)
        other = "" if by_mean.split()[-1] == words.split()[-1] else f", by the mean {by_mean}: the runs vary much"
        return f"By the shortest run a cached call is {words} as eager Python{other}. {self.note}".strip()


def _compared(ratio: float) -> str:
    """So many times as fast; what is within the noise of a measurement is alike."""
    if ALIKE > ratio > 1 / ALIKE:
        return "about as fast"
    return f"{ratio:.1f} times as fast" if ratio > 1 else f"{1 / ratio:.1f} times as slow"


def _row(name: str, times: Repeated) -> tuple[str, str, str]:
    return f"{name} ({counted(times.repeats, 'run')})", seconds_text(times.least), seconds_text(times.mean)


def measure(staged: StagedCell, entry: Any, run: bool = True) -> Times:
    """The times of a trace on the notebook's values; variables and generators are as before afterwards.

    Without `run` those of making it alone.

    A cell whose graph calls Python or writes files is not run again, nor one that would not find its trace; nor by
    Python, if its code does more than compute (as `explain.side_effects` tells).
    """
    optimised = entry.function.optimised
    passes = sum(record.seconds for record in optimised.records)
    start = time.perf_counter()
    executors.get(entry.tier).build(optimised.graph)
    planning = time.perf_counter() - start
    if not run:
        return Times(entry.trace_seconds, passes, planning, None, None, "Not run for its times: --no-run.")
    if "io" in entry.function.effects.chains:
        note = "Not run again for its times: the graph has effects beyond variables, such as ll.py_func."
        return Times(entry.trace_seconds, passes, planning, None, None, note)
    again = staged.explain()
    if not again:
        note = f"Not run again for its times, since that would not find this trace: {again}"
        return Times(entry.trace_seconds, passes, planning, None, None, note)
    with _kept(staged.tensors({}) + list(entry.captures)):
        cached = _repeated(staged.cached())
    effects = staged.all_effects()
    repeated = [one for one in effects.records if not _unnoticed(one)]
    if repeated:
        first, more = repeated[0], f", and {len(repeated) - 1} more" if len(repeated) > 1 else ""
        note = f"Eager Python is not timed, since runs would repeat `{first.what}`{source_line.at(first.line)}{more}."
        return Times(entry.trace_seconds, passes, planning, cached, None, note)
    if effects.unknown:
        note = f"Eager Python is not timed. {not_known('does', effects.unknown)[0]}"
        return Times(entry.trace_seconds, passes, planning, cached, None, note)
    with _kept(staged.tensors({}) + list(entry.captures)), contextlib.redirect_stdout(io.StringIO()):
        eager = _repeated(staged.eagerly())
    return Times(entry.trace_seconds, passes, planning, cached, eager)


def _unnoticed(effect: explain.SideEffect) -> bool:
    """Whether a side effect may happen again: what is printed is caught, and clocks do not mind."""
    return effect.kind == "time" or bool(effect.what == "print(...)")


def _repeated(run: Callable[[], object]) -> Repeated:
    seconds: list[float] = []
    while len(seconds) < FEWEST or (len(seconds) < REPEATS and sum(seconds) < AT_MOST):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return Repeated(min(seconds), sum(seconds) / len(seconds), len(seconds))


@contextlib.contextmanager
def _kept(values: list[Any]) -> Iterator[None]:
    """Puts variables and generators back to what they were."""
    variables = [(x, x.read_value()) for x in values if isinstance(x, Variable)]
    generators = [(x, x.state) for x in values if isinstance(x, Generator)]
    try:
        yield
    finally:
        for variable, value in variables:
            variable.assign(value)
        for generator, state in generators:
            generator.state = state

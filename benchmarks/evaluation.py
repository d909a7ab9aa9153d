"""The form of an evaluation: options, a table for each group of rows, bars, all numbers as JSON, and a plot as SVG."""

from __future__ import annotations

import argparse
import math
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import report
from measure import Library, Measured, Row, absent, fair_environment, installed, interleave

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "artefacts" / "benchmarks"
LOSS = Row("loss of the first step", "check", "losses[0]", figure=True, unit="")
"""The row that must be the same in all libraries: or they would not run the same program."""


class Evaluation(NamedTuple):
    """What a script measures, and how it shows that."""

    name: str  # of the script, and of the files that it writes
    libraries: Sequence[Library]
    rows: Sequence[Row]
    quick: Sequence[Row]  # what a quick run measures
    bars: Sequence[report.Bar] = ()
    rounds: int = 7
    minutes: float = 6  # after which it shows what there is
    sizes: Sequence[float] = ()  # which can be chosen among
    loss: float | None = None  # of the first step, of the first of `sizes`, where it is known
    module: str = ""  # which has LIBRARIES, where that is not the script's own
    tables: Callable[[Measured, Sequence[Library], Sequence[Row]], list[str]] | None = None  # else one for each group
    more: Callable[[Measured, Sequence[Library], Sequence[Row]], list[str]] = lambda *_: []  # what follows the tables
    draw: Callable[..., str] = report.curves


def options_of(evaluation: Evaluation, doc: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds and rows, no peer that compiles for long")
    parser.add_argument("--all", action="store_true", help="peers that compile for minutes, too")
    parser.add_argument("--rounds", type=int, help=f"how often each row is measured (default {evaluation.rounds})")
    parser.add_argument("--peers", help="comma-separated: some of autograd, jax, tensorflow, torch; empty for none")
    parser.add_argument("--only", default="", help="comma-separated: the libraries of these names")
    over = f"after which it shows what there is, and says what is missing (default {evaluation.minutes:g})"
    parser.add_argument("--minutes", type=float, default=evaluation.minutes, help=over)
    too_long = "for one row; a library that takes longer is left out from then on"
    parser.add_argument("--patience", type=float, default=math.inf, metavar="SECONDS", help=too_long)
    if evaluation.sizes:
        shown = ",".join(f"{size:g}" for size in evaluation.sizes)
        parser.add_argument("--sizes", default=shown, help=f"comma-separated: some of {shown}, measured in this order")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder for NAME.json and NAME.svg")
    return parser.parse_args()


def run(evaluation: Evaluation, doc: str) -> None:
    """Measures, and says what came of it; ends with status 1 where a library could not do a row."""
    options = options_of(evaluation, doc)
    fair_environment()
    libraries = _chosen(evaluation, options)
    rows = list(evaluation.quick) if options.quick else _sized(evaluation, options)
    facts = report.machine(name for library in libraries for name in (library.package, *library.needs))
    print(report.describe(facts))
    _say_what_is_missing(evaluation, libraries)
    rounds = options.rounds or (2 if options.quick else evaluation.rounds)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` ends it as Ctrl-C does
    measured = interleave(
        libraries,
        _by_size(rows),
        rounds,
        evaluation.module or evaluation.name,
        _say,
        60 * options.minutes,
        options.patience,
    )
    facts["load after"] = report.load()
    print(
        "",
        *(evaluation.tables or tables)(measured, libraries, rows),
        *evaluation.more(measured, libraries, rows),
        sep="\n",
    )
    verdicts = [report.verdict(bar, measured.wall) for bar in evaluation.bars]
    of_processors = [report.verdict(bar, measured.processor) for bar in evaluation.bars]
    print("\nBars, by the clock", *verdicts, "\nBars, by the processors' time", *of_processors, sep="\n")
    for (library, row), problem in measured.failed.items():
        print(f"{library} could not do {row}: {problem}")
    print(*_left_out(measured), sep="\n")
    print(f"load after: {facts['load after']}")
    options.out.mkdir(parents=True, exist_ok=True)
    report.save(options.out / f"{evaluation.name}.json", facts, measured, verdicts)
    print(evaluation.draw(options.out / f"{evaluation.name}.svg", measured.wall, libraries, rows))
    differing = _differing(measured, _known_loss(evaluation, rows))
    if differing:
        print(f"These libraries ran another program: {differing}")
    if measured.failed or differing:
        sys.exit(1)


def _sized(evaluation: Evaluation, options: argparse.Namespace) -> list[Row]:
    """The rows of the sizes that were asked for, in that order, and those of no size."""
    if not evaluation.sizes:
        return list(evaluation.rows)
    order = [float(size) for size in options.sizes.split(",")]
    unknown = [f"{size:g}" for size in order if size not in evaluation.sizes]
    if unknown:
        there = ", ".join(f"{size:g}" for size in evaluation.sizes)
        sys.exit(f"no such size: {', '.join(unknown)}; there are {there}")
    found = [row for row in evaluation.rows if not row.size or row.size in order]
    return sorted(found, key=lambda row: order.index(row.size) if row.size else len(order))


def _by_size(rows: Sequence[Row]) -> list[Row]:
    """All rows of a size, then those of the next: what there is when the time is over is complete for some sizes.

    The check of the losses, which takes no time, follows the first size.
    """
    sizes = list(dict.fromkeys(row.size for row in rows if row.size))
    found = sorted(rows, key=lambda row: sizes.index(row.size) if row.size else len(sizes))
    if LOSS in found and sizes:
        found.remove(LOSS)
        found.insert(sum(row.size == sizes[0] for row in found), LOSS)
    return found


def _left_out(measured: Measured) -> list[str]:
    """What nobody measured, a line for each reason and library."""
    by: dict[tuple[str, str], list[str]] = {}
    for (library, row), reason in measured.missing.items():
        by.setdefault((reason, library), []).append(row)
    return [f"Not measured, as {reason}: {library}: {', '.join(rows)}" for (reason, library), rows in by.items()]


def _chosen(evaluation: Evaluation, options: argparse.Namespace) -> list[Library]:
    patience = 0 if options.quick else 2 if options.all else 1
    libraries = [library for library in installed(options.peers, evaluation.libraries) if library.patience <= patience]
    return [library for library in libraries if not options.only or library.name in options.only.split(",")]


def _say_what_is_missing(evaluation: Evaluation, libraries: Sequence[Library]) -> None:
    missing = [library for library in evaluation.libraries if library not in libraries]
    not_there = sorted({name for library in missing for name in absent(library)})
    left = [library.name for library in missing]
    if not_there:
        print(f"not installed: {', '.join(not_there)}")
    if left:
        print(f"not measured: {', '.join(left)}")
    print("medians (least-most)", flush=True)


def _say(text: str) -> None:
    print(f"{text:70}", end="\r", file=sys.stderr, flush=True)


def tables(measured: Measured, libraries: Sequence[Library], rows: Sequence[Row]) -> list[str]:
    """One for each group; of what is measured more than once, one of the processors' time as well."""
    lines: list[str] = []
    for group in dict.fromkeys(row.group for row in rows):
        members = [row for row in rows if row.group == group]
        clock = "" if any(row.figure for row in members) else ", by the clock"
        lines += [f"{group}{clock}", *report.by_library(measured.wall, libraries, members), ""]
        if not any(row.once or row.figure for row in members):
            lines += [f"{group}, by the processors' time", *report.by_library(measured.processor, libraries, members)]
            lines.append("")
    return lines


def _known_loss(evaluation: Evaluation, rows: Sequence[Row]) -> float | None:
    """That of the first step, which is one of the first size that was measured."""
    first = next((row.size for row in rows if row.size), None)
    return evaluation.loss if not evaluation.sizes or first == evaluation.sizes[0] else None


def _differing(measured: Measured, expected: float | None) -> str:
    """The losses, where libraries do not agree on them."""
    losses = {library: values[0] for (library, row), values in measured.wall.items() if row == LOSS.name}
    if losses and expected is not None:
        losses["expected"] = expected
    if not losses or max(losses.values()) - min(losses.values()) <= 1e-3 * max(map(abs, losses.values())):
        return ""
    return ", ".join(f"{library} {value:.5g}" for library, value in losses.items())

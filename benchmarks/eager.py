"""Eager operations, tapes and small staged functions: limelight beside NumPy and its peers, in one run.

    python benchmarks/eager.py [--quick] [--peers jax,torch] [--plot FILE] [--json FILE]

Peers that are not installed are left out (the `bench` extra has them all; `make bench` sets it up). Each time is the
median of the rounds with the garbage collector at rest; each ratio is the median of the ratios of single rounds.
Recorded additions are 300 on a tape, with opening the tape and letting it go. First calls trace (and compile), once,
from nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence

import report
from measure import Library, Row, interleave
from report import Bar
from rows import LIBRARIES, ROWS

TINY = tuple(row.name for row in ROWS if row.group == "tiny")
LARGE = tuple(row.name for row in ROWS if row.group == "large")
CALLS = tuple(row.name for row in ROWS if row.group == "calls")
GRADIENT = tuple(row.name for row in ROWS if row.group == "gradient")

BARS = [
    Bar("a + b on 10 float32 costs at most 3 times NumPy's own call", ("add",), "numpy", 3.0),
    Bar("a + b with a tape recording costs at most 6 times NumPy's own call", ("add, recorded",), "numpy", 6.0),
]
AIMS = [
    Bar("every tiny op at most 3 times NumPy", TINY, "numpy", 3.0),
    Bar("every large op within 10 % of NumPy", LARGE, "numpy", 1.1),
    Bar("every op at least 4 times faster than TensorFlow", (*TINY, *GRADIENT), "tensorflow", 1 / 4),
    Bar("every op at least 2 times faster than JAX", (*TINY, *GRADIENT), "jax", 1 / 2),
    Bar("no slower than PyTorch on the mean of tiny ops", TINY, "torch", 1.0, mean=True),
    Bar("forward and gradient no slower than PyTorch", (GRADIENT[-1],), "torch", 1.0),
    Bar("a cached staged x + 1 no slower than JAX's", ("staged x + 1",), "jax", 1.0),
    Bar("cached calls with containers, keywords and numbers no slower than JAX's", CALLS, "jax", 1.0),
]


def installed(wanted: str | None, libraries: Sequence[Library] = LIBRARIES) -> list[Library]:
    """The libraries to measure; NumPy and limelight always."""
    names = None if wanted is None else {"numpy", "limelight", *filter(None, wanted.split(","))}
    unknown = (names or set()) - {"numpy"} - {library.package for library in libraries}
    if unknown:
        sys.exit(f"no such peer: {', '.join(sorted(unknown))}; there are autograd, jax, tensorflow and torch")
    chosen = [library for library in libraries if names is None or library.package in names]
    return [library for library in chosen if importlib.util.find_spec(library.package) is not None]


def chosen_rows(quick: bool) -> list[Row]:
    """All rows; the quick run leaves out large arrays and whatever compiles for long."""
    return [row for row in ROWS if not quick or row.group in ("tiny", "medium", "gradient", "staged", "calls")]


def without_compilers(libraries: Sequence[Library]) -> list[Library]:
    """The libraries without their staged rows where the first call takes many seconds."""
    slow = {"torch": ("staged", "calls")}
    return [library._replace(lacks=(*library.lacks, *slow.get(library.name, ()))) for library in libraries]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and rows: half a minute")
    parser.add_argument("--rounds", type=int, help="how often each row is measured (default 25, quick 5)")
    parser.add_argument("--peers", help="comma-separated: some of autograd, jax, tensorflow, torch; empty for none")
    parser.add_argument("--plot", metavar="FILE", help="draw the ratios to NumPy (png, svg, pdf)")
    parser.add_argument("--json", metavar="FILE", help="write all samples")
    options = parser.parse_args()
    libraries = installed(options.peers)
    rows = chosen_rows(options.quick)
    facts = report.machine(library.package for library in libraries)
    print(report.describe(facts), flush=True)
    samples, failed = interleave(
        without_compilers(libraries) if options.quick else libraries,
        rows,
        options.rounds or (5 if options.quick else 25),
        "rows",
        lambda text: print(text, end="\r", file=sys.stderr, flush=True),
    )
    print("", *report.times(samples, libraries, rows), sep="\n")
    print("", *report.speedups(samples, libraries, rows), sep="\n")
    verdicts = [report.verdict(bar, samples) for bar in BARS]
    print("\nBars", *verdicts, sep="\n")
    print("\nAims", *(report.verdict(bar, samples) for bar in AIMS), sep="\n")
    for (library, row), problem in failed.items():
        print(f"{library} could not do {row}: {problem}")
    if options.json:
        report.save(options.json, facts, samples, failed, verdicts)
    if options.plot:
        print(report.plot(options.plot, samples, libraries, rows) or f"wrote {options.plot}")


if __name__ == "__main__":
    main()

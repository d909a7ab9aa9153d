"""What staging promises, as bars: no slower than eager code, and nothing lost by a switch of tiers.

    OPENBLAS_NUM_THREADS=1 python benchmarks/promises.py [--quick] [--only staged,eager] [--out FOLDER]

A call: each program of `limelight_programs.py`, and the patterns of two or three ops of `loops_or_plan.py`, staged as a
user stages them (whatever tier that takes), beside the same Python run eagerly. 1,000 steps: runs of a function that is
new each time, which may be compiled in the background and change over, beside runs that stay (`jit_compile=False`),
with how many of the former changed over. The processors' time is that of the process: compiling takes place in another
one, which the clock shows where it has no core of its own. At most four minutes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import evaluation
import limelight_programs
import loops_or_plan
import report
from measure import Library, Measured, Row, ratio
from report import Bar

STEPS = 1_000
RUNS = (
    "x + 1 on 10 floats",
    "MLP step",
    "transformer step",
    "LSTM step, unrolled",
    "L2HMC step, 10 samples",
    "chain of 300 on 10 floats",
    "chain of 300 on 10,000",
    "wide MLP step",
)
"""Programs whose runs of 1,000 steps take milliseconds, seconds, and long enough to be compiled."""
PATTERNS = tuple(pattern.name for pattern in loops_or_plan.patterns())
WORST = 12
EAGER, STAGED, STAYING = "eager", "staged", "staying"


def _call(name: str) -> Row:
    group = "a pattern" if name in PATTERNS else "a call"
    return Row(name, group, "run()", setup=f"run = call({name!r})", unit="us")


def _run(name: str) -> Row:
    steps = Row(f"{STEPS:,} of {name}", f"{STEPS:,} steps", f"for _ in range({STEPS}): run()", unit="s", whole=True)
    return steps._replace(setup=f"run = new({name!r})")


CALLS = tuple(limelight_programs.PROGRAMS)
WORKLOADS = CALLS[1:]
"""All but a single op, which has nothing to stage: a call costs more than that, as its row shows."""
RUN_ROWS = [_run(name) for name in RUNS]
CHANGED = Row("runs that changed over", "changes", "changed()", figure=True, unit="")
ROWS = [*map(_call, CALLS), *map(_call, PATTERNS), *RUN_ROWS, CHANGED]
QUICK = [_run("MLP step"), *map(_call, CALLS[:1]), *map(_call, PATTERNS[:2]), CHANGED]
BARS = [
    Bar("staged no slower than eager, every workload", WORKLOADS, EAGER, 1.0, ours=STAGED),
    Bar("staged no slower than eager, the mean of patterns", PATTERNS, EAGER, 1.0, ours=STAGED, mean=True),
    Bar("staged at most 1.1 times eager, every pattern", PATTERNS, EAGER, 1.1, ours=STAGED),
    Bar(
        f"{STEPS:,} steps that may change over at most 1.05 times those that stay",
        tuple(row.name for row in RUN_ROWS),
        STAYING,
        1.05,
        ours=STAGED,
    ),
]


def _words(function: Callable[..., Any] | None = None, **options: Any) -> Mapping[str, Any]:
    """What rows may say, with `ll.function` replaced in this process, or given options."""
    import limelight as ll

    staged = function or functools.partial(ll.function, **options)
    traced: list[Any] = []

    def noted(body: Callable[..., Any]) -> Any:
        traced.append(staged(body))
        return traced[-1]

    ll.function = noted  # type: ignore[assignment]
    patterns = {pattern.name: pattern for pattern in loops_or_plan.patterns()}

    @functools.cache
    def call(name: str) -> Callable[[], Any]:
        if name not in patterns:
            return limelight_programs.PROGRAMS[name]()
        f = noted(patterns[name].function)
        return functools.partial(f, *patterns[name].arguments)

    def new(name: str) -> Callable[[], Any]:
        run = limelight_programs.PROGRAMS[name]()
        run()
        return run

    def changed() -> int:
        entries = [entry for f in traced for entry in getattr(f, "trace_cache", ())]
        return sum(entry.tier_progress.startswith("compiled: ") for entry in entries)

    return {"call": call, "new": new, "changed": changed}


LIBRARIES = [
    Library(EAGER, "limelight", lambda: _words(lambda body: body), lacks=(f"{STEPS:,} steps", "changes")),
    Library(STAGED, "limelight", _words),
    Library(STAYING, "limelight", lambda: _words(jit_compile=False), lacks=("a call", "a pattern", "changes")),
]


def tables(measured: Measured, libraries: Sequence[Library], rows: Sequence[Row]) -> list[str]:
    """Both times of the runs and the programs, with ratios; of the patterns those with the worst ratios."""
    lines: list[str] = []
    for group, other in ((f"{STEPS:,} steps", STAYING), ("a call", EAGER), ("a pattern", EAGER)):
        members = [row for row in rows if row.group == group]
        if group == "a pattern":
            members = sorted(members, key=lambda row: -(ratio(measured.processor, row.name, STAGED, other) or 0.0))[
                :WORST
            ]
        clocks = {"clock": measured.wall, "processors": measured.processor}
        head = [f"{group}, {members[0].unit}" if members else group]
        head += [f"{name}, {clock}" for clock in clocks for name in (STAGED, other, "ratio")]
        cells = [head]
        for row in members:
            cells.append([row.name])
            for samples in clocks.values():
                by = [Library(name, "limelight", dict) for name in (STAGED, other)]
                cells[-1] += [report.spread(samples, library, row) for library in by]
                against = ratio(samples, row.name, STAGED, other)
                cells[-1].append("-" if against is None else f"{against:.3f}")
        lines += [*report.aligned(cells), ""]
    changes = measured.wall.get((STAGED, CHANGED.name), [0.0])
    return [*lines, f"runs of {STEPS:,} steps and calls that changed over to another tier: {changes[-1]:.0f}"]


EVALUATION = evaluation.Evaluation(
    "promises", LIBRARIES, ROWS, QUICK, BARS, rounds=5, minutes=4, tables=tables, draw=lambda *_: "no plot"
)


if __name__ == "__main__":
    evaluation.run(EVALUATION, __doc__)

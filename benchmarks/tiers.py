"""The price of tiers: runs of 1,000 steps that may be compiled in the background, beside runs that stay on the plan.

    OPENBLAS_NUM_THREADS=1 python benchmarks/tiers.py [--steps 1000] [--rounds 7] [--at-once]

Prints for each program the processor time of a run on the plan alone and of one in tiers, and their ratio, the median
of runs in turn; and how far the function got. With `--at-once` the first step is followed by compiling, whatever that
costs: the wall time until it is compiled, and of a call before and after. Needs JAX (the extra `xla`).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from compiled import PROGRAMS, Program, ours
from measure import fair_environment


def seconds(call: Callable[[], Any], steps: int) -> float:
    begin = time.process_time()
    for _ in range(steps):
        call()
    return time.process_time() - begin


def compiled_at_once(name: str, program: Program, patience: float) -> None:
    """Compiles after the first step, and prints what came of it."""
    f, call = ours(program, jit_compile=None)
    call()
    entry = f.trace_cache[0]
    run = entry.function._built
    run._due = 0.0
    before = []
    begin = time.perf_counter()
    while not entry.tier_progress.startswith(("compiled: ", "kept")) and time.perf_counter() - begin < patience:
        start = time.perf_counter()
        call()
        before.append(time.perf_counter() - start)
    until = time.perf_counter() - begin
    after = []
    for _ in range(100):
        start = time.perf_counter()
        call()
        after.append(time.perf_counter() - start)
    times = [statistics.median(found) * 1e6 for found in (before, after)]
    print(f"{name:28}{until:8.1f} s{times[0]:11.1f} us{times[1]:11.1f} us   {entry.tier_progress}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds that compiling may last")
    arguments = parser.parse_args()
    fair_environment()
    for name, program in PROGRAMS.items():
        if arguments.at_once:
            compiled_at_once(name, program, arguments.patience)
            continue
        ratios, entry = [], None
        for _ in range(arguments.rounds):
            f, tiered = ours(program, jit_compile=None)
            _, plan = ours(program, jit_compile=False)
            plan(), tiered()
            alone = seconds(plan, arguments.steps)
            ratios.append(seconds(tiered, arguments.steps) / alone)
            entry = f.trace_cache[0]
        said = entry.tier_progress or "not long enough to compile"
        print(f"{name:28}{alone * 1e3:9.1f} ms{statistics.median(ratios):8.3f}   {said}", flush=True)


if __name__ == "__main__":
    main()

"""The executor `loops` beside `plan` and JAX: the same functions on all of them, in turn, in one process.

    OPENBLAS_NUM_THREADS=1 python benchmarks/loops.py [--seconds 1.0] [--only NAME] [--outside] [--peers ""]

Prints for each program the processor time of a call on both executors and their ratio (below 1: `loops` is faster);
where JAX is installed, that of the same program compiled by `jax.jit`, and the ratio of `loops` to it beside the one
that is aimed at. At the end stands what it takes to build a node of the largest graph on both. One thread, since the
time of all threads counts. Needs limelight-native (`pip install ./engine/native`). ResNet-50 is in `convolution.py`.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import statistics
import time
import timeit
from collections import Counter
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
if importlib.util.find_spec("jax") is not None:
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)  # before anybody uses it: see `jax_programs`

import limelight as ll
from limelight.executors import base
from limelight_programs import PROGRAMS, Program
from measure import fair_environment

SLICES = 15
AIMS = {
    "chain of 300 on 10 floats": 0.5,
    "L2HMC step, 10 samples": 0.12,
    "L2HMC step, 200 samples": 0.25,
    "MLP step": 0.8,
    "transformer step": 1.0,
    "LSTM step, unrolled": 0.8,
    "LSTM step, scan": 0.8,
    "N-body scan, 100 steps": 0.7,
    "neural ODE, 100 steps": 0.5,
}
"""The ratios to the best peer that are aimed at."""


def made_on(executor: str, make: Program) -> Callable[[], Any]:
    """The program, traced for an executor."""
    with base.chosen.override(executor):
        run = make()
        run()
    return run


def seconds(run: Callable[[], Any], calls: int = 1) -> float:
    """Processor time of a call."""
    return timeit.timeit(run, timer=time.process_time, number=calls) / calls


def compared(runs: dict[str, Callable[[], Any]], budget: float) -> dict[str, float]:
    """The median of the processor times of a call of each, measured in turn."""
    calls = {name: max(1, int(budget / SLICES / max(seconds(run, 3), 1e-7))) for name, run in runs.items()}
    times = [[seconds(run, calls[name]) for name, run in runs.items()] for _ in range(SLICES)]
    return {name: statistics.median(column) for name, column in zip(runs, zip(*times, strict=True), strict=True)}


def peers_of(name: str, wanted: str | None) -> dict[str, Callable[[], Any]]:
    """The program in each library that is installed and wanted, of those that have it."""
    if importlib.util.find_spec("jax") is None or (wanted is not None and "jax" not in wanted):
        return {}
    import jax_programs

    return {"jax": jax_programs.PROGRAMS[name]()} if name in jax_programs.PROGRAMS else {}


def line(name: str, found: dict[str, float]) -> str:
    """The times of a program, the ratio of the executors, and that to the best peer."""
    times = "  ".join([f"{who} {value * 1e6:10.1f} us" for who, value in found.items()])
    own = f"loops/plan {found['loops'] / found['plan']:5.2f}"
    peers = [value for who, value in found.items() if who not in ("plan", "loops")]
    aim = f" (aim {AIMS[name]})" if name in AIMS else ""
    best = f"  loops/best peer {found['loops'] / min(peers):5.2f}{aim}" if peers else ""
    return f"{name:28} {times}  {own}{best}"


def graph_of(make: Program) -> Any:
    """The optimised graph of the program's function."""
    traced: list[Any] = []
    function = ll.function

    def noted(body: Any) -> Any:
        traced.append(function(body))
        return traced[-1]

    ll.function = noted  # type: ignore[assignment]
    try:
        made_on("loops", make)
    finally:
        ll.function = function
    return traced[-1].trace_cache[0].optimised


def outside(make: Program) -> list[str]:
    """What of a program's graph runs in no table, most frequent first."""
    lines = base.get("loops").code(graph_of(make))
    reasons = Counter(
        f"{node.op}: {line.partition('# plan: ')[2]}" for node, line in lines if not line.startswith("table ")
    )
    tables = {line.partition(":")[0] for _, line in lines if line.startswith("table ")}
    return [f"{len(lines)} nodes, {len(tables)} tables", *[f"{n} {reason}" for reason, n in reasons.most_common()]]


def built(make: Program) -> tuple[int, list[float]]:
    """The nodes of a program's graph, and the microseconds a node that plan and loops take to build it."""
    graph = graph_of(make)
    times: list[list[float]] = [[], []]
    for _ in range(5):
        for executor, column in zip(("plan", "loops"), times, strict=True):
            build = functools.partial(base.get(executor).build, graph)
            column.append(seconds(build) / len(graph.nodes) * 1e6)
    return len(graph.nodes), [statistics.median(column) for column in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each program and executor")
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    parser.add_argument("--outside", action="store_true", help="say instead what of each program runs in no table")
    parser.add_argument("--peers", help="comma-separated: jax; empty for none; by default all that are installed")
    arguments = parser.parse_args()
    fair_environment()
    print(f"processor time, one process; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, make in PROGRAMS.items():
        if arguments.only in name and arguments.outside:
            print(f"{name}:", *outside(make), sep="\n    ", flush=True)
        elif arguments.only in name:
            ours = {executor: made_on(executor, make) for executor in ("plan", "loops")}
            print(line(name, compared(ours | peers_of(name, arguments.peers), arguments.seconds)), flush=True)
    if arguments.outside:
        return
    nodes, (plan, loops) = built(PROGRAMS["L2HMC step, 10 samples"])
    print(f"building {nodes} nodes: plan {plan:.1f} us a node, loops {loops:.1f}")


if __name__ == "__main__":
    main()

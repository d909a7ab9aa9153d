"""What staging costs: cached calls with arguments of all kinds, and first calls by the size of the graph.

    python benchmarks/staging.py [--quick] [--peers jax,torch] [--out FOLDER]

A first call traces, builds or compiles, and runs, from nothing, once; chains are elementwise operations on 10 floats.
Peers that are not installed are left out. limelight is there with each of its executors; calls with Python's own
containers are measured on the default one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import evaluation
import report
import rows
from measure import Library, Measured, Row
from report import Bar

CALLS = tuple(row.name for row in rows.ROWS if row.group == "calls")
FIRST = tuple(row.name for row in rows.ROWS if row.group == "first call")
CHAINS = tuple(row.name for row in rows.ROWS if row.size and row.group == "staged")
BARS = [
    Bar("a cached staged x + 1 no slower than JAX's", ("staged x + 1",), "jax", 1.0),
    Bar("cached calls with containers, keywords and numbers no slower than JAX's", CALLS, "jax", 1.0),
    *[Bar(f"first calls 5 times quicker than with {peer}", FIRST, peer, 1 / 5) for peer in ("jax", "tensorflow")],
    Bar("a staged chain no slower than JAX's", CHAINS, "jax", 1.0),
]
OWN = [
    Library(f"limelight {executor}", "limelight", functools.partial(rows.limelight_on, executor), needs=needs)
    for executor, needs in (("plan", ()), ("loops", ("limelight_native",)), ("xla", ("jax",)))
]
LIBRARIES = [library._replace(beside="", lacks=(*library.lacks, "calls")) for library in OWN]
LIBRARIES += [library for library in rows.LIBRARIES if library.package not in ("numpy", "autograd")]
LIBRARIES = [x._replace(patience=1) if x.name in ("torch", "limelight xla") else x for x in LIBRARIES]
STAGED = [row for row in rows.ROWS if row.group in rows.STAGED]
QUICK = [row for row in STAGED if row.size <= rows.CHAINS[0]]


def tables(measured: Measured, libraries: Sequence[Library], chosen: Sequence[Row]) -> list[str]:
    """Times, and ratios of them."""
    return [*report.times(measured.wall, libraries, chosen), "", *report.speedups(measured.wall, libraries, chosen)]


EVALUATION = evaluation.Evaluation("staging", LIBRARIES, STAGED, QUICK, BARS, rounds=11, minutes=5, tables=tables)


if __name__ == "__main__":
    evaluation.run(EVALUATION, __doc__)

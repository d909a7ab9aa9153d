"""Eager operations and tapes: limelight beside NumPy and its peers, in one run.

    python benchmarks/eager.py [--quick] [--peers jax,torch] [--out FOLDER]

Peers that are not installed are left out (the `bench` extra has them all; `make bench` sets it up). Each time is the
median of the rounds with the garbage collector at rest; each ratio is the median of the ratios of single rounds.
Recorded additions are 300 on a tape, with opening the tape and letting it go. `staging.py` has staged functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import evaluation
import report
from measure import Library, Measured, Row
from report import Bar
from rows import EAGER, LIBRARIES, ROWS

TINY = tuple(row.name for row in ROWS if row.group == "tiny")
LARGE = tuple(row.name for row in ROWS if row.group == "large")
GRADIENT = tuple(row.name for row in ROWS if row.group == "gradient")

BARS = [
    Bar("a + b on 10 float32 costs at most 3 times NumPy's own call", ("add",), "numpy", 3.0),
    Bar("a + b with a tape recording costs at most 6 times NumPy's own call", ("add, recorded",), "numpy", 6.0),
    Bar("every tiny op at most 3 times NumPy", TINY, "numpy", 3.0),
    Bar("every large op within 10 % of NumPy", LARGE, "numpy", 1.1),
    Bar("every op at least 4 times faster than TensorFlow", (*TINY, *GRADIENT), "tensorflow", 1 / 4),
    Bar("every op at least 2 times faster than JAX", (*TINY, *GRADIENT), "jax", 1 / 2),
    Bar("no slower than PyTorch on the mean of tiny ops", TINY, "torch", 1.0, mean=True),
    Bar("forward and gradient no slower than PyTorch", (GRADIENT[-1],), "torch", 1.0),
]


def tables(measured: Measured, libraries: Sequence[Library], rows: Sequence[Row]) -> list[str]:
    """Times, and ratios of them."""
    return [*report.times(measured.wall, libraries, rows), "", *report.speedups(measured.wall, libraries, rows)]


EAGER_ROWS = [row for row in ROWS if row.group in EAGER]
QUICK = [row for row in EAGER_ROWS if not row.group.startswith("large")]
EVALUATION = evaluation.Evaluation(
    "eager", LIBRARIES, EAGER_ROWS, QUICK, BARS, rounds=25, minutes=4, module="rows", tables=tables, draw=report.dots
)


if __name__ == "__main__":
    evaluation.run(EVALUATION, __doc__)

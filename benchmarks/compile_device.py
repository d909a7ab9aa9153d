"""ResNet-50 on a device that only compiles: op by op, and staged (the paper's Table 1).

    python benchmarks/compile_device.py [--quick] [--sizes 1,4] [--peers jax] [--out FOLDER]

The device is XLA:0, a TPU or GPU where JAX has one and its CPU client elsewhere. Op by op, each op is a program of its
own, compiled where it is met first; staged, the step is one program. JAX without and with `jit` is beside it. The last
table is by the paper's rules: runs of ten steps from nothing, in which building a staged step does not count.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import evaluation
import report
import resnet50
import training
from measure import Library, Measured, Row, typical
from report import Bar

STEPS_OF_A_RUN = 10
SIZES = resnet50.SIZES
STEPS = [resnet50.row(size) for size in SIZES]
ROWS = [*map(resnet50.first, STEPS), *STEPS, evaluation.LOSS]
BARS = [Bar("staged at least 10 times as fast", tuple(row.name for row in STEPS), "op by op", 1 / 10, ours="staged")]


def _ours(stage: bool) -> Mapping[str, Any]:
    return training.limelight(resnet50.TASK, "xla" if stage else "", stage=stage, device="XLA:0")


LIBRARIES = [
    Library("op by op", "limelight", functools.partial(_ours, False), needs=("jax",)),
    Library("staged", "limelight", functools.partial(_ours, True), needs=("jax",)),
    Library("jax op by op", "jax", lambda: training.jax(resnet50.TASK, stage=False)),
    Library("jax jit", "jax", lambda: training.jax(resnet50.TASK)),
]


def runs(measured: Measured, libraries: Sequence[Library], rows: Sequence[Row]) -> list[str]:
    """Examples a second of ten steps: all of them op by op, after the first one where it is staged."""
    steps = [row for row in rows if row.group == "steady state"]
    lines = [["examples/s of ten steps", *[row.name for row in steps]]]
    for library in libraries:
        cells = []
        for row in steps:
            first = typical(measured.wall, library.name, f"first call, {row.name}")
            steady = typical(measured.wall, library.name, row.name)
            if first is None or steady is None:
                cells.append("-")
                continue
            begin = first if "op by op" in library.name else steady
            cells.append(f"{row.size * STEPS_OF_A_RUN / (begin + (STEPS_OF_A_RUN - 1) * steady):.4g}")
        lines.append([library.name, *cells])
    return report.aligned(lines)


EVALUATION = evaluation.Evaluation(
    "compile_device", LIBRARIES, ROWS, resnet50.QUICK, BARS, rounds=3, sizes=SIZES, more=runs
)


if __name__ == "__main__":
    evaluation.run(EVALUATION, __doc__)

"""The most memory that a training step of ResNet-50 takes: on a tape, staged, and in other libraries.

    python benchmarks/memory.py [--quick] [--sizes 1,4] [--peers torch] [--out FOLDER]

What the process has at most while it runs the third step of a shape, above what it had before the first one, so that
parameters, data and programs do not count, while buffers kept for the next step do. By Linux's own count (VmHWM), each
library in a process of its own.
"""

from __future__ import annotations

import evaluation
import resnet50
from measure import Row
from report import Bar

SIZES = (1, 2, 4, 8)


def _row(size: int, pixels: int = resnet50.PIXELS) -> Row:
    step = resnet50.row(size, pixels)
    small = f"small = batch(1, {resnet50.SMALL})"
    return step._replace(
        group="most memory", code="peak(data, small)", setup=f"{step.setup}; {small}", unit="MB", figure=True
    )


ROWS = [_row(size) for size in SIZES]
NAMES = tuple(row.name for row in ROWS)
BARS = [
    Bar("staged takes no more than a tape", NAMES, "limelight", 1.0, ours="limelight loops"),
    Bar("staged takes no more than PyTorch", NAMES, "torch", 1.0, ours="limelight loops"),
]
LIBRARIES = resnet50.LIBRARIES
EVALUATION = evaluation.Evaluation(
    "memory", LIBRARIES, ROWS, [_row(2, resnet50.SMALL)], BARS, rounds=1, minutes=4, sizes=SIZES
)


if __name__ == "__main__":
    evaluation.run(EVALUATION, __doc__)

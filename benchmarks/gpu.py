"""One training step of ResNet-50 on a GPU: not staged, staged, and compiled (the paper's Figure 3).

    python benchmarks/gpu.py [--quick] [--sizes 1,32] [--peers jax,torch] [--out FOLDER]

The program of `resnet50.py`. On GPU:0 limelight computes with CuPy, op by op or as a plan; on XLA:0, which is the GPU
where JAX has one, a staged step is one compiled program. Peers compute products and convolutions of float32 as they do
by default: JAX and PyTorch's convolutions in TF32. Needs the extra `cuda`.
"""

from __future__ import annotations

import functools

import evaluation
import training
from measure import Library
from report import Bar
from resnet50 import NAMES, QUICK, ROWS, SIZES, TASK

EAGER = ("first call",)
LIBRARIES = [
    Library(
        "limelight", "limelight", functools.partial(training.limelight, TASK, stage=False, device="GPU:0"), lacks=EAGER
    ),
    Library("limelight plan", "limelight", functools.partial(training.limelight, TASK, "plan", device="GPU:0")),
    Library(
        "limelight xla", "limelight", functools.partial(training.limelight, TASK, "xla", device="XLA:0"), needs=("jax",)
    ),
    Library("jax", "jax", functools.partial(training.jax, TASK)),
    Library("torch", "torch", functools.partial(training.torch, TASK, device="cuda"), lacks=EAGER),
    Library("torch compile", "torch", functools.partial(training.torch, TASK, True, "cuda"), patience=2),
]
BARS = [
    Bar("staged at least as fast as JAX", NAMES, "jax", 1.0, ours="limelight xla"),
    Bar("not staged at least 0.9 of PyTorch's speed", NAMES[-1:], "torch", 1 / 0.9),
    Bar("staged at least as fast as not staged", NAMES, "limelight", 1.0, ours="limelight plan"),
]
EVALUATION = evaluation.Evaluation("gpu", LIBRARIES, ROWS, QUICK, BARS, rounds=3, minutes=8, sizes=SIZES)


if __name__ == "__main__":
    evaluation.run(EVALUATION, __doc__)

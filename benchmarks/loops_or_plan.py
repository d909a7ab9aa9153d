"""What the model of the executor `loops` (`executors/loops/cost_model.py`) chooses, beside the plan, at all sizes.

    OPENBLAS_NUM_THREADS=1 python benchmarks/loops_or_plan.py [--only NAME] [--worst 20]

Each pattern is two or three ops on square matrices of 4 to 1,000, or on stacks of them. Prints the worst ratios of the
processor times of a call (above 1: `loops` is slower), their geometric mean, and how many are above 1.1. The least of
nine rounds counts, in turn. Needs limelight-native.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import limelight as ll
from limelight.executors import base
from measure import fair_environment

ROUNDS = 9
SECONDS = 0.004
"""Of each measurement."""


class Pattern(NamedTuple):
    """A function and its arguments."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def layer_norm(x: Any) -> Any:
    centred = x - ll.mean(x, axis=-1, keepdims=True)
    return centred * ll.rsqrt(ll.mean(ll.square(centred), axis=-1, keepdims=True) + 1e-5)


OF_MATRIX: dict[str, Callable[[Any], Any]] = {
    "multiply, add": lambda x: x * x + x,
    "column": lambda x: (x - x[:, :1]) * 2.0,
    "bias": lambda x: ll.nn.relu(x + x[0]),
    "sum over 0": lambda x: ll.sum(x, axis=0) * 2.0,
    "sum over 1": lambda x: ll.sum(x, axis=1) * 2.0,
    "sum": lambda x: ll.sum(x) * 2.0,
    "max over 0": lambda x: ll.max(x, axis=0) * 2.0,
    "max over 1": lambda x: ll.max(x, axis=1) * 2.0,
    "with transpose": lambda x: ll.transpose(x) + x,
    "copy of transpose": lambda x: ll.reshape(ll.transpose(x), (-1,)) * 2.0,
    "where": lambda x: ll.where(x > 0.0, x, x * 0.1),
    "where or 0": lambda x: ll.where(x > 0.0, x, 0.0) + 1.0,
    "casts": lambda x: ll.astype(ll.astype(x, ll.float64) * 2.0, ll.float32),
    "mask": lambda x: ll.astype(x > 0.0, ll.float32) * x,
    "concat over 0": lambda x: ll.concat([x * 2.0, x], axis=0),
    "concat over 1": lambda x: ll.concat([x * 2.0, x], axis=1),
    "stack over 1": lambda x: ll.stack([x * 2.0, x], axis=1),
    "slice": lambda x: x[1:, 1:] * 2.0 + 1.0,
    "steps": lambda x: x[::2, ::2] * 2.0 + 1.0,
    "softmax": lambda x: ll.nn.softmax(x) * 2.0,
    "exp": lambda x: ll.exp(x) + 1.0,
    "tanh": lambda x: ll.tanh(x) + 1.0,
    "power": lambda x: ll.abs(x) ** 1.7,
    "product": lambda x: ll.nn.relu(x @ x),
    "product with transpose": lambda x: ll.nn.relu(x @ ll.transpose(x)),
    "clip": lambda x: ll.clip(x, -1.0, 1.0) + 1.0,
    "split": lambda x: [part * 2.0 for part in ll.split(x, 2, axis=1)],
    "layer norm": layer_norm,
}
OF_STACK: dict[str, Callable[[Any], Any]] = {
    "products": lambda x: ll.nn.relu(x @ x),
    "axes swapped": lambda x: ll.transpose(x, (0, 2, 1, 3)) * 2.0 + x[:, :1, :1, :1],
    "heads joined": lambda x: ll.reshape(ll.transpose(x, (0, 2, 1, 3)), (-1,)) * 2.0,
    "sum over the middle": lambda x: ll.sum(x, axis=(1, 2)) * 2.0,
    "sum over the ends": lambda x: ll.sum(x, axis=(0, 3)) * 2.0,
}


def patterns() -> Iterator[Pattern]:
    random = np.random.default_rng(0)
    for n in (4, 32, 256, 1000):
        matrix = ll.constant(random.standard_normal((n, n)).astype(np.float32))
        yield from (Pattern(f"{name}, {n}", f, (matrix,)) for name, f in OF_MATRIX.items())
    for b, n in ((4, 8), (32, 32), (16, 128)):
        stack = ll.constant(random.standard_normal((b, 4, n, n)).astype(np.float32))
        yield from (Pattern(f"{name}, {b} x 4 x {n}", f, (stack,)) for name, f in OF_STACK.items())


def seconds(function: Callable[..., Any], arguments: Any, calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        function(*arguments)
    return (time.process_time() - start) / calls


def compared(pattern: Pattern) -> tuple[float, float]:
    """The processor time of a call on the plan and on loops."""
    runs: list[Any] = []
    for executor in ("plan", "loops"):
        with base.chosen.override(executor):
            runs.append(ll.function(pattern.function))
            runs[-1](*pattern.arguments)
    calls = max(1, int(SECONDS / max(seconds(runs[0], pattern.arguments, 2), 1e-6)))
    times = [[seconds(run, pattern.arguments, calls) for run in runs] for _ in range(ROUNDS)]
    plan, loops = map(min, zip(*times, strict=True))
    return plan, loops


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="patterns whose name has this in it")
    parser.add_argument("--worst", type=int, default=20, help="how many are printed")
    arguments = parser.parse_args()
    fair_environment()
    rows = []
    for pattern in patterns():
        if arguments.only in pattern.name:
            plan, loops = compared(pattern)
            rows.append((loops / plan, pattern.name, plan * 1e6, loops * 1e6))
    rows.sort(reverse=True)
    for ratio, name, plan, loops in rows[: arguments.worst]:
        print(f"{name:32} plan {plan:9.1f} us  loops {loops:9.1f} us  ratio {ratio:5.2f}")
    mean = math.exp(sum(math.log(row[0]) for row in rows) / len(rows))
    slower = sum(row[0] > 1.1 for row in rows)
    print(f"{len(rows)} patterns: geometric mean {mean:.2f}, {slower} above 1.1")


if __name__ == "__main__":
    main()

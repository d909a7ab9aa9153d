"""What tracing a gradient costs, in times of tracing the program itself, for chains of ops.

    python benchmarks/gradient_trace.py [nodes ...] [--rounds N] [--only NAME]

`inline` is a tape inside the traced function, `staged` the gradient of a function that has been traced. Each figure is
processor time, the best of several rounds, in which the three take turns. Bars: a gradient takes at most 3 times the
trace, at any length.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import limelight as ll

BAR = 3.0
Body = Callable[[Any, Any], Any]
CHAINS: dict[str, tuple[int, Body]] = {  # ops in the body, and the body
    "tanh(x*a+b)": (3, lambda x, y: ll.tanh(x * 0.9 + y)),
    "x + 1": (1, lambda x, y: x + 1.0),
    "x * y": (1, lambda x, y: x * y),
    "tanh(x)": (1, lambda x, y: ll.tanh(x)),
    "sin(x)": (1, lambda x, y: ll.sin(x)),
    "sigmoid(x)": (1, lambda x, y: ll.nn.sigmoid(x)),
    "exp(x)": (1, lambda x, y: ll.exp(x)),
    "relu(x)": (1, lambda x, y: ll.nn.relu(x)),
    "x @ y": (1, lambda x, y: x @ y),
}


def chain(body: Body, times: int) -> Callable[[Any, Any], Any]:
    def chained(x: Any, y: Any) -> Any:
        for _ in range(times):
            x = body(x, y)
        return ll.sum(x)

    return chained


def seconds(function: Callable[..., Any], arguments: list[Any]) -> float:
    """Processor time of one trace of `function`."""
    staged = ll.function(function)
    gc.collect()
    start = time.process_time()
    staged.get_concrete_function(*arguments)
    return time.process_time() - start


def measure(body: Body, times: int, rounds: int) -> tuple[float, float, float]:
    """The shortest times of the trace, of the gradient inside a trace, and of the gradient of a staged function."""
    arguments = [ll.constant(np.full((2, 2), value, np.float32)) for value in (0.5, 0.3)]
    program = chain(body, times)

    def inline(x: Any, y: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch((x, y))
            z = program(x, y)
        return tape.gradient(z, (x, y))

    found: list[list[float]] = [[], [], []]
    for _ in range(rounds):
        inner = ll.function(program)

        def of_staged(x: Any, y: Any, inner: Any = inner) -> Any:
            with ll.GradientTape() as tape:
                tape.watch((x, y))
                z = inner(x, y)
            return tape.gradient(z, (x, y))

        inner.get_concrete_function(*arguments)
        for times_taken, function in zip(found, (program, inline, of_staged), strict=True):
            times_taken.append(seconds(function, arguments))
    forward, inside, of_call = map(min, found)
    return forward, inside, of_call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nodes", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="chains whose name has this in it")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.2f}; microseconds an op, times the trace (bar {BAR:g})")
    print(f"{'chain':14s}{'ops':>9s}{'trace':>9s}{'inline':>9s}{'':>8s}{'staged':>9s}{'':>8s}")
    for name, (ops, body) in CHAINS.items():
        for n in options.nodes if options.only in name else ():
            rounds = max(1, min(options.rounds, 200_000 // n))
            forward, inside, of_call = (1e6 * s / n for s in measure(body, n // ops, rounds))
            ratios = inside / forward, of_call / forward
            print(
                f"{name:14s}{n:9,}{forward:9.2f}{inside:9.2f}{ratios[0]:7.2f}x{of_call:9.2f}{ratios[1]:7.2f}x",
                flush=True,
            )


if __name__ == "__main__":
    main()

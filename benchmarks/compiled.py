"""The executor `xla` beside `jax.jit`: the same functions, in turn, in one process.

    OPENBLAS_NUM_THREADS=1 python benchmarks/compiled.py [--seconds 1.0] [--only NAME]

Prints for each program the processor time of a call (with all threads of the process) as a staged function of
limelight with `jit_compile=True` and as a bare `jax.jit` of the same arithmetic, and their ratio; and the first call of
both, with tracing and compiling. On CPU:0 both get arrays of NumPy and give such; on XLA:0 both get and give arrays of
JAX, and the call ends when these are ready. Needs JAX (the extra `xla`).
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import limelight as ll
from measure import fair_environment

_RANDOM = np.random.default_rng(0)
SLICES = 15
DEVICES = ("CPU:0", "XLA:0")


class Program(NamedTuple):
    """A computation on arrays; those that are `state` are given anew by each call."""

    body: Callable[..., Any]
    arrays: tuple[np.ndarray[Any, Any], ...]
    state: tuple[np.ndarray[Any, Any], ...] = ()
    loss: Callable[..., Any] | None = None


def _array(*shape: int) -> np.ndarray[Any, Any]:
    return (_RANDOM.standard_normal(shape) * 0.3).astype(np.float32)


def _chain(xp: Any, x: Any, b: Any) -> Any:
    a = x
    for _ in range(100):
        x = xp.tanh(x * b) + a
    return x


def _network(xp: Any, weights: Any, x: Any, y: Any) -> Any:
    for w, b in zip(weights[::2], weights[1::2], strict=True):
        x = xp.tanh(x @ w + b)
    return xp.mean(xp.square(x - y))


def _ten(xp: Any, *arrays: Any) -> Any:
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total


SIZES = (32, 64, 64, 10)
WEIGHTS = tuple(a for n, m in itertools.pairwise(SIZES) for a in (_array(n, m), _array(m)))
PROGRAMS = {
    "x + 1 on 10 floats": Program(lambda xp, x: x + 1.0, (_array(10),)),
    "sum of 10 arguments": Program(_ten, tuple(_array(10) for _ in range(10))),
    "chain of 300 on 10 floats": Program(_chain, (_array(10), _array(10))),
    "chain of 300 on 10,000": Program(_chain, (_array(10_000), _array(10_000))),
    "MLP step, 6 variables": Program(_network, (_array(32, 32), _array(32, 10)), WEIGHTS),
}


def ours(program: Program, device: str = "CPU:0", jit_compile: bool | None = True) -> tuple[Any, Callable[[], Any]]:
    """A staged function of a program, and a call of it on tensors of the device."""
    arrays = [ll.constant(x).to(device) for x in program.arrays]
    with ll.device(device):
        variables = [ll.Variable(x) for x in program.state]

    def step(*batch: Any) -> Any:
        with ll.GradientTape() as tape:
            loss = program.body(ll, variables, *batch)
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(1e-3 * gradient)
        return loss

    f = ll.function(step if program.state else lambda *xs: program.body(ll, *xs), jit_compile=jit_compile)
    return f, lambda: f(*arrays)


def bare(program: Program, device: str) -> Callable[[], Any]:
    """A call of `jax.jit`; on CPU:0 results become arrays of NumPy."""
    host = device == "CPU:0"
    convert = np.asarray if host else jnp.asarray
    arrays = [convert(x) for x in program.arrays]
    if not program.state:
        f = jax.jit(lambda *xs: program.body(jnp, *xs))
        return (lambda: np.asarray(f(*arrays))) if host else (lambda: f(*arrays))

    def step(weights: Any, *batch: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda w: program.body(jnp, w, *batch))(weights)
        return loss, [w - 1e-3 * g for w, g in zip(weights, gradients, strict=True)]

    held = [[convert(x) for x in program.state]]
    run = jax.jit(step)

    def call() -> Any:
        loss, held[0] = run(held[0], *arrays)
        if host:
            held[0] = [np.asarray(x) for x in held[0]]
            return np.asarray(loss)
        return loss

    return call


def finished(result: Any) -> Any:
    """Waits for arrays of JAX, which may still be computed."""
    data = getattr(result, "_data", result)
    return data.block_until_ready() if hasattr(data, "block_until_ready") else data


def seconds(run: Callable[[], Any], calls: int) -> float:
    """Processor time of a call."""
    begin = time.process_time()
    for _ in range(calls):
        finished(run())
    return (time.process_time() - begin) / calls


def compared(runs: list[Callable[[], Any]], budget: float) -> list[float]:
    """The median of the processor times of a call, the two measured in turn."""
    seconds(runs[0], 20), seconds(runs[1], 20)
    calls = max(1, int(budget / SLICES / 2 / max(seconds(runs[0], 20), 1e-7)))
    times = [[seconds(run, calls) for run in runs] for _ in range(SLICES)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each program and device")
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    arguments = parser.parse_args()
    fair_environment()
    print(f"JAX {jax.__version__}, NumPy {np.__version__}; processor time; the ratio is limelight's to jax.jit's")
    print(f"{'':28}{'':8}{'limelight':>12}{'jax.jit':>12}{'ratio':>8}{'first call, ms':>18}{'jax.jit':>10}")
    for name, program in PROGRAMS.items():
        if arguments.only not in name:
            continue
        for device in DEVICES:
            runs = [ours(program, device)[1], bare(program, device)]
            first = [seconds(run, 1) * 1e3 for run in runs]
            mine, theirs = compared(runs, arguments.seconds)
            print(
                f"{name:28}{device:8}{mine * 1e6:>9.1f} us{theirs * 1e6:>9.1f} us{mine / theirs:>8.2f}"
                f"{first[0]:>18.0f}{first[1]:>10.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

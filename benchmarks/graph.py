"""What a graph costs on its way from Python to its first run, in microseconds a node, and what a cached call costs.

    python benchmarks/graph.py [nodes ...] [--levels]

The graph is a training step in the large: layers of products, biases, tanh and means, with repeated, dead and constant
parts among them, and small arrays, so that the kernels do not hide what is around them. Bars: tracing 8, all passes 30,
building the plan 15 microseconds a node. Each figure is processor time, the best of several runs, because other work
on the machine can only add to it. `--levels` adds what each level of the optimiser makes of a training step of L2HMC
(see `sampler.py`): kernels, of which kinds, and milliseconds a step.
"""

from __future__ import annotations

import sys
import time
import timeit
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import limelight as ll
from limelight.core.op import get
from limelight.core.spec import TensorSpec
from limelight.executors import step
from limelight.executors.plan import plan
from limelight.graph import Graph, Value, parse, verify
from limelight.optimise import optimise
from limelight.staging.tracer import Tracer

BARS = {"trace": 8.0, "optimise": 30.0, "plan": 15.0}
ROUNDS = 3


def program(x: Any, w: Any, b: Any, layers: int) -> Any:
    """About ten nodes a layer, of which the optimiser removes three."""
    for _ in range(layers):
        h = ll.tanh(x @ w + b)
        again = ll.tanh(x @ w + b)  # shared
        ll.exp(h)  # dead
        x = h * again - x * 0.5 + ll.mean(h, 1, True)
    return x


def trace(n: int) -> Graph:
    with Tracer("layers") as tracer:
        inputs = [tracer.add_input(TensorSpec(shape)) for shape in ((4, 8), (8, 8), (8,))]
        result = program(*inputs, n // 11)
        return tracer.finish([result])


def best(run: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest processor time of a few, in seconds, and the last result."""
    shortest, result = float("inf"), None
    for _ in range(ROUNDS):
        result = None  # freed outside the time
        start = time.process_time()
        result = run()
        shortest = min(shortest, time.process_time() - start)
    return shortest, result


def stages(n: int) -> dict[str, float]:
    """Microseconds a node of the graph that each stage is given."""
    seconds, graph = best(lambda: trace(n))
    found = {"trace": seconds / len(graph.nodes)}

    def stage(name: str, run: Callable[[], Any], nodes: int) -> Any:
        seconds, result = best(run)
        found[name] = seconds / nodes
        return result

    size = len(graph.nodes)
    stage("verify", lambda: verify(graph), size)
    better, records = stage("optimise", lambda: optimise(graph), size)
    for record in records:
        name = f"  {record.name}"
        found[name] = found.get(name, 0.0) + record.seconds / size
    run = stage("plan", lambda: plan.build(better), len(better.nodes))
    payloads = [np.ones(value.spec.shape, dtype=np.float32) for value in graph.inputs]
    stage("run", lambda: run(*payloads), len(better.nodes))
    stage("run step", lambda: step.run(better, payloads).outputs, len(better.nodes))
    text = stage("show", graph.text, size)
    stage("parse", lambda: parse(text), size)
    return {name: 1e6 * value for name, value in found.items()}


def calls() -> dict[str, float]:
    """Microseconds of a call of `x + 1` on ten numbers, by what is called."""
    x = Value(TensorSpec((10,)))
    tracer = Tracer("add_one")
    with tracer:
        graph = tracer.finish([tracer.add_input(x.spec) + 1.0])
    run = plan.build(graph)
    data, one = np.ones(10, dtype=np.float32), np.asarray(1.0, dtype=np.float32)
    tensor = ll.constant(data)
    staged = ll.function(lambda t: t + 1.0)
    staged(tensor)
    kernel = get("add").kernel_on("numpy")
    words = {
        "NumPy": lambda: kernel(data, one),
        "plan": lambda: run(data),
        "eager": lambda: tensor + 1.0,
        "function, cached": lambda: staged(tensor),
    }
    return {
        name: 1e6 * min(timeit.repeat(word, timer=time.process_time, number=20_000, repeat=7)) / 20_000
        for name, word in words.items()
    }


def levels() -> None:
    """Prints nodes and time of the L2HMC step at each level of the optimiser."""
    import sampler

    data = [ll.constant(array) for array in sampler.batch(10)]
    print(f"\n{'L2HMC, level':14s}{'first call, ms':>16s}{'step, ms':>10s}{'nodes':>8s}  most frequent")
    for level in range(4):
        with ll.config.optimiser(level):
            step = sampler_step(sampler)
            start = time.process_time()
            step(*data)
            first = time.process_time() - start
            seconds = min(timeit.repeat(lambda f=step: f(*data), timer=time.process_time, number=20, repeat=5)) / 20
        nodes = step.trace_cache[0].optimised.nodes
        kinds = ", ".join(f"{n} {op}" for op, n in Counter(node.op.name for node in nodes).most_common(6))
        print(f"{level:<14d}{1e3 * first:16.0f}{1e3 * seconds:10.2f}{len(nodes):8d}  {kinds}")


def sampler_step(sampler: Any) -> Any:
    """A fresh staged training step of L2HMC."""
    xp = sampler.Operations(ll.exp, ll.tanh, ll.nn.relu, ll.sum, ll.mean, ll.minimum, *sampler.constants(ll.constant))
    variables = [ll.Variable(p) for p in sampler.parameters()]

    @ll.function
    def step(*batch: Any) -> Any:
        with ll.GradientTape() as tape:
            loss = sampler.loss(xp, [v.read_value() for v in variables], batch)
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(1e-5 * gradient)
        return loss

    return step


def main(sizes: list[int], with_levels: bool) -> None:
    columns = [stages(n) for n in sizes]
    print(f"{'us a node':18s}" + "".join(f"{n:>12,}" for n in sizes) + f"{'bar':>8s}")
    for name in columns[0]:
        bar = f"{BARS[name]:8.0f}" if name in BARS else ""
        print(f"{name:18s}" + "".join(f"{column[name]:12.2f}" for column in columns) + bar)
    found = calls()
    print(f"\n{'x + 1, us a call':18s}")
    for name, value in found.items():
        print(f"{name:18s}{value:12.2f}{value / found['NumPy']:8.1f} x NumPy")
    if with_levels:
        levels()


if __name__ == "__main__":
    words = sys.argv[1:]
    main([int(word) for word in words if word.isdigit()] or [1_000, 10_000, 100_000], "--levels" in words)

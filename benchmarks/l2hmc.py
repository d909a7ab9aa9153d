"""One training step of L2HMC, a sampler that learns: thousands of small operations (the paper's Figure 4).

    python benchmarks/l2hmc.py [--quick] [--compilers] [--peers jax,torch] [--json FILE]

A strongly correlated Gaussian in the plane, ten leapfrog steps in both directions of time, networks for position and
momentum (2-10-10 and heads for scale, translation, transformation), the loss of Levy, Hoffman and Sohl-Dickstein
(2018, "Generalizing Hamiltonian Monte Carlo with Neural Networks"), and a plain gradient step. Every library runs the
same program (`sampler.py`), on the same numbers, and must find the same loss. Milliseconds a step; a step returns when
its results are there. "variables" is limelight with variables as operands, which the others read once a step.
`--compilers` adds those that compile for tens of seconds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import report
import sampler
from eager import installed
from measure import Library, Row, interleave, typical

ROWS = [
    Row("loss", "check", "loss", block=True, once=True),
    Row("first call, 10 samples", "first call", "first", block=True, once=True),
    Row("step, 10 samples", "step", "step(few)"),
    Row("step, 200 samples", "step", "step(many)"),
]
RATE = 1e-5
BARS = [
    report.Bar("limelight eager is faster than PyTorch eager", ("step, 10 samples",), "torch", 1.0),
    report.Bar("limelight staged: at most 1.5 times TensorFlow's function", ("step, 10 samples",), "tf function", 1.5),
]
_SIZES = {"few": 10, "many": 200}


def _words(
    convert: Callable[[Any], Any], make: Callable[[list[Any]], Callable[..., Any]], read: Callable[[Any], float]
) -> Mapping[str, Any]:
    """What the rows' words mean: `make(parameters)` gives a training step, a function of a batch that returns the loss.

    Each row has parameters and a step of its own, so that none finds another's traces.
    """
    data = {name: [convert(array) for array in sampler.batch(size)] for name, size in _SIZES.items()}

    def fresh() -> Callable[..., Any]:
        return make([convert(array) for array in sampler.parameters()])

    steps = {id(batch): fresh() for batch in data.values()}

    def step(batch: list[Any]) -> float:
        return read(steps[id(batch)](*batch))

    def first(number: int) -> int:
        read(fresh()(*data["few"]))
        return number

    def loss(number: int) -> int:
        found = read(fresh()(*data["few"]))
        if not np.isclose(found, sampler.EXPECTED_LOSS, rtol=1e-3):
            raise ValueError(f"the loss is {found}, not {sampler.EXPECTED_LOSS}: this is another program")
        return number

    return data | {"step": step, "first": first, "loss": loss}


def _limelight(stage: bool, read_once: bool = True) -> Mapping[str, Any]:
    import limelight as ll

    xp = sampler.Operations(
        ll.exp,
        ll.tanh,
        ll.nn.relu,
        ll.sum,
        ll.mean,
        ll.minimum,
        *sampler.constants(ll.constant),
    )

    def make(parameters: list[Any]) -> Callable[..., Any]:
        variables = [ll.Variable(p) for p in parameters]

        def step(*batch: Any) -> Any:
            with ll.GradientTape() as tape:
                values = [v.read_value() for v in variables] if read_once else variables
                loss = sampler.loss(xp, values, batch)
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(RATE * gradient)
            return loss

        return ll.function(step) if stage else step

    return _words(ll.constant, make, float)


def _torch() -> Mapping[str, Any]:
    import torch

    xp = sampler.Operations(
        torch.exp,
        torch.tanh,
        torch.relu,
        torch.sum,
        torch.mean,
        torch.minimum,
        *sampler.constants(torch.tensor),
    )

    def make(parameters: list[Any]) -> Callable[..., Any]:
        for p in parameters:
            p.requires_grad_()

        def step(*batch: Any) -> Any:
            loss = sampler.loss(xp, parameters, batch)
            gradients = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.sub_(RATE * gradient)
            return loss.detach()

        return step

    return _words(torch.tensor, make, float)


def _jax() -> Mapping[str, Any]:
    import jax
    import jax.numpy as jnp

    xp = sampler.Operations(
        jnp.exp,
        jnp.tanh,
        jax.nn.relu,
        jnp.sum,
        jnp.mean,
        jnp.minimum,
        *sampler.constants(jnp.array),
    )

    def make(parameters: list[Any]) -> Callable[..., Any]:
        state = [parameters]

        @jax.jit
        def update(parameters: list[Any], *batch: Any) -> Any:
            loss, gradients = jax.value_and_grad(lambda p: sampler.loss(xp, p, batch))(parameters)
            return loss, [p - RATE * g for p, g in zip(parameters, gradients, strict=True)]

        def step(*batch: Any) -> Any:
            loss, state[0] = update(state[0], *batch)
            return loss

        return step

    return _words(jnp.array, make, float)


def _autograd() -> Mapping[str, Any]:
    import autograd
    import autograd.numpy as anp

    xp = sampler.Operations(
        anp.exp,
        anp.tanh,
        lambda x: anp.maximum(x, 0),
        anp.sum,
        anp.mean,
        anp.minimum,
        *sampler.constants(np.array),
    )

    def make(parameters: list[Any]) -> Callable[..., Any]:
        def step(*batch: Any) -> Any:
            loss, gradients = autograd.value_and_grad(lambda p: sampler.loss(xp, p, batch))(parameters)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter[...] -= RATE * gradient
            return loss

        return step

    return _words(np.array, make, float)


def _tensorflow(stage: bool, **options: Any) -> Mapping[str, Any]:
    import os

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    xp = sampler.Operations(
        tf.exp,
        tf.tanh,
        tf.nn.relu,
        tf.reduce_sum,
        tf.reduce_mean,
        tf.minimum,
        *sampler.constants(tf.constant),
    )

    def make(parameters: list[Any]) -> Callable[..., Any]:
        variables = [tf.Variable(p) for p in parameters]

        def step(*batch: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = sampler.loss(xp, [v.read_value() for v in variables], batch)
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(RATE * gradient)
            return loss

        return tf.function(step, autograph=False, **options) if stage else step

    return _words(tf.constant, make, float)


LIBRARIES = [
    Library("limelight", "limelight", lambda: _limelight(False), lacks=("first call",)),
    Library("variables", "limelight", lambda: _limelight(False, False), beside="limelight", lacks=("first call",)),
    Library("limelight, staged", "limelight", lambda: _limelight(True), beside="limelight"),
    Library("torch", "torch", _torch, lacks=("first call",)),
    Library("autograd", "autograd", _autograd, lacks=("first call",)),
    Library("tensorflow", "tensorflow", lambda: _tensorflow(False), lacks=("first call",)),
    Library("tf function", "tensorflow", lambda: _tensorflow(True), beside="tensorflow"),
    Library("jax", "jax", _jax),
    Library("tf (XLA)", "tensorflow", lambda: _tensorflow(True, jit_compile=True), beside="tensorflow"),
]
SLOW = ("jax", "tf (XLA)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 15")
    parser.add_argument("--compilers", action="store_true", help="with JAX and TensorFlow's XLA: a minute or two more")
    parser.add_argument("--peers", help="comma-separated: some of autograd, jax, tensorflow, torch; empty for none")
    parser.add_argument("--json", metavar="FILE", help="write all samples")
    options = parser.parse_args()
    libraries = installed(options.peers, LIBRARIES)
    if not options.compilers:
        libraries = [library for library in libraries if library.name not in SLOW]
    facts = report.machine(library.package for library in libraries)
    print(report.describe(facts), flush=True)
    samples, failed = interleave(
        libraries, ROWS, 3 if options.quick else 15, "l2hmc", lambda text: print(text, end="\r", file=sys.stderr)
    )
    print(f"\n{'milliseconds':26s}" + "".join(f"{library.name:>20s}" for library in libraries))
    for row in ROWS[1:]:
        found = [typical(samples, library.name, row.name) for library in libraries]
        print(f"{row.name:26s}" + "".join(f"{'-' if s is None else f'{s * 1e3:.1f}':>20s}" for s in found))
    staged = [bar for bar in BARS if "staged" in bar.text]
    verdicts = [report.verdict(bar, samples) for bar in BARS if bar not in staged]
    verdicts += [report.verdict(bar, samples, "limelight, staged") for bar in staged]
    print("\nBars", *verdicts, sep="\n")
    for (library, row), problem in failed.items():
        print(f"{library} could not do {row}: {problem}")
    if options.json:
        report.save(options.json, facts, samples, failed, verdicts)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()

"""One training step of L2HMC, a sampler that learns: thousands of small operations (the paper's Figure 4).

    python benchmarks/l2hmc.py [--quick] [--sizes 10,200] [--peers jax,torch] [--out FOLDER]

A strongly correlated Gaussian in the plane, ten leapfrog steps in both directions of time, networks for position and
momentum (2-10-10 and heads for scale, translation, transformation), the loss of Levy, Hoffman and Sohl-Dickstein
(2018, "Generalizing Hamiltonian Monte Carlo with Neural Networks"), and a plain gradient step. Every library runs the
same program (`sampler.py`), on the same numbers, and must find the same loss. Examples a second are samples; a step
returns when its results are there. A first call traces, and compiles for its number of samples. "variables" is
limelight, not staged, with variables as operands, which the others read once a step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import evaluation
import sampler
import training
from measure import Row
from report import Bar

SIZES = (10, 25, 50, 100, 200)


def _row(size: int) -> Row:
    setup = f"data = batch({size})"
    return Row(f"{size} samples", "steady state", "step(data)", setup=setup, size=size, unit="examples/s")


def _first(size: int) -> Row:
    return _row(size)._replace(name=f"first call, {size} samples", group="first call", once=True, unit="s")


STEPS = [_row(size) for size in SIZES]
NAMES = tuple(row.name for row in STEPS)
ROWS = [*map(_first, SIZES), *STEPS, evaluation.LOSS]
QUICK = [row for row in ROWS if row.size in (0, SIZES[0])]
STAGED = "limelight loops"
FIRST = (_first(10).name,)
BARS = [
    Bar("limelight not staged is no slower than PyTorch", NAMES[:1], "torch", 1.0),
    *[
        Bar(f"staged no slower than {peer}, at any size", NAMES, peer, 1.0, ours=STAGED)
        for peer in ("limelight", "torch", "tf function", "tf XLA", "jax")
    ],
    Bar("first call 5 times quicker than TensorFlow's", FIRST, "tf function", 1 / 5, ours=STAGED),
    Bar("first call 15 times quicker than JAX's", FIRST, "jax", 1 / 15, ours=STAGED),
]


def _operations(names: Callable[[], tuple[Any, ...]]) -> sampler.Operations:
    """exp, tanh, relu, sum, mean, minimum, and what makes an array of the library's own."""
    *functions, convert = names()
    return sampler.Operations(*functions, *sampler.constants(convert))


def _limelight() -> tuple[Any, ...]:
    import limelight as ll

    return ll.exp, ll.tanh, ll.nn.relu, ll.sum, ll.mean, ll.minimum, ll.constant


def _torch() -> tuple[Any, ...]:
    import torch

    return torch.exp, torch.tanh, torch.relu, torch.sum, torch.mean, torch.minimum, torch.tensor


def _jax() -> tuple[Any, ...]:
    import jax
    import jax.numpy as jnp

    return jnp.exp, jnp.tanh, jax.nn.relu, jnp.sum, jnp.mean, jnp.minimum, jnp.array


def _autograd() -> tuple[Any, ...]:
    import autograd.numpy as anp

    return anp.exp, anp.tanh, lambda x: anp.maximum(x, 0), anp.sum, anp.mean, anp.minimum, np.array


def _tensorflow() -> tuple[Any, ...]:
    import tensorflow as tf

    return tf.exp, tf.tanh, tf.nn.relu, tf.reduce_sum, tf.reduce_mean, tf.minimum, tf.constant


NAMES = {"limelight": _limelight, "torch": _torch, "jax": _jax, "autograd": _autograd, "tensorflow": _tensorflow}
OPERATIONS = {package: functools.partial(_operations, names) for package, names in NAMES.items()}
TASK = training.Task(sampler.loss, sampler.parameters, sampler.batch, OPERATIONS, 1e-5)
LIBRARIES = training.libraries(TASK)
EVALUATION = evaluation.Evaluation(
    "l2hmc", LIBRARIES, ROWS, QUICK, BARS, minutes=8, sizes=SIZES, loss=sampler.EXPECTED_LOSS
)


if __name__ == "__main__":
    evaluation.run(EVALUATION, __doc__)

"""One training step of ResNet-50: a few large operations (the paper's Figure 3).

    python benchmarks/resnet50.py [--quick] [--sizes 1,4] [--peers jax,torch] [--out FOLDER]

Images of 224 x 224 in batches of 1 to 32, a thousand classes, a plain gradient step. Every library runs the same
program (`resnet50_program.py`) with its own convolution, batch normalisation and pooling, on the same numbers, and must
find the same loss. Examples a second are images; a step returns when its results are there. `--quick` takes images of
64 x 64.
"""

from __future__ import annotations

from typing import Any

import evaluation
import resnet50_program as program
import training
from measure import Row
from report import Bar

SIZES = (1, 2, 4, 8, 16, 32)
PIXELS = 224
SMALL = 64
EPSILON = 1e-5


def row(size: int, pixels: int = PIXELS) -> Row:
    images = "image" if size == 1 else "images"
    name = f"{size} {images}" if pixels == PIXELS else f"{size} {images} of {pixels} x {pixels}"
    setup = f"data = batch({size}, {pixels})"
    return Row(name, "steady state", "step(data)", setup=setup, size=size, unit="examples/s")


def first(of: Row) -> Row:
    return of._replace(name=f"first call, {of.name}", group="first call", once=True, unit="s")


STEPS = [row(size) for size in SIZES]
ROWS = [*map(first, STEPS), *STEPS, evaluation.LOSS]
QUICK = [first(row(2, SMALL)), row(2, SMALL), evaluation.LOSS]
NAMES = tuple(step.name for step in STEPS)
BARS = [
    *[
        Bar(f"staged at most 1.05 times {peer}", NAMES, peer, 1.05, ours="limelight loops")
        for peer in ("torch", "tf function", "tf XLA", "jax")
    ],
    Bar("staged at least as fast as not staged", NAMES, "limelight", 1.0, ours="limelight loops"),
]


def _limelight() -> program.Operations:
    import limelight as ll

    return program.Operations(
        conv=lambda x, w, stride: ll.nn.conv(x, w, stride, padding=w.shape[0] // 2),
        norm=lambda x, scale, offset: ll.nn.batch_norm_training(x, scale, offset, EPSILON)[0],
        relu=ll.nn.relu,
        pool=lambda x: ll.nn.max_pool(x, 3, 2, padding=1),
        average=lambda x: ll.mean(x, (1, 2)),
        loss=lambda x, labels: ll.mean(ll.nn.softmax_cross_entropy(x, labels)),
    )


def _torch() -> program.Operations:
    import torch
    from torch.nn import functional

    return program.Operations(
        conv=lambda x, w, stride: functional.conv2d(x, w, stride=stride, padding=w.shape[2] // 2),
        norm=lambda x, scale, offset: functional.batch_norm(x, None, None, scale, offset, True, 0.0, EPSILON),
        relu=torch.relu,
        pool=lambda x: functional.max_pool2d(x, 3, 2, 1),
        average=lambda x: torch.mean(x, (2, 3)),
        loss=functional.cross_entropy,
    )


def _torch_array(array: Any) -> Any:
    """Images and filters in PyTorch's order of axes, in the memory that its kernels like best."""
    import torch

    x = torch.tensor(array)
    if x.ndim != 4:
        return x
    axes = (0, 3, 1, 2) if x.shape[3] == 3 else (3, 2, 0, 1)
    return x.permute(axes).contiguous(memory_format=torch.channels_last)


def _jax() -> program.Operations:
    import jax
    import jax.numpy as jnp
    from jax import lax

    def margins(n: int) -> list[tuple[int, int]]:
        return [(n // 2, n // 2)] * 2

    def norm(x: Any, scale: Any, offset: Any) -> Any:
        mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
        return (x - mean) * (lax.rsqrt(variance + EPSILON) * scale) + offset

    def pool(x: Any) -> Any:
        around = [(0, 0), *margins(3), (0, 0)]
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), around)

    def conv(x: Any, w: Any, stride: int) -> Any:
        axes = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, w, (stride, stride), margins(w.shape[0]), dimension_numbers=axes)

    def loss(logits: Any, labels: Any) -> Any:
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

    return program.Operations(conv, norm, jax.nn.relu, pool, lambda x: jnp.mean(x, (1, 2)), loss)


def _tensorflow() -> program.Operations:
    import tensorflow as tf

    def margins(n: int) -> list[list[int]]:
        return [[0, 0], [n // 2, n // 2], [n // 2, n // 2], [0, 0]]

    def loss(logits: Any, labels: Any) -> Any:
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    return program.Operations(
        conv=lambda x, w, stride: tf.nn.conv2d(x, w, stride, margins(w.shape[0])),
        norm=lambda x, scale, offset: tf.compat.v1.nn.fused_batch_norm(x, scale, offset, epsilon=EPSILON)[0],
        relu=tf.nn.relu,
        pool=lambda x: tf.nn.max_pool2d(tf.pad(x, margins(3), constant_values=-1e9), 3, 2, "VALID"),
        average=lambda x: tf.reduce_mean(x, (1, 2)),
        loss=loss,
    )


OPERATIONS = {"limelight": _limelight, "torch": _torch, "jax": _jax, "tensorflow": _tensorflow}
TASK = training.Task(program.loss, program.parameters, program.batch, OPERATIONS, 1e-6, _torch_array)
LIBRARIES = [library for library in training.libraries(TASK) if library.name != "variables"]
EVALUATION = evaluation.Evaluation("resnet50", LIBRARIES, ROWS, QUICK, BARS, rounds=3, minutes=8, sizes=SIZES)


if __name__ == "__main__":
    evaluation.run(EVALUATION, __doc__)

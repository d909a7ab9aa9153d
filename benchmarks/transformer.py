"""One training step of a small transformer: its time, and the most memory that it takes.

    python benchmarks/transformer.py [--quick] [--sizes 1,4] [--peers jax,torch] [--out FOLDER]

Sequences of 128 words in batches of 1 to 16, a plain gradient step. Every library runs the same program
(`transformer_program.py`) with its own normalisation, on the same numbers, and must find the same loss. Attention is
two products and a softmax; "torch fused" calls PyTorch's own function, which keeps no weights of attention. Memory is
counted as in `memory.py`: at most while the third step of a shape runs, above what there was before the first one.
"""

from __future__ import annotations

from typing import Any

import evaluation
import training
import transformer_program as program
from measure import Library, Row
from report import Bar

SIZES = (1, 4, 16)
LENGTH = 128
EPSILON = 1e-5
DEPTH = program.WIDTH // program.HEADS


def step(size: int) -> Row:
    name = f"{size} sequence{'s' * (size > 1)}"
    setup = f"data = batch({size}, {LENGTH})"
    return Row(name, "steady state", "step(data)", setup=setup, size=size, unit="examples/s")


def memory(size: int) -> Row:
    of = step(size)
    setup = f"{of.setup}; small = batch(1, 8)"
    return of._replace(
        name=f"memory, {of.name}", group="most memory", code="peak(data, small)", setup=setup, unit="MB", figure=True
    )


STEPS = [step(size) for size in SIZES]
MEMORY = [memory(size) for size in SIZES]
ROWS = [*MEMORY, *STEPS, evaluation.LOSS]
QUICK = [memory(4), step(4), evaluation.LOSS]
NAMES = tuple(row.name for row in STEPS)
BARS = [
    Bar("takes no more memory than PyTorch", tuple(row.name for row in MEMORY), "torch", 1.0, ours="limelight loops"),
    *[
        Bar(f"staged no slower than {peer}", NAMES, peer, 1.0, ours="limelight loops")
        for peer in ("torch", "jax", "tf function")
    ],
]


def _limelight() -> program.Operations:
    import limelight as ll

    return program.Operations(
        embed=ll.nn.embedding,
        norm=lambda x, scale, offset: ll.nn.layer_norm(x, scale, offset, epsilon=EPSILON),
        relu=ll.nn.relu,
        reshape=ll.reshape,
        turn=lambda x: ll.permute_dims(x, (0, 2, 1, 3)),
        attend=lambda q, k, v: ll.nn.dot_product_attention(q, k, v, causal=True),
        loss=lambda x, labels: ll.mean(ll.nn.softmax_cross_entropy(x, labels)),
    )


def _torch(fused: bool = False) -> program.Operations:
    import torch
    from torch.nn import functional

    def attend(q: Any, k: Any, v: Any) -> Any:
        if fused:
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        hidden = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
        scores = (q * DEPTH**-0.5) @ k.transpose(2, 3)
        return torch.softmax(scores.masked_fill(hidden, -1e30), -1) @ v

    return program.Operations(
        embed=lambda table, words: functional.embedding(words, table),
        norm=lambda x, scale, offset: functional.layer_norm(x, (program.WIDTH,), scale, offset, EPSILON),
        relu=torch.relu,
        reshape=lambda x, shape: x.reshape(shape),
        turn=lambda x: x.transpose(1, 2),
        attend=attend,
        loss=functional.cross_entropy,
    )


def _jax() -> program.Operations:
    import jax
    import jax.numpy as jnp

    def norm(x: Any, scale: Any, offset: Any) -> Any:
        mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + EPSILON) * scale + offset

    def attend(q: Any, k: Any, v: Any) -> Any:
        seen = jnp.tril(jnp.ones((q.shape[2], q.shape[2]), bool))
        scores = (q * DEPTH**-0.5) @ jnp.swapaxes(k, 2, 3)
        return jax.nn.softmax(jnp.where(seen, scores, -1e30), -1) @ v

    def loss(logits: Any, labels: Any) -> Any:
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

    return program.Operations(
        embed=lambda table, words: table[words],
        norm=norm,
        relu=jax.nn.relu,
        reshape=jnp.reshape,
        turn=lambda x: jnp.swapaxes(x, 1, 2),
        attend=attend,
        loss=loss,
    )


def _tensorflow() -> program.Operations:
    import tensorflow as tf

    def norm(x: Any, scale: Any, offset: Any) -> Any:
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + EPSILON) * scale + offset

    def attend(q: Any, k: Any, v: Any) -> Any:
        seen = tf.linalg.band_part(tf.ones((q.shape[2], q.shape[2]), tf.bool), -1, 0)
        scores = tf.matmul(q * DEPTH**-0.5, k, transpose_b=True)
        return tf.nn.softmax(tf.where(seen, scores, -1e30), -1) @ v

    return program.Operations(
        embed=tf.nn.embedding_lookup,
        norm=norm,
        relu=tf.nn.relu,
        reshape=tf.reshape,
        turn=lambda x: tf.transpose(x, (0, 2, 1, 3)),
        attend=attend,
        loss=lambda x, labels: tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)),
    )


OPERATIONS = {"limelight": _limelight, "torch": _torch, "jax": _jax, "tensorflow": _tensorflow}
TASK = training.Task(program.loss, program.parameters, program.batch, OPERATIONS, 1e-2)
FUSED = TASK._replace(operations={"torch": lambda: _torch(fused=True)})
LIBRARIES = [
    *[library for library in training.libraries(TASK) if library.name != "variables"],
    Library("torch fused", "torch", lambda: training.torch(FUSED)),
]
EVALUATION = evaluation.Evaluation("transformer", LIBRARIES, ROWS, QUICK, BARS, rounds=5, minutes=6, sizes=SIZES)


if __name__ == "__main__":
    evaluation.run(EVALUATION, __doc__)

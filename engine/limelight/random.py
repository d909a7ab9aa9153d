"""Random tensors from one seeded stream: `ll.random.normal((2, 3))`."""

from __future__ import annotations

from limelight.ops.drawing import bernoulli, dropout_mask, integers, normal, permutation, seed, uniform

__all__ = ["bernoulli", "dropout_mask", "integers", "normal", "permutation", "seed", "uniform"]

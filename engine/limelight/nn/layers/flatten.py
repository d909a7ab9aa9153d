"""From images or sequences to vectors."""

from __future__ import annotations

from math import prod

from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ShapeError
from limelight.nn.layers.layer import Layer


class Flatten(Layer):
    """All axes but the first made one: (batch, ...) to (batch, features). All sizes but the first must be known.

    >>> import limelight as ll
    >>> ll.nn.Flatten()(ll.ones((5, 4, 4, 3))).shape
    (5, 48)
    """

    def call(self, x: TensorLike) -> Tensor:
        x = as_tensor(x)
        sizes = [n for n in x.shape[1:] if n is not None]
        if not x.ndim or len(sizes) < x.ndim - 1:
            raise ShapeError(f"Flatten needs an input (batch, ...) with all sizes but the first known, got {x.spec}")
        return x.reshape((-1 if x.shape[0] is None else x.shape[0], prod(sizes)))

"""`Flatten`: from images or sequences to vectors."""

from __future__ import annotations

from math import prod

from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ShapeError
from limelight.nn.layers.layer import Layer


class Flatten(Layer):
    """Flattening: all axes but the first made one.

    >>> import limelight as ll
    >>> ll.nn.Flatten()(ll.ones((5, 4, 4, 3))).shape
    (5, 48)
    """

    def __init__(self) -> None:
        """Takes no settings, and says so where it is given some."""

    def call(self, x: TensorLike) -> Tensor:
        """The input as a matrix.

        Args:
            x: (batch, ...), any dtype; all sizes but the first must be known.

        Returns:
            (batch, features), the elements of each example in row-major order.

        Raises:
            ShapeError: `x` has no axis, or a size besides the first is unknown.
        """
        x = as_tensor(x)
        sizes = [n for n in x.shape[1:] if n is not None]
        if not x.ndim or len(sizes) < x.ndim - 1:
            raise ShapeError(f"Flatten needs an input (batch, ...) with all sizes but the first known, got {x.spec}")
        return x.reshape((-1 if x.shape[0] is None else x.shape[0], prod(sizes)))

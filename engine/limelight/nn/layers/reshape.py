"""`Reshape`: each example in another shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from limelight.core.shapes import show
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, ShapeError
from limelight.nn.layers.layer import Layer


class Reshape(Layer):
    """Reshaping: the axes of each example, all but the first, become others.

    Args:
        shape: that of an example, without the batch: a size, or several in a tuple; one may be -1 and follows from the
            others.
        more: further sizes, as of `Reshape(4, 4, -1)`.

    Raises:
        ArgumentError: a size is neither a positive int nor the only -1.

    >>> import limelight as ll
    >>> ll.nn.Reshape((4, 4, -1))(ll.ones((5, 48))).shape
    (5, 4, 4, 3)
    """

    def __init__(self, shape: int | Sequence[int], *more: int) -> None:
        sizes: Sequence[Any] = shape if isinstance(shape, Sequence) and not more else (shape, *more)
        if any(isinstance(n, bool) or not hasattr(n, "__index__") for n in sizes):
            raise ArgumentError(f"Reshape: shape must be the sizes of an example, as (4, 4, 3); got {shape!r}")
        self.shape = tuple([n.__index__() for n in sizes])
        if self.shape.count(-1) > 1 or any(n < 1 and n != -1 for n in self.shape):
            raise ArgumentError(f"Reshape: sizes must be positive, and one may be -1; got {shape!r}")

    def call(self, x: TensorLike) -> Tensor:
        """The input with examples in the shape.

        Args:
            x: (batch, ...), any dtype; all sizes but the first must be known.

        Returns:
            (batch, *shape), the elements of each example in row-major order.

        Raises:
            ShapeError: `x` has no axis, a size besides the first is unknown, or an example has another number of
                elements.
        """
        x = as_tensor(x)
        sizes = [n for n in x.shape[1:] if n is not None]
        if not x.ndim or len(sizes) < x.ndim - 1:
            raise ShapeError(f"{self!r} needs an input (batch, ...) with all sizes but the first known, got {x.spec}")
        count, given = prod(sizes), prod(n for n in self.shape if n != -1)
        if count % given or (-1 not in self.shape and count != given):
            raise ShapeError(
                f"{self!r}: an example of {x.spec} has {count} elements, which do not fill {show(self.shape)}"
            )
        shape = [count // given if n == -1 else n for n in self.shape]  # -1 is free for a batch of unknown size
        return x.reshape((-1 if x.shape[0] is None else x.shape[0], *shape))

"""`Upsample`: pictures made larger."""

from __future__ import annotations

from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ShapeError
from limelight.nn.functional._operands import choice
from limelight.nn.functional.resizing import resize
from limelight.nn.layers.constructor_checks import checked_size
from limelight.nn.layers.layer import Layer


class Upsample(Layer):
    """Each axis of space made `factor` times as long; see `ll.nn.resize`.

    Args:
        factor: how many times.
        method: "nearest" or "linear".

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> ll.nn.Upsample(2)(ll.ones((1, 4, 4, 3))).shape
    (1, 8, 8, 3)
    """

    def __init__(self, factor: int, method: str = "nearest") -> None:
        self.factor = checked_size("Upsample", "factor", factor)
        self.method = choice("Upsample", "method", method, ("nearest", "linear"))

    def call(self, x: TensorLike) -> Tensor:
        """The input, larger.

        Args:
            x: (batch, *space, channels); the sizes of space must be known.

        Returns:
            (batch, *(factor * space), channels), of the dtype of `x`.

        Raises:
            ShapeError: `x` has fewer than three axes, or an unknown size of space.
            DTypeError: `x` is not floating, for "linear".
        """
        x = as_tensor(x)
        if None in x.shape[1:-1]:
            raise ShapeError(f"{self!r} needs (batch, *space, channels) with all sizes of space known, got {x.spec}")
        return resize(x, [self.factor * (n or 0) for n in x.shape[1:-1]], self.method)

"""`LeakyReLU`: an activation with a setting, as a layer. `Sequential` takes those without as functions."""

from __future__ import annotations

from limelight.core.tensor import Tensor, TensorLike
from limelight.nn.functional.activations import leaky_relu
from limelight.nn.layers.constructor_checks import checked_number
from limelight.nn.layers.layer import Layer


class LeakyReLU(Layer):
    """`ll.nn.leaky_relu` as a layer: `x` where it is positive, else `slope * x` (Maas et al. 2013).

    Args:
        slope: that on the negative side, at least 0; 0.01.

    Raises:
        ArgumentError: the slope is no such number.

    >>> import limelight as ll
    >>> ll.nn.LeakyReLU(0.5)(ll.constant([-2.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    def __init__(self, slope: float = 0.01) -> None:
        self.slope = checked_number("LeakyReLU", "slope", slope)

    def call(self, x: TensorLike) -> Tensor:
        """The activation of each element.

        Args:
            x: any shape, floating.

        Returns:
            A tensor of the shape and dtype of `x`.

        Raises:
            DTypeError: `x` is not floating.
        """
        return leaky_relu(x, self.slope)

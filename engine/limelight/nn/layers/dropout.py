"""`Dropout` as a layer."""

from __future__ import annotations

from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError
from limelight.nn.layers.constructor_checks import checked_number
from limelight.nn.layers.layer import Layer, check_training
from limelight.random import dropout_mask


class Dropout(Layer):
    """Dropout (Srivastava et al. 2014): while training, sets elements to 0 and scales the others by 1 / (1 - rate).

    Args:
        rate: the probability with which an element is set to 0; 0 <= rate < 1; a number, tensor or variable.

    Raises:
        ArgumentError: the rate is out of this range.

    >>> import limelight as ll
    >>> layer = ll.nn.Dropout(0.5)
    >>> layer(ll.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    >>> sorted(set(layer(ll.ones(100), training=True).tolist()))
    [0.0, 2.0]
    """

    def __init__(self, rate: TensorLike) -> None:
        if not 0.0 <= checked_number("Dropout", "rate", rate) < 1.0:
            raise ArgumentError(f"Dropout: rate must be at least 0 and below 1, got {rate}")
        self.rate = rate

    def call(self, x: TensorLike, training: bool = False) -> Tensor:
        """The input with a new random mask on each call, which the gradient uses as well.

        Args:
            x: any shape; floating while training.
            training: whether elements are dropped; otherwise `x` is returned as it is. False.

        Returns:
            A tensor of the shape and dtype of `x`.

        Raises:
            DTypeError: `x` is not floating while training.
        """
        x = as_tensor(x)
        if training is not False and training is not True:
            check_training(self, training)
        never = isinstance(self.rate, (int, float)) and self.rate == 0
        return x * dropout_mask(x, self.rate) if training and not never else x

"""Dropout as a layer."""

from __future__ import annotations

from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError
from limelight.nn.layers.layer import Layer
from limelight.nn.layers.settings import checked_number
from limelight.random import dropout_mask


class Dropout(Layer):
    """While training, sets elements to 0 with probability `rate` and scales the others by 1 / (1 - rate).

    Otherwise returns its input. Raises ArgumentError unless 0 <= rate < 1 (Srivastava et al. 2014).

    >>> import limelight as ll
    >>> layer = ll.nn.Dropout(0.5)
    >>> layer(ll.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    >>> sorted(set(layer(ll.ones(100), training=True).tolist()))
    [0.0, 2.0]
    """

    def __init__(self, rate: float) -> None:
        if not 0.0 <= checked_number("Dropout", "rate", rate) < 1.0:
            raise ArgumentError(f"Dropout: rate must be at least 0 and below 1, got {rate}")
        self.rate = rate

    def call(self, x: TensorLike, training: bool = False) -> Tensor:
        x = as_tensor(x)
        return x * dropout_mask(x, self.rate) if training and self.rate else x

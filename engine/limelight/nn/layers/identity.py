"""`Identity`: a layer that changes nothing."""

from __future__ import annotations

from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.nn.layers.layer import Layer


class Identity(Layer):
    """The identity: a place in a model where a layer might be.

    >>> import limelight as ll
    >>> ll.nn.Identity()(ll.ones(2)).tolist()
    [1.0, 1.0]
    """

    def __init__(self) -> None:
        """Takes no settings, and says so where it is given some."""

    def call(self, x: TensorLike) -> Tensor:
        """The input, of any shape and dtype, as a tensor."""
        return as_tensor(x)

"""Neural networks: layers, activations, losses, dropout and initial values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.module import Module as Module
from limelight.nn import functional, layers
from limelight.nn import initializers as initializers
from limelight.nn.functional import *  # noqa: F403  # its own list says which
from limelight.nn.layers import *  # noqa: F403  # the same
from limelight.nn.weights import load_weights as load_weights
from limelight.nn.weights import save_weights as save_weights
from limelight.ops.nn.embedding import embedding as embedding
from limelight.random import dropout_mask
from limelight.user_code import hints

if not TYPE_CHECKING:  # type checkers go by the imports, and are to know of names that are missing
    __all__ = ["Module", "dropout", "embedding", "load_weights", "save_weights"]
    __all__ += layers.__all__
    __all__ += functional.__all__
    __getattr__ = hints.missing_name_hint("nn")
    __dir__ = hints.listing([*__all__, "initializers"])


def dropout(x: TensorLike, rate: TensorLike, /) -> Tensor:
    """Dropout: each element set to 0 with probability `rate` and the others scaled by 1 / (1 - rate).

    The gradient uses the same mask (Srivastava et al. 2014). A staged function draws a new one on every call.

    Args:
        x: any shape, floating.
        rate: a probability, 0 <= rate < 1; a number, or a scalar tensor, to which gradients flow by the scale.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        ArgumentError: the rate is out of this range.
        DTypeError: `x` is not floating.

    >>> import limelight as ll
    >>> ll.nn.dropout(ll.ones(3), 0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    x = as_tensor(x)
    return x * dropout_mask(x, rate)

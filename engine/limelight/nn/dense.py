"""The fully connected layer."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

from limelight import random
from limelight.dtypes import DTypeLike
from limelight.errors import ShapeError
from limelight.module import Module
from limelight.ops.creation import zeros
from limelight.tensor import Tensor, TensorLike, as_tensor
from limelight.variables import Variable


class Dense(Module):
    """`activation(x @ kernel + bias)`.

    `units`: the size of the last axis of the output. The kernel, of shape (inputs, units), and the bias, of shape
    (units,), are created on the first call, when the size of the input is known; the kernel is drawn uniformly from
    +-sqrt(6 / (inputs + units)) (Glorot and Bengio 2010).

    >>> import limelight as ll
    >>> layer = ll.nn.Dense(2, activation=ll.nn.relu)
    >>> layer(ll.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(
        self,
        units: int,
        activation: Callable[[Tensor], Tensor] | None = None,
        use_bias: bool = True,
        dtype: DTypeLike = "float32",
    ) -> None:
        self.units = units
        self.activation = activation
        self.use_bias = use_bias
        self.dtype = dtype
        self.kernel: Variable | None = None
        self.bias: Variable | None = None

    def call(self, x: TensorLike) -> Any:
        x = as_tensor(x)
        if self.kernel is None:
            self._build(x)
        assert self.kernel is not None
        y = x @ self.kernel
        if self.bias is not None:
            y = y + self.bias
        return y if self.activation is None else self.activation(y)

    def _build(self, x: Tensor) -> None:
        inputs = x.shape[-1] if x.ndim else None
        if inputs is None:
            raise ShapeError(f"Dense needs an input whose last size is known, got {x.spec}")
        limit = sqrt(6.0 / (inputs + self.units))
        shape = (inputs, self.units)
        self.kernel = Variable(lambda: random.uniform(shape, -limit, limit, dtype=self.dtype), name="kernel")
        if self.use_bias:
            self.bias = Variable(lambda: zeros((self.units,), dtype=self.dtype), name="bias")

"""`Dense`, the fully connected layer."""

from __future__ import annotations

from limelight.core.autograph_hook import maybe_converted
from limelight.core.dtypes import DTypeLike
from limelight.core.tensor import Tensor, TensorLike
from limelight.core.variable import Variable
from limelight.nn import initializers
from limelight.nn.initializers import Initializer
from limelight.nn.layers.constructor_checks import (
    Activation,
    checked_activation,
    checked_dtype,
    checked_flag,
    checked_size,
)
from limelight.nn.layers.layer import Layer


class Dense(Layer):
    """A fully connected layer: `activation(x @ kernel + bias)`.

    The kernel, of shape (features, units), and the bias, of shape (units,), are made on the first call, when the number
    of features is known.

    Args:
        units: the size of the result's last axis.
        activation: a function of a tensor or the name of one in `ll.nn`; by default none.
        use_bias: whether a bias is added. True.
        dtype: the dtype of the weights, floating; float32.
        kernel_initializer: a function of a shape and a dtype, or the name of one in `ll.nn.initializers`.
        bias_initializer: the same for the bias.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> layer = ll.nn.Dense(2, activation=ll.nn.relu)
    >>> layer(ll.ones((5, 3))).shape, layer.kernel.shape
    ((5, 2), (3, 2))
    """

    def __init__(
        self,
        units: int,
        activation: str | Activation | None = None,
        *,
        use_bias: bool = True,
        dtype: DTypeLike = "float32",
        kernel_initializer: str | Initializer = "glorot_uniform",
        bias_initializer: str | Initializer = "zeros",
    ) -> None:
        self.units = checked_size("Dense", "units", units)
        self.activation = checked_activation("Dense", activation)
        self.use_bias = checked_flag("Dense", "use_bias", use_bias)
        self.dtype = checked_dtype("Dense", dtype)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel: Variable | None = None
        self.bias: Variable | None = None

    def build(self, features: int) -> None:
        self.kernel = self.weight("kernel", (features, self.units), self.kernel_initializer)
        if self.use_bias:
            self.bias = self.weight("bias", (self.units,), self.bias_initializer)

    def call(self, x: TensorLike) -> Tensor:
        """The affine map and the activation.

        Args:
            x: (..., features), floating or complex; the features of the first call are those of all.

        Returns:
            (..., units), of the layer's dtype, or complex.

        Raises:
            ShapeError: `x` has no axis, or its last size is not that of the first input.
            DTypeError: `x` is of integers or booleans.
        """
        y = self.ready(x) @ self.kernel
        if self.bias is not None:
            y = y + self.bias
        return y if self.activation is None else maybe_converted(self.activation)(y)

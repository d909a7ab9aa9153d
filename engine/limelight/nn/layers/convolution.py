"""`Conv` and `ConvTranspose`: convolutions and their transposes."""

from __future__ import annotations

from collections.abc import Sequence

from limelight.core.autograph_hook import maybe_converted
from limelight.core.dtypes import DTypeLike
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, ShapeError
from limelight.nn import initializers
from limelight.nn.initializers import Initializer, Sizes
from limelight.nn.layers.channels_first import warn_if_channels_first
from limelight.nn.layers.constructor_checks import (
    Activation,
    check_spatial,
    check_windows,
    checked_activation,
    checked_dtype,
    checked_flag,
    checked_size,
    checked_sizes,
    checked_window,
    spatial_axes,
)
from limelight.nn.layers.layer import Layer
from limelight.ops.nn._windows import NAMES, PaddingLike
from limelight.ops.nn.convolution import conv, conv_transpose


class _Convolution(Layer):
    """What both directions share: a window over one to three spatial axes, and weights."""

    form = "(batch, *space, channels)"

    def __init__(
        self,
        filters: int,
        window: int | Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        padding: PaddingLike = "same",
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        activation: str | Activation | None = None,
        use_bias: bool = True,
        dtype: DTypeLike = "float32",
        kernel_initializer: str | Initializer = "glorot_uniform",
        bias_initializer: str | Initializer = "zeros",
    ) -> None:
        name = type(self).__name__
        self.filters = checked_size(name, "filters", filters)
        self.window = checked_window(name, window)
        self.stride = checked_sizes(name, "stride", stride)
        self.padding = padding
        self.dilation = checked_sizes(name, "dilation", dilation)
        self.groups = checked_size(name, "groups", groups)
        if filters % self.groups:
            raise ArgumentError(f"{name}: {filters} filters do not divide into {groups} groups")
        self.activation = checked_activation(name, activation)
        self.use_bias = checked_flag(name, "use_bias", use_bias)
        self.dtype = checked_dtype(name, dtype)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel: Variable | None = None
        self.bias: Variable | None = None
        n = spatial_axes(self.window)
        self._rank, self._form = n + 2, f"({NAMES[n - 1]})"
        check_windows(name, n, self.stride, self.padding, self.dilation)

    def ready(self, x: TensorLike) -> Tensor:
        x = as_tensor(x)
        check_spatial(repr(self), self.window, x)
        if self._features is None:
            warn_if_channels_first(self, self._windows, x)
        return super().ready(x)

    @property
    def _windows(self) -> tuple[int, ...]:
        """The size of the kernel along each spatial axis."""
        return self.window if isinstance(self.window, tuple) else (self.window, self.window)

    def finished(self, y: Tensor) -> Tensor:
        """`y` with bias and activation."""
        if self.bias is not None:
            y = y + self.bias
        return y if self.activation is None else maybe_converted(self.activation)(y)

    def make(self, kernel: Sizes, initializer: Initializer) -> None:
        """Makes the weights; `kernel` is the shape without the window, which goes first."""
        self.kernel = self.weight("kernel", (*self._windows, *kernel), initializer)
        if self.use_bias:
            self.bias = self.weight("bias", (self.filters,), self.bias_initializer)


class Conv(_Convolution):
    """A convolution in one to three spatial dimensions, then bias and activation.

    The kernel, of shape (*window, channels / groups, filters), and the bias, of shape (filters,), are made on the first
    call. Unless told otherwise it pads, so that a stride of 1 keeps the size; in PyTorch and Keras it does not
    (`padding="valid"`). Channels are the last axis; a first input of squares behind 1 or 3 channels, as PyTorch has
    them, is warned of.

    Args:
        filters: how many channels the result has.
        window: the size of the kernel: one for each spatial axis, as (3,) for lines or (3, 3, 3) for volumes; a number
            is for the two axes of images.
        stride: from one window to the next, a number or one for each spatial axis; 1.
        padding: "same" (the default), "valid", or numbers; see `ll.nn.conv`.
        dilation: from one place of the window to the next, as `stride`; 1.
        groups: how many parts channels and filters are cut into; 1.
        activation: a function of a tensor or the name of one in `ll.nn`; by default none.
        use_bias: whether a bias is added. True.
        dtype: the dtype of the weights, floating; float32.
        kernel_initializer: a function of a shape and a dtype, or the name of one in `ll.nn.initializers`.
        bias_initializer: the same for the bias.

    Raises:
        ArgumentError: a setting is not as above or not for so many axes, or the groups do not divide the filters.

    >>> import limelight as ll
    >>> layer = ll.nn.Conv(8, 3, stride=2, activation=ll.nn.relu)
    >>> layer(ll.ones((2, 28, 28, 3))).shape, layer.kernel.shape
    ((2, 14, 14, 8), (3, 3, 3, 8))
    """

    def build(self, features: int) -> None:
        if features % self.groups:
            raise ShapeError(f"{self!r}: the {features} channels do not divide into {self.groups} groups")
        self.make((features // self.groups, self.filters), self.kernel_initializer)

    def call(self, x: TensorLike) -> Tensor:
        """The convolution, bias and activation.

        Args:
            x: (batch, *space, channels), with the spatial axes of the window; floating.

        Returns:
            (batch, *windows, filters), of the layer's dtype.

        Raises:
            ShapeError: `x` has another rank or other channels, the groups do not divide them, or a window does not fit.
            DTypeError: `x` is not floating.
        """
        x = self.ready(x)
        return self.finished(conv(x, self.kernel, self.stride, self.padding, self.dilation, self.groups))


class ConvTranspose(_Convolution):
    """A transposed convolution in one to three spatial dimensions, then bias and activation.

    With padding "same" the space is `stride` times as large. The kernel has shape (*window, filters / groups,
    channels), that of the convolution that is transposed; see `ll.nn.conv_transpose`. It is made on the first call.
    Initializers are asked for that shape. "he_normal" and its like count as inputs what goes into an element of the
    result: the channels / groups, in each place of the window. Keras and PyTorch count the filters there, so that the
    result grows with the channels.

    Args:
        filters: how many channels the result has.
        window: the size of the kernel: one for each spatial axis, as (3,) for lines or (3, 3, 3) for volumes; a number
            is for the two axes of images.
        stride: from one window to the next, a number or one for each spatial axis; 1.
        padding: "same" (the default), "valid", or numbers: the margins of the convolution, which are cut off.
        dilation: from one place of the window to the next, as `stride`; 1.
        groups: how many parts channels and filters are cut into; 1.
        activation: a function of a tensor or the name of one in `ll.nn`; by default none.
        use_bias: whether a bias is added. True.
        dtype: the dtype of the weights, floating; float32.
        kernel_initializer: a function of a shape and a dtype, or the name of one in `ll.nn.initializers`.
        bias_initializer: the same for the bias.

    Raises:
        ArgumentError: a setting is not as above or not for so many axes, or the groups do not divide the filters.

    >>> import limelight as ll
    >>> layer = ll.nn.ConvTranspose(3, 4, stride=2)
    >>> layer(ll.ones((2, 14, 14, 8))).shape, layer.kernel.shape
    ((2, 28, 28, 3), (4, 4, 3, 8))
    """

    def build(self, features: int) -> None:
        if features % self.groups:
            raise ShapeError(f"{self!r}: the {features} channels do not divide into {self.groups} groups")
        self.make((self.filters // self.groups, features), self._first_kernel)

    def call(self, x: TensorLike) -> Tensor:
        """The transposed convolution, bias and activation.

        Args:
            x: (batch, *windows, channels), with the spatial axes of the window; floating.

        Returns:
            (batch, *space, filters), of the layer's dtype.

        Raises:
            ShapeError: `x` has another rank or other channels, or the groups do not divide them.
            DTypeError: `x` is not floating.
        """
        x = self.ready(x)
        return self.finished(conv_transpose(x, self.kernel, self.stride, self.padding, self.dilation, self.groups))

    def _first_kernel(self, shape: Sizes, dtype: DTypeLike) -> Tensor:
        initializer = self.kernel_initializer
        if not initializers.counts_fans(initializer):
            return initializer(shape, dtype)
        *window, outputs, inputs = shape  # drawn for a convolution that has as many: all its elements are alike
        return initializer((*window, inputs // self.groups, outputs * self.groups), dtype).reshape(shape)

"""`MaxPool` and `AvgPool`: pools over windows of the space."""

from __future__ import annotations

from collections.abc import Sequence

from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.nn.layers.constructor_checks import (
    check_spatial,
    check_windows,
    checked_sizes,
    checked_window,
    spatial_axes,
)
from limelight.nn.layers.layer import Layer
from limelight.ops.nn._windows import PaddingLike
from limelight.ops.nn.pooling import avg_pool, max_pool


class _Pool(Layer):
    """What both share: the arguments of `ll.nn.max_pool`."""

    def __init__(
        self, window: int | Sequence[int], stride: int | Sequence[int] | None = None, *, padding: PaddingLike = "valid"
    ) -> None:
        name = type(self).__name__
        self.window = checked_window(name, window)
        self.stride = stride if stride is None else checked_sizes(name, "stride", stride)
        self.padding = padding
        check_windows(name, spatial_axes(self.window), self.stride, padding)

    def ready(self, x: TensorLike) -> Tensor:
        x = as_tensor(x)
        check_spatial(repr(self), self.window, x)
        return x


class MaxPool(_Pool):
    """Max pooling: the largest element in each window.

    Args:
        window: its size: one for each spatial axis, as (2,) for lines or (2, 2, 2) for volumes; a number is for the two
            axes of images.
        stride: from one window to the next, a number or one for each spatial axis; by default that of the window.
        padding: "valid" (no margins, the default), "same", or numbers less than the window; see `ll.nn.max_pool`.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> ll.nn.MaxPool(2)(ll.ones((5, 28, 28, 3))).shape
    (5, 14, 14, 3)
    """

    def call(self, x: TensorLike) -> Tensor:
        """The largest elements.

        Args:
            x: (batch, *space, channels), with the spatial axes of the window; real.

        Returns:
            (batch, *windows, channels), of the dtype of `x`.

        Raises:
            ShapeError: `x` has another rank, or a window does not fit into the space.
            DTypeError: `x` is not real.
        """
        return max_pool(self.ready(x), self.window, self.stride, self.padding)


class AvgPool(_Pool):
    """Average pooling: the mean of each window, margins not counted.

    Args:
        window: its size: one for each spatial axis, as (2,) for lines or (2, 2, 2) for volumes; a number is for the two
            axes of images.
        stride: from one window to the next, a number or one for each spatial axis; by default that of the window.
        padding: "valid" (no margins, the default), "same", or numbers less than the window; see `ll.nn.avg_pool`.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> ll.nn.AvgPool(2)(ll.ones((5, 28, 28, 3))).shape
    (5, 14, 14, 3)
    """

    def call(self, x: TensorLike) -> Tensor:
        """The means.

        Args:
            x: (batch, *space, channels), with the spatial axes of the window; floating.

        Returns:
            (batch, *windows, channels), of the dtype of `x`.

        Raises:
            ShapeError: `x` has another rank, or a window does not fit into the space.
            DTypeError: `x` is not floating.
        """
        return avg_pool(self.ready(x), self.window, self.stride, self.padding)

"""Pools over windows of the space."""

from __future__ import annotations

from collections.abc import Sequence

from limelight.core.tensor import Tensor, TensorLike
from limelight.nn.layers.layer import Layer
from limelight.nn.layers.settings import checked_sizes
from limelight.ops.nn._windows import PaddingLike
from limelight.ops.nn.pooling import avg_pool, max_pool


class _Pool(Layer):
    """What both share: the arguments of `ll.nn.max_pool`."""

    def __init__(
        self, window: int | Sequence[int], stride: int | Sequence[int] | None = None, *, padding: PaddingLike = "valid"
    ) -> None:
        name = type(self).__name__
        self.window = checked_sizes(name, "window", window)
        self.stride = stride if stride is None else checked_sizes(name, "stride", stride)
        self.padding = padding


class MaxPool(_Pool):
    """The largest element in each window: (batch, *space, channels) to (batch, *windows, channels).

    Windows lie side by side unless `stride` says otherwise; see `ll.nn.max_pool`.

    >>> import limelight as ll
    >>> ll.nn.MaxPool(2)(ll.ones((5, 28, 28, 3))).shape
    (5, 14, 14, 3)
    """

    def call(self, x: TensorLike) -> Tensor:
        return max_pool(x, self.window, self.stride, self.padding)


class AvgPool(_Pool):
    """The mean of each window, margins not counted: (batch, *space, channels) to (batch, *windows, channels).

    Windows lie side by side unless `stride` says otherwise; see `ll.nn.avg_pool`.

    >>> import limelight as ll
    >>> ll.nn.AvgPool(2)(ll.ones((5, 28, 28, 3))).shape
    (5, 14, 14, 3)
    """

    def call(self, x: TensorLike) -> Tensor:
        return avg_pool(x, self.window, self.stride, self.padding)

"""`MaxPool` and `AvgPool`: pools over windows of the space."""

from __future__ import annotations

from collections.abc import Sequence

from limelight.core.tensor import Tensor, TensorLike
from limelight.nn.layers.constructor_checks import checked_sizes
from limelight.nn.layers.layer import Layer
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
    """Max pooling: the largest element in each window.

    Args:
        window: its size; one number, or one for each of one to three spatial axes.
        stride: from one window to the next, as `window`; by default as large as the window.
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
            x: (batch, *space, channels), with one to three spatial axes; real.

        Returns:
            (batch, *windows, channels), of the dtype of `x`.

        Raises:
            ShapeError: `x` has another rank, or a window does not fit into the space.
            DTypeError: `x` is not real.
            ArgumentError: a setting does not fit the number of spatial axes.
        """
        return max_pool(x, self.window, self.stride, self.padding)


class AvgPool(_Pool):
    """Average pooling: the mean of each window, margins not counted.

    Args:
        window: its size; one number, or one for each of one to three spatial axes.
        stride: from one window to the next, as `window`; by default as large as the window.
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
            x: (batch, *space, channels), with one to three spatial axes; floating.

        Returns:
            (batch, *windows, channels), of the dtype of `x`.

        Raises:
            ShapeError: `x` has another rank, or a window does not fit into the space.
            DTypeError: `x` is not floating.
            ArgumentError: a setting does not fit the number of spatial axes.
        """
        return avg_pool(x, self.window, self.stride, self.padding)

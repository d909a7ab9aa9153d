"""The warning of pictures whose channels come first, as PyTorch has them, where channels are the last axis.

A convolution takes them for pictures of one or three rows with as many channels as there were columns: nothing fails,
and the model learns badly. It is told of where the shape leaves hardly any doubt, when a layer makes its weights.
"""

from __future__ import annotations

from collections.abc import Sequence

from limelight.core.tensor import Tensor
from limelight.user_code import source_line
from limelight.user_code.warn_at import warn_at

_CHANNELS = (1, 3)
_SMALLEST = 8
"""The side of the smallest picture that is told of: deep in a network, (batch, 3, 4, 4) may be what is meant."""


def warn_if_channels_first(layer: object, window: Sequence[int], x: Tensor) -> None:
    """Warns at the user's line where `x`, the first input of a convolution, has its channels first: UserWarning."""
    line = source_line.user_line()
    if line is None or not _is_channels_first(x.shape, window):
        return
    rows, columns, features = x.shape[1], " x ".join(map(str, x.shape[2:-1])), x.shape[-1]
    message = (
        f"{layer!r}: channels are the last axis, and {x.spec} looks like {rows} channels first{source_line.at(line)}: "
        f"it is taken for {rows} x {columns} places with {features} channels. Write ll.moveaxis(x, 1, -1)"
    )
    warn_at(line, message, UserWarning)


def _is_channels_first(shape: Sequence[int | None], window: Sequence[int]) -> bool:
    """Whether 1 or 3 channels are followed by a square, or a cube, and a window would reach across the channels."""
    channels, *space = shape[1:]
    is_square = len(space) > 1 and len(set(space)) == 1 and space[0] is not None and space[0] >= _SMALLEST
    return channels in _CHANNELS and is_square and window[0] > 1

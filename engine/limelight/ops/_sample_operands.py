"""Samples as operands: of integers and booleans statistics are float32, as their means are."""

from __future__ import annotations

from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import DTypeError


def samples(name: str, *given: TensorLike, accepts: str = "inexact") -> tuple[Tensor, ...]:
    """What a function of samples computes with.

    Args:
        name: that of the function, for the message.
        *given: its operands.
        accepts: "inexact" for floating or complex ones, "floating" for those alone.

    Returns:
        Tensors; integers and booleans in the floating dtype that stands beside them, else in float32.

    Raises:
        DTypeError: one is complex where only floating ones are accepted.
    """
    tensors = [as_tensor(x) for x in given]
    wanted = _beside([x.dtype for x in tensors])
    for x in tensors:
        if accepts == "floating" and dtypes.kind(x.dtype) == "complex":
            raise DTypeError(f"{name} needs real operands, got {x.spec}; write ll.real(x), ll.imag(x) or ll.abs(x)")
    return tuple([x if dtypes.is_inexact(x.dtype) else x.astype(wanted) for x in tensors])


def _beside(given: list[DType]) -> DType:
    floating = [d for d in given if dtypes.is_floating(d)]
    return max(floating, key=lambda d: d.itemsize, default=dtypes.float32)

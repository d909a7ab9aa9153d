"""What loops keep for their gradients: kinds of tensors, to make zeros of later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from limelight.autodiff import zeros
from limelight.core import device_scopes, dispatch
from limelight.core.devices import CPU0, Device
from limelight.core.dtypes import DType
from limelight.core.op import get
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor
from limelight.staging.call_gradient import watched_mask


def watched_in_loop(inputs: Sequence[Any], n: int, mask: int) -> tuple[bool, ...]:
    """Which inputs a gradient is wanted for: those in `mask`, and the `n` first, which later steps make of others."""
    return tuple([w and (i < n or bool(mask >> i & 1)) for i, w in enumerate(watched_mask(inputs))])


def kind_of(x: Any) -> tuple[Any, DType, Device]:
    """What zeros in the place of `x` need. Asked at once: a variable may have another size later."""
    return x.sizes(), x.dtype, x._device


def zeros_on(sizes: Any, dtype: DType, device: Device) -> Tensor:
    if device is CPU0:
        return zeros(sizes, dtype)
    with device_scopes.device(device):
        return zeros(sizes, dtype)


def look_up(kinds: Iterable[tuple[Any, DType, Device] | None]) -> None:
    """Reads sizes known only at run time, whether or not this backward pass needs them.

    Another one, of fewer gradients, may need zeros where this one has a gradient. What a forward half keeps is what the
    backward pass of all gradients reads.
    """
    for kind in kinds:
        if kind is not None and isinstance(kind[0], Tensor):
            dispatch.apply(get("identity"), (kind[0],))


def alike(like: Any) -> TensorSpec:
    """The spec of a gradient of `like`, a tensor or the spec of a tensor or variable."""
    return known(like.shape, like.dtype)

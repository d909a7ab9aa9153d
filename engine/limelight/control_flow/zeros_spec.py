"""What branches and loops keep of a tensor that may have no gradient: enough to make zeros of it later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from limelight.autodiff import zeros
from limelight.core import device_scopes, dispatch
from limelight.core.devices import CPU0, Device
from limelight.core.dtypes import DType
from limelight.core.op import get
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor
from limelight.staging.call_gradient import watched_mask


def watched_in_loop(inputs: Sequence[Any], n: int, mask: int) -> tuple[bool, ...]:
    """Which inputs a gradient is wanted for: those in `mask`, and the `n` carried values, which depend on others."""
    return tuple([w and (i < n or bool(mask >> i & 1)) for i, w in enumerate(watched_mask(inputs))])


class ZerosSpec(NamedTuple):
    """Sizes (a tuple, or a tensor where only the run tells them), dtype and device of a gradient of zeros."""

    sizes: Any
    dtype: DType
    device: Device

    def zeros(self) -> Tensor:
        if self.device is CPU0:
            return zeros(self.sizes, self.dtype)
        with device_scopes.device(self.device):
            return zeros(self.sizes, self.dtype)


def zeros_spec_of(x: Any) -> ZerosSpec:
    """The spec of zeros in the place of `x`. Taken in the forward pass: a variable may have another size later."""
    return ZerosSpec(x.sizes(), x.dtype, x._device)


def read_sizes(specs: Iterable[ZerosSpec | None]) -> None:
    """Reads sizes known only at run time, whether or not this backward pass needs them.

    The backward pass for fewer gradients may need zeros where the one for all gradients has a gradient. What a forward
    half keeps is what the backward pass for all gradients reads, so that one must read all sizes.
    """
    for spec in specs:
        if spec is not None and isinstance(spec.sizes, Tensor):
            dispatch.apply(get("identity"), (spec.sizes,))


def gradient_spec(like: Any) -> TensorSpec:
    """The spec of a gradient of `like`, a tensor or the spec of a tensor or variable."""
    return known(like.shape, like.dtype)

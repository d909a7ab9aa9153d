"""The same values elsewhere: `astype` in another dtype, `to` on another device."""

from __future__ import annotations

from typing import Any

from limelight.core import backends, devices, dtypes, shapes
from limelight.core.devices import Device
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import ArgumentError, DTypeError
from limelight.ops._shape_rules import same

__all__ = ["astype", "to"]

# astype


def _astype_infer(x: TensorSpec, dtype: DType) -> TensorSpec:
    if dtypes.kind(x.dtype) == "complex" and dtypes.kind(dtype) in ("integer", "floating"):
        raise DTypeError(
            f"astype: {x} has imaginary parts, which {dtype.name} cannot hold; write ll.real(x) or ll.abs(x)"
        )
    return known(x.shape, dtype)


def _astype_gradient(g: Tensor, x_dtype: DType) -> Tensor | None:
    if not dtypes.is_inexact(x_dtype) or not dtypes.is_inexact(g.dtype):
        return None
    if dtypes.kind(g.dtype) == "complex" and dtypes.kind(x_dtype) == "floating":
        g = g._real()
    return g.astype(x_dtype)


def _astype_on_gpu(xp: Any, x: Any, dtype: DType) -> Any:
    try:
        return x.astype(dtype)
    except ValueError as error:
        raise backends.lacking(dtype) from error


_astype = entry_point(defop(
    "astype",
    inputs="x",
    attrs="dtype",
    infer=_astype_infer,
    kernel=lambda xp, x, dtype: x.astype(dtype),
    special={"cupy": _astype_on_gpu},
    vjp={"x": _astype_gradient},
    elementwise=True,
    linear="x",
    maths={"x": "x̄ = ȳ in the dtype of x"},
))  # fmt: skip


@method("astype")
def astype(x: TensorLike, dtype: DTypeLike, /, *, copy: bool = True, device: str | Device | None = None) -> Tensor:
    """`x` with its elements converted to `dtype`.

    Differentiable between floating and complex dtypes.

    Args:
        x: any shape and dtype.
        dtype: the dtype of the result.
        copy: makes no difference, as tensors are immutable: a copy that could be told from `x` would have to be written
            to.
        device: where the result is; by default where `x` is.

    Returns:
        A tensor of the shape of `x`; `x` itself where it has that dtype and device already.

    Raises:
        DTypeError: complex numbers are to become real: take `real(x)` or `abs(x)`.

    >>> import limelight as ll
    >>> ll.astype(ll.constant([1, 0]), ll.bool_).tolist()
    [True, False]
    """
    if type(copy) is not bool:
        copy = shapes.flag("astype", "copy", copy)
    if type(x) is not Tensor:
        x = as_tensor(x)
    if device is not None:
        return astype(to(x, device), dtype)
    wanted = dtypes.BY_ID.get(id(dtype)) or dtypes.dtype(dtype)
    given = x.dtype
    if given is wanted:
        return x
    if given.kind == "c":
        _astype_infer(x.spec, wanted)  # NumPy would drop the imaginary parts with a warning
    return _astype(x, wanted)


# to_device

_to_device = entry_point(defop(
    "to_device",
    inputs="x",
    attrs="device",
    infer=same,
    kernel=lambda xp, x, device: x,  # whoever runs it moves the operand to its placement first
    placement=devices.find,
    vjp={"x": lambda g, x_device: g.to(x_device)},
    linear="x",
    maths={"x": "x̄ = ȳ on the device of x"},
))  # fmt: skip


@method("to")
def to(x: TensorLike, device: str | Device, /) -> Tensor:
    """`x` on `device`: a real copy where it is elsewhere, no bytes moved where it is there already.

    The gradient comes back to the device of `x`. Raises DeviceError for a device that does not exist.

    >>> import limelight as ll
    >>> ll.to(ll.constant(1.0), "cpu").device.short
    'CPU:0'
    """
    return _to_device((x,), devices.find(device).name)


@method("to_device")
def _to_device_of(x: Tensor, device: str | Device, /, *, stream: Any = None) -> Tensor:
    """The Array API's name for `to`. Every transfer is complete when it returns, so there is nothing to do on a stream.

    Raises ArgumentError when a stream is given.
    """
    if stream is not None:
        raise ArgumentError(f"to_device: stream={stream!r}: transfers are not queued on streams; leave it out")
    return to(x, device)


@method("cpu")
def _cpu(x: Tensor) -> Tensor:
    """This tensor on CPU:0."""
    return to(x, "CPU:0")


@method("gpu")
def _gpu(x: Tensor, index: int = 0) -> Tensor:
    """This tensor on the GPU with the given index; raises DeviceError where there is none."""
    return to(x, f"GPU:{index}")

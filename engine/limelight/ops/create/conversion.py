"""Tensors from other values and other libraries' arrays, in the Array API's form: `asarray`, `from_dlpack`.

Memory is shared with other libraries only where somebody asks for it: `from_dlpack`, and `asarray(copy=False)`. Tensors
go out by DLPack as copies, and with `copy=False` are lent, marked as read-only. PyTorch knows that mark and does not
heed it, so a tensor lent by default could be written to without any tape knowing.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from limelight.core import backends, device_scopes, devices, dispatch, dtypes
from limelight.core.array_conversion import has_own_dtype
from limelight.core.devices import Device
from limelight.core.dtypes import DTypeLike
from limelight.core.eager.numpy_interop import KNOWS_DLPACK_1
from limelight.core.tensor import Tensor, TensorLike, constant, wrap
from limelight.errors import ArgumentError, DTypeError
from limelight.ops._given_shape import run_on_device

__all__ = ["asarray", "from_dlpack"]


def asarray(
    obj: TensorLike,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    copy: bool | None = None,
) -> Tensor:
    """`obj` as a tensor.

    Args:
        obj: a Python number, a nested list of numbers or of tensors, an array, an object with a buffer, or a tensor.
        dtype: by default float32 for Python floats, int32 for ints (int64 beyond 32 bits), and that of an array;
            converted to by the rules of `ll.astype`.
        device: where the result is; by default where `obj` is or the scope around says.
        copy: by default what can be written to is copied, and tensors are not, since nobody could tell. With False
            NumPy's arrays are shared: whoever writes to one then changes the tensor.

    Returns:
        The tensor.

    Raises:
        ArgumentError: `copy=False`, and a copy would be needed.

    >>> import limelight as ll
    >>> ll.asarray([1, 2], dtype=ll.float32).tolist()
    [1.0, 2.0]
    """
    if device is not None:
        place = devices.find(device)
        if isinstance(obj, Tensor) and obj.device is not place:
            _check_copy_allowed(copy, f"it is on {obj.device.short}, not {place.short}")
            return asarray(obj.to(place), dtype=dtype)
        if not isinstance(obj, Tensor):
            return run_on_device(place, asarray, obj, dtype=dtype, copy=copy)
    if isinstance(obj, Tensor):
        if dtype is not None and dtypes.dtype(dtype) != obj.dtype:
            _check_copy_allowed(copy, f"it is {obj.dtype.name}, not {dtypes.dtype(dtype).name}")
            return obj.astype(dtype)
        return obj._as_own()
    if copy is False:
        return _share_memory(obj, dtype)
    if dtype is not None and has_own_dtype(obj):
        return constant(obj).astype(dtype)
    return constant(obj, dtype)


def _check_copy_allowed(copy: bool | None, why: str) -> None:
    if copy is False:
        raise ArgumentError(f"asarray: copy=False, but this needs a copy: {why}; leave `copy` out")


def _share_memory(obj: Any, dtype: DTypeLike | None) -> Tensor:
    """A tensor over the memory of a NumPy array."""
    if not isinstance(obj, np.ndarray):
        _check_copy_allowed(False, f"a {type(obj).__name__} is no array")
    own_dtype = dtypes.dtype(obj.dtype)
    if dtype is not None and dtypes.dtype(dtype) != own_dtype:
        _check_copy_allowed(False, f"it is {own_dtype.name}, not {dtypes.dtype(dtype).name}")
    tensor: Tensor = dispatch.current().constant(obj.view(), device_scopes.requested_device())
    return tensor


def from_dlpack(x: Any, /, *, device: str | Device | None = None, copy: bool | None = None) -> Tensor:
    """A tensor from another library's array, by the DLPack protocol, in the memory that it has.

    Unless `copy` is true, or the tensor is to be on another device than the array, the memory is shared: whoever writes
    to the array later changes the tensor. An array of CuPy or PyTorch on a GPU becomes a tensor there, and one on the
    host one of XLA:0 where that is asked for and the memory is aligned as XLA wants it, to 64 bytes.

    Args:
        x: an array with the method `__dlpack__`, or a tensor.
        device: where the result is; by default where the scope around says, else where the array lies.
        copy: whether the memory is copied; by default only where it must be.

    Returns:
        The tensor.

    Raises:
        BufferError: `copy=False`, and the memory cannot be shared.
        DeviceError: the array is on a GPU that is not here for limelight (without CuPy).
        DTypeError: `x` has no such method, or limelight does not have its dtype.

    >>> import numpy as np
    >>> import limelight as ll
    >>> ll.from_dlpack(np.arange(3.0)).tolist()
    [0.0, 1.0, 2.0]
    """
    place = device_scopes.requested_device() if device is None else devices.find(device)
    lends = type(x) is Tensor and x.device.kind == "CPU" and place is not None and place.kind == "XLA" and not copy
    if isinstance(x, Tensor) and not lends:
        return asarray(x, device=place, copy=copy)
    if not hasattr(x, "__dlpack__"):
        raise DTypeError(
            f"from_dlpack: needs an array with the method __dlpack__, got {type(x).__name__}; use ll.asarray"
        )
    home = _home_of(x)
    if home.kind == "CPU" and place is not None and place.kind == "XLA" and not copy:
        return _on_xla(x, place, must_share=copy is False)
    if home.kind != "CPU":
        return _from_gpu(_wrapped(x, home), place or home, copy)
    array = np.from_dlpack(x, copy=copy) if copy is not None and KNOWS_DLPACK_1 else np.from_dlpack(x)
    array = np.array(array) if copy and not KNOWS_DLPACK_1 else array
    dtypes.dtype(array.dtype)
    tensor: Tensor = dispatch.current().constant(array, place)
    return tensor


def _from_gpu(tensor: Tensor, place: Device, copy: bool | None) -> Tensor:
    """What shares memory with another library's array, or a copy of it on `place`."""
    home = tensor.device
    if place is not home:
        if copy is False:
            raise BufferError(f"from_dlpack: copy=False, but the array is on {home.short}, not on {place.short}")
        return tensor.to(place)
    return wrap(backends.load(home.backend).copy(tensor._data), home) if copy else tensor


def _on_xla(x: Any, place: Device, must_share: bool) -> Tensor:
    """A tensor of XLA in the memory of an array of the host, or a copy where JAX cannot use that."""
    try:
        return _wrapped(x._data if isinstance(x, Tensor) else x, place)
    except BufferError:  # of read-only memory, which JAX has no word for
        if must_share:
            raise
        return from_dlpack(x).to(place)


def _home_of(x: Any) -> Device:
    """The device of another library's array."""
    kind, index = x.__dlpack_device__()
    return devices.find(f"GPU:{int(index)}") if int(kind) in _CUDA else devices.CPU0


_CUDA: Final = (2, 13)
"""Memory of CUDA's, in the terms of DLPack: a GPU's own, and what it manages."""


def _wrapped(x: Any, place: Device) -> Tensor:
    """A tensor on `place` in the memory of `x`, which its library can use."""
    data = backends.load(place.backend).from_dlpack(x)
    dtypes.dtype(data.dtype)
    devices.mark_in_use()
    return wrap(data, place)

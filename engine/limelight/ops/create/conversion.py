"""Tensors from other values and other libraries' arrays, in the Array API's form."""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core import devices, dispatch, dtypes
from limelight.core.devices import Device
from limelight.core.dtypes import DTypeLike
from limelight.core.eager import prepare
from limelight.core.eager.numpy_interop import KNOWS_DLPACK_1
from limelight.core.op import get
from limelight.core.tensor import Tensor, TensorLike, constant
from limelight.errors import ArgumentError, DTypeError
from limelight.ops._given_shape import placed

__all__ = ["asarray", "from_dlpack"]


def asarray(
    obj: TensorLike,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    copy: bool | None = None,
) -> Tensor:
    """`obj` as a tensor: Python numbers, nested lists of numbers or of tensors, arrays, objects with a buffer, tensors.

    Python floats become float32, ints int32 (int64 beyond 32 bits); arrays keep their dtype unless `dtype` says
    otherwise, by the rules of `ll.astype`. What can be written to is copied, and tensors are not, since nobody could
    tell. With `copy=False` NumPy's arrays are shared (whoever writes to one then changes the tensor), and ArgumentError
    is raised where a copy would be needed.

    >>> import limelight as ll
    >>> ll.asarray([1, 2], dtype=ll.float32).tolist()
    [1.0, 2.0]
    """
    if device is not None:
        found = devices.find(device)
        if isinstance(obj, Tensor) and obj.device is not found:
            _refuse(copy, f"it is on {obj.device.short}, not {found.short}")
            return asarray(obj.to(found), dtype=dtype)
        if not isinstance(obj, Tensor):
            return placed(found, asarray, obj, dtype=dtype, copy=copy)
    if isinstance(obj, Tensor):
        if dtype is not None and dtypes.dtype(dtype) != obj.dtype:
            _refuse(copy, f"it is {obj.dtype.name}, not {dtypes.dtype(dtype).name}")
            return obj.astype(dtype)
        return obj
    if copy is False:
        return _shared(obj, dtype)
    if isinstance(obj, (list, tuple)) and _has_tensors(obj):
        made = [asarray(part) for part in obj]
        return _stack(made) if dtype is None else _stack(made).astype(dtype)
    if dtype is not None and isinstance(obj, (np.ndarray, np.generic)):
        return constant(obj).astype(dtype)
    return constant(obj, dtype)


def _has_tensors(parts: Any) -> bool:
    return any(isinstance(x, Tensor) or (isinstance(x, (list, tuple)) and _has_tensors(x)) for x in parts)


def _stack(parts: list[Tensor]) -> Tensor:
    """The op of another family, which families do not import."""
    op = get("stack")
    found: Tensor = dispatch.apply(op, prepare(op, tuple(parts)), (0,))
    return found


def _refuse(copy: bool | None, why: str) -> None:
    if copy is False:
        raise ArgumentError(f"asarray: copy=False, but this needs a copy: {why}; leave `copy` out")


def _shared(obj: Any, dtype: DTypeLike | None) -> Tensor:
    """A tensor over the memory of a NumPy array."""
    if not isinstance(obj, np.ndarray):
        _refuse(False, f"a {type(obj).__name__} is no array")
    found = dtypes.dtype(obj.dtype)
    if dtype is not None and dtypes.dtype(dtype) != found:
        _refuse(False, f"it is {found.name}, not {dtypes.dtype(dtype).name}")
    made: Tensor = dispatch.current().constant(obj.view(), dispatch.requested_device())
    return made


def from_dlpack(x: Any, /, *, device: str | Device | None = None, copy: bool | None = None) -> Tensor:
    """A tensor from another library's array, by the DLPack protocol (`__dlpack__`), in the memory that it has.

    Unless `copy` is true, or the array lies elsewhere than on the host, the memory is shared: whoever writes to the
    array later changes the tensor. Raises BufferError where `copy=False` and it cannot be shared.

    >>> import numpy as np
    >>> import limelight as ll
    >>> ll.from_dlpack(np.arange(3.0)).tolist()
    [0.0, 1.0, 2.0]
    """
    if isinstance(x, Tensor):
        return asarray(x, device=device, copy=copy)
    if not hasattr(x, "__dlpack__"):
        raise DTypeError(
            f"from_dlpack: needs an array with the method __dlpack__, got {type(x).__name__}; use ll.asarray"
        )
    array = np.from_dlpack(x, copy=copy) if copy is not None and KNOWS_DLPACK_1 else np.from_dlpack(x)
    array = np.array(array) if copy and not KNOWS_DLPACK_1 else array
    found = None if device is None else devices.find(device)
    dtypes.dtype(array.dtype)
    made: Tensor = dispatch.current().constant(array, found or dispatch.requested_device())
    return made

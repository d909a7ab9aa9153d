"""Tensors made from nothing but a shape or a range: `full`, `zeros`, `ones`, `empty`, `arange`, `linspace`, `eye`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Never

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.devices import Device
from limelight.core.dispatch import active, local, scopes
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.spec import known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, wrap
from limelight.errors import ArgumentError, DTypeError
from limelight.ops._given_shape import as_shape, defop_with_shape, hide_rest_parameter, keyword_error, run_on_device
from limelight.user_code import unknown_sizes

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

ShapeLike = int | Sequence[int] | Tensor
Place = str | Device | None
NO_INPUTS = "it has no inputs"
_WIDE = 2**31

# full, zeros, ones


def _full_kernel(xp: Any, value: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
    is_zero = type(value) is int and not value  # 0.0 may be -0.0
    return xp.zeros(shape, dtype) if is_zero else xp.full(shape, value, dtype)


_full = defop_with_shape(
    "full",
    attrs="value dtype",
    infer=lambda value, dtype, shape: known(shape, dtype),
    kernel=_full_kernel,
    why_no_gradient=NO_INPUTS,
)


_KINDS: Final = ("bool", "integer", "floating", "complex")
"""Each holds the numbers of those before it."""


def _is_array(value: Any) -> bool:
    """Whether a number is given as a tensor, a variable or an array, of which operators are made, rather than known."""
    return hasattr(value, "dtype") and not isinstance(value, np.generic)


def _filled(name: str, value: Any, sizes: Any, dtype: DTypeLike | None) -> Tensor:
    """`value`, a tensor, repeated: gradients flow to it, and in a trace it may be whatever the run says."""
    value = as_tensor(value)
    wanted = value.dtype if dtype is None else dtypes.dtype(dtype)
    if _KINDS.index(dtypes.kind(value.dtype)) > _KINDS.index(dtypes.kind(wanted)):
        raise DTypeError(
            f"{name}: the value {value.spec} does not fit the dtype {wanted.name}; "
            f"write ll.astype(value, ll.{wanted.name})"
        )
    filled: Tensor = value.astype(wanted, copy=True).broadcast_to(sizes)
    return filled


def _checked_dtype(name: str, value: Any, dtype: DTypeLike | None) -> DType:
    result_dtype = dtypes.default_for(value) if dtype is None else dtypes.dtype(dtype)
    value = value.item() if isinstance(value, np.generic) else value
    if dtype is not None and value not in (0, 1) and not dtypes.fits(value, result_dtype):
        raise DTypeError(f"{name}: the value {value!r} does not fit the dtype {result_dtype.name}")
    return result_dtype


@hide_rest_parameter
def full(
    shape: ShapeLike,
    fill_value: complex | TensorLike,
    *rest: Never,
    dtype: DTypeLike | None = None,
    device: Place = None,
) -> Tensor:
    """A tensor with every element the same number.

    Args:
        shape: its sizes; may be an integer vector (see `shape_of`).
        fill_value: the number, or a tensor that is repeated.
        *rest: none: what follows is given by name.
        dtype: by default the one that the number would have.
        device: where the result is; by default where the scope around says.

    Returns:
        The tensor.

    Raises:
        DTypeError: the number does not fit the dtype.
        CallError: more is given by position.

    >>> import limelight as ll
    >>> ll.full((2,), 7).tolist()
    [7, 7]
    """
    if rest:
        raise keyword_error("full", (shape, fill_value), rest)
    if device is not None:
        return run_on_device(device, full, shape, fill_value, dtype=dtype)
    value: Any = fill_value
    if _is_array(value):
        return _filled("full", value, as_shape(shape), dtype)
    return _full((), as_shape(shape), value, _checked_dtype("full", value, dtype))


@hide_rest_parameter
def zeros(shape: ShapeLike, *rest: Never, dtype: DTypeLike | None = None, device: Place = None) -> Tensor:
    """A tensor of zeros; float32 unless said otherwise.

    >>> import limelight as ll
    >>> ll.zeros((2, 1)).tolist()
    [[0.0], [0.0]]
    """
    if rest:
        raise keyword_error("zeros", (shape,), rest)
    if (
        type(shape) is tuple
        and dtype is None
        and device is None
        and (not active or (not scopes and local.observer is not None))
    ):
        try:
            return wrap(np.zeros(shape, dtypes.float32))
        except (TypeError, ValueError, MemoryError):
            pass  # the long way round says what is wrong
    if device is not None:
        return run_on_device(device, zeros, shape, dtype=dtype)
    return _full((), as_shape(shape), 0, dtypes.float32 if dtype is None else dtypes.dtype(dtype))


@hide_rest_parameter
def ones(shape: ShapeLike, *rest: Never, dtype: DTypeLike | None = None, device: Place = None) -> Tensor:
    """A tensor of ones; float32 unless said otherwise.

    >>> import limelight as ll
    >>> ll.ones(2, dtype="int32").tolist()
    [1, 1]
    """
    if rest:
        raise keyword_error("ones", (shape,), rest)
    if device is not None:
        return run_on_device(device, ones, shape, dtype=dtype)
    return _full((), as_shape(shape), 1, dtypes.float32 if dtype is None else dtypes.dtype(dtype))


@hide_rest_parameter
def empty(shape: ShapeLike, *rest: Never, dtype: DTypeLike | None = None, device: Place = None) -> Tensor:
    """A tensor whose elements nobody has chosen; as tensors cannot be written to, they are zeros here.

    >>> import limelight as ll
    >>> ll.empty((2, 1)).shape
    (2, 1)
    """
    if rest:
        raise keyword_error("empty", (shape,), rest)
    return zeros(shape, dtype=dtype, device=device)


# full_like, zeros_like, ones_like

_full_like = entry_point(defop(
    "full_like",
    inputs="x:any",
    attrs="value dtype",
    infer=lambda x, value, dtype: known(x.shape, dtype),
    kernel=lambda xp, x, value, dtype: _full_kernel(xp, value, dtype, x.shape),
    why_no_gradient="only the shape of x matters, not its values",
    batching="last_axes",
))  # fmt: skip


@hide_rest_parameter
def full_like(
    x: TensorLike,
    /,
    fill_value: complex | TensorLike,
    *rest: Never,
    dtype: DTypeLike | None = None,
    device: Place = None,
) -> Tensor:
    """A tensor of the shape, dtype and device of `x` with every element the same number.

    Args:
        x: any tensor.
        fill_value: the number, or a tensor that is repeated.
        *rest: none: what follows is given by name.
        dtype: another dtype than that of `x`.
        device: another device than that of `x`.

    Returns:
        The tensor.

    Raises:
        DTypeError: the number does not fit the dtype.
        CallError: more is given by position.

    >>> import limelight as ll
    >>> ll.full_like(ll.constant([1, 2]), 7).tolist()
    [7, 7]
    """
    if rest:
        raise keyword_error("full_like", (x, fill_value), rest)
    x = as_tensor(x)
    if device is not None:
        return run_on_device(device, full_like, x, fill_value, dtype=dtype)
    value: Any = fill_value
    if _is_array(value):
        return _filled("full_like", value, x.sizes(), dtype or x.dtype)
    return _full_like_op(x, value, _checked_dtype("full_like", value, dtype or x.dtype))


@hide_rest_parameter
def zeros_like(x: TensorLike, /, *rest: Never, dtype: DTypeLike | None = None, device: Place = None) -> Tensor:
    """Zeros of the shape, dtype and device of `x`.

    >>> import limelight as ll
    >>> ll.zeros_like(ll.constant([1, 2])).tolist()
    [0, 0]
    """
    if rest:
        raise keyword_error("zeros_like", (x,), rest)
    x = as_tensor(x)
    if device is not None:
        return run_on_device(device, zeros_like, x, dtype=dtype)
    return _full_like_op(x, 0, x.dtype if dtype is None else dtypes.dtype(dtype))


@hide_rest_parameter
def ones_like(x: TensorLike, /, *rest: Never, dtype: DTypeLike | None = None, device: Place = None) -> Tensor:
    """Ones of the shape, dtype and device of `x`.

    >>> import limelight as ll
    >>> ll.ones_like(ll.constant([1, 2])).tolist()
    [1, 1]
    """
    if rest:
        raise keyword_error("ones_like", (x,), rest)
    x = as_tensor(x)
    if device is not None:
        return run_on_device(device, ones_like, x, dtype=dtype)
    return _full_like_op(x, 1, x.dtype if dtype is None else dtypes.dtype(dtype))


@hide_rest_parameter
def empty_like(x: TensorLike, /, *rest: Never, dtype: DTypeLike | None = None, device: Place = None) -> Tensor:
    """A tensor of the shape, dtype and device of `x` whose elements nobody has chosen; they are zeros here.

    >>> import limelight as ll
    >>> ll.empty_like(ll.constant([1, 2])).shape
    (2,)
    """
    if rest:
        raise keyword_error("empty_like", (x,), rest)
    return zeros_like(x, dtype=dtype, device=device)


def _full_like_op(x: Tensor, value: complex, dtype: DType) -> Tensor:
    return _full_like((x,), value, dtype)


# arange


def _arange_kernel(xp: Any, start: float, step: float, size: int, dtype: DType) -> Any:
    if dtypes.kind(dtype) == "integer":
        return xp.arange(start, start + size * step, step, dtype=np.int64).astype(dtype, copy=False)
    return (xp.arange(size, dtype=np.float64) * step + start).astype(dtype)


_arange = entry_point(defop(
    "arange",
    inputs="",
    attrs="start step size dtype",
    infer=lambda start, step, size, dtype: known((size,), dtype),
    kernel=_arange_kernel,
    why_no_gradient=NO_INPUTS,
))  # fmt: skip


def _arange_dynamic_kernel(xp: Any, *bounds: Any) -> Any:
    dtype = next(x.dtype for x in bounds if hasattr(x, "dtype"))
    floating = dtypes.is_floating(dtype)
    first, last, apart = map(float if floating else int, bounds)
    if apart == 0:
        raise ArgumentError("arange: step must not be 0")
    if not floating:
        return xp.arange(first, last, apart, dtype=dtype)
    if not math.isfinite((last - first) / apart):
        raise ArgumentError(f"arange: there is no number of steps of {apart} from {first} to {last}")
    return _arange_kernel(xp, first, apart, max(0, math.ceil((last - first) / apart)), dtype)


_arange_dynamic = entry_point(defop(
    "arange_dynamic",
    inputs="start stop step",
    infer=lambda start, stop, step: known((None,), start.dtype),
    kernel=_arange_dynamic_kernel,
    accepts="real",
    why_no_gradient="its size jumps with its operands",
    batching="loop",
))  # fmt: skip


def arange(
    start: TensorLike,
    /,
    stop: TensorLike | None = None,
    step: TensorLike = 1,
    *,
    dtype: DTypeLike | None = None,
    device: Place = None,
) -> Tensor:
    """Numbers from `start` up to but without `stop`, `step` apart.

    Args:
        start: the first number, or, when only one is given, `stop`, and the first is 0. A number or a scalar tensor,
            whose value may be known only at run time, as those of the others.
        stop: the end, which is not reached.
        step: the distance; 1. It may be negative.
        dtype: by default int32 for Python ints, float32 for floats.
        device: where the result is; by default where the scope around says.

    Returns:
        A vector.

    Raises:
        ArgumentError: `step` is 0.
        DTypeError: something is given that is not a real number.

    >>> import limelight as ll
    >>> ll.arange(2, 8, 2).tolist()
    [2, 4, 6]
    """
    if (
        type(start) is int
        and type(step) is int
        and dtype is None
        and device is None
        and (not active or (not scopes and local.observer is not None))
    ):
        bounds: tuple[Any, ...] = (0, start, step) if stop is None else (start, stop, step)
        if type(bounds[1]) is int and step and -_WIDE <= min(bounds) and max(bounds) < _WIDE:
            return wrap(np.arange(bounds[0], bounds[1], bounds[2], dtype=dtypes.int32))
    if device is not None:
        return run_on_device(device, arange, start, stop, step, dtype=dtype)
    if stop is None:
        start, stop = 0, start
    bounds = tuple([x.item() if isinstance(x, np.generic) else x for x in (start, stop, step)])
    if any(isinstance(x, Tensor) or hasattr(x, "__as_tensor__") for x in bounds):
        numbers = _arange_dynamic(bounds)
        return numbers if dtype is None else numbers.astype(dtype)
    first, last, apart = bounds
    if not all(isinstance(x, (int, float)) for x in bounds):
        size = unknown_sizes.here()
        instead = f"; for a size of {size.tensor}.shape that is unknown while tracing write {size}"
        hint = instead if None in bounds else ""
        raise DTypeError(f"arange: start, stop and step must be real numbers, got {', '.join(map(repr, bounds))}{hint}")
    if apart == 0:
        raise ArgumentError("arange: step must not be 0")
    size = max(0, math.ceil((last - first) / apart))
    widest = float(first) if any(isinstance(x, float) for x in bounds) else max(bounds, key=abs)
    return _arange((), first, apart, size, dtypes.default_for(widest) if dtype is None else dtypes.dtype(dtype))


# linspace

_linspace = entry_point(defop(
    "linspace",
    inputs="",
    attrs="start stop num dtype endpoint",
    infer=lambda start, stop, num, dtype, endpoint: known((num,), dtype),
    kernel=lambda xp, start, stop, num, dtype, endpoint: xp.linspace(start, stop, num, endpoint=endpoint).astype(dtype),
    why_no_gradient=NO_INPUTS,
))  # fmt: skip


def _linspace_between(start: Any, stop: Any, num: int, dtype: DTypeLike | None, endpoint: bool) -> Tensor:
    """`linspace` of tensors, whose shapes meet: gradients flow to both. Each end comes out as it is given."""
    span = (stop if _is_array(start) else as_tensor(stop)) - start
    inexact = span.dtype if dtypes.is_inexact(span.dtype) else dtypes.float32
    first, last = (as_tensor(x).astype(inexact) if _is_array(x) else x for x in (start, stop))
    parts = arange(num, dtype=inexact) / max(num - 1 if endpoint else num, 1)
    parts = parts.reshape((num, *[1] * span.ndim))
    numbers = first * (1 - parts) + last * parts
    return numbers if dtype is None else numbers.astype(dtype)


def linspace(
    start: complex | TensorLike,
    stop: complex | TensorLike,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: Place = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers at equal distances from `start` to `stop`.

    Args:
        start: the first number, or a tensor of first numbers.
        stop: the last number, or a tensor of last numbers.
        num: how many, at least 0.
        dtype: by default float32, or complex64 where a bound is complex; of tensors theirs, if that is not integer.
        device: where the result is; by default where the scope around says.
        endpoint: whether `stop` is one of the numbers, the last. True.

    Returns:
        A vector (num,); of tensors (num, *shape).

    Raises:
        ArgumentError: `num` is negative.

    >>> import limelight as ll
    >>> ll.linspace(0.0, 1.0, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if type(endpoint) is not bool:
        endpoint = shapes.flag("linspace", "endpoint", endpoint)
    num = shapes.whole("linspace", "num", num)
    if num < 0:
        raise ArgumentError(f"linspace: num must not be negative, got {num}")
    if device is not None:
        return run_on_device(device, linspace, start, stop, num, dtype=dtype, endpoint=endpoint)
    if _is_array(start) or _is_array(stop):
        return _linspace_between(start, stop, num, dtype, endpoint)
    if dtype is None:
        dtype = dtypes.complex64 if complex in (type(start), type(stop)) else dtypes.float32
    return _linspace((), start, stop, num, dtypes.dtype(dtype), endpoint)


# eye

_eye = entry_point(defop(
    "eye",
    inputs="",
    attrs="rows columns offset dtype",
    infer=lambda rows, columns, offset, dtype: known((rows, columns), dtype),
    kernel=lambda xp, rows, columns, offset, dtype: xp.eye(rows, columns, offset, dtype),
    why_no_gradient=NO_INPUTS,
))  # fmt: skip


def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, *, dtype: DTypeLike | None = None, device: Place = None
) -> Tensor:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Args:
        n_rows: the number of rows.
        n_cols: the number of columns; by default as many.
        k: which diagonal: 0 the main one (the default), above it positive.
        dtype: float32 by default.
        device: where the result is; by default where the scope around says.

    Returns:
        A matrix (n_rows, n_cols).

    Raises:
        ArgumentError: a size is negative.

    >>> import limelight as ll
    >>> ll.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if device is not None:
        return run_on_device(device, eye, n_rows, n_cols, k=k, dtype=dtype)
    if isinstance(n_rows, (tuple, list)):
        raise ArgumentError(f"eye: rows and columns are two arguments: write ll.eye({', '.join(map(repr, n_rows))})")
    rows, columns = shapes.wholes("eye", "a size", (n_rows, n_rows if n_cols is None else n_cols))
    if min(rows, columns) < 0:
        raise ArgumentError(f"eye: sizes must not be negative, got {n_rows} and {n_cols}")
    result_dtype = dtypes.float32 if dtype is None else dtypes.dtype(dtype)
    return _eye((), rows, columns, shapes.whole("eye", "k", k), result_dtype)

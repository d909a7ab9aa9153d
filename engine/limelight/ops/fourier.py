"""Discrete Fourier transforms, their transposes, and what comes with them. `limelight.fft` has the public names.

`fft` (complex, both ways, over several axes) is its own kind under transposition; `rfft` and `irfft` each have a
transpose, which weighs the frequencies that stand for two. Cropping and filling (`n` and `s`) is an op before them.
16-bit floats are made float32 first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.ops._given_shape import defop_with_shape
from limelight.ops._shape_rules import SHORT

__all__: list[str] = []

TRANSPOSED: Final = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The scaling of a transform's transpose, which goes the other way: where one divides by n, so does the other."""

_COMPLEX: Final[dict[DType, DType]] = dict.fromkeys((*SHORT, dtypes.float32), dtypes.complex64) | {
    dtypes.float64: dtypes.complex128
}
_REAL: Final[dict[DType, DType]] = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}


def _with_size(shape: Shape, axis: int, size: int | None) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _check_points(name: str, x: TensorSpec, axes: Sequence[int]) -> None:
    for axis in axes:
        if x.shape[axis] == 0:
            raise ShapeError(f"{name}: axis {axis} of {x} has no points to transform; it needs one at least")


# fft: complex to complex, both ways


def _fft_infer(x: TensorSpec, axes: tuple[int, ...], inverse: bool, norm: str) -> TensorSpec:
    _check_points("ifft" if inverse else "fft", x, axes)
    return known(x.shape, x.dtype)


def _fft_kernel(xp: Any, x: Any, axes: tuple[int, ...], inverse: bool, norm: str) -> Any:
    if not axes:
        return x
    with np.errstate(all="ignore"):  # NumPy would warn from a module of its own
        return (xp.fft.ifftn if inverse else xp.fft.fftn)(x, axes=axes, norm=norm)


_fft: EntryPoint = entry_point(defop(
    "fft",
    inputs="x",
    attrs="axes inverse norm",
    infer=_fft_infer,
    kernel=_fft_kernel,
    accepts="complex",
    vjp={"x": lambda g, axes, inverse, norm: _fft(g, axes, not inverse, TRANSPOSED[norm])},
    linear="x",
    maths={"x": "x̄ = Fᴴ ȳ"},
    batching="along_axis",
))  # fmt: skip


def fftn(x: Tensor, axes: tuple[int, ...], inverse: bool, norm: str) -> Tensor:
    """The transform of complex `x` over `axes`, none of them negative."""
    return _fft(x, axes, inverse, norm)


# rfft and its transpose: from real points to the half of the spectrum that is not known by symmetry


def _rfft_infer(name: str) -> Any:
    def infer(x: TensorSpec, axis: int, norm: str) -> TensorSpec:
        _check_points(name, x, (axis,))
        n = x.shape[axis]
        return known(_with_size(x.shape, axis, None if n is None else n // 2 + 1), _COMPLEX[x.dtype])

    return infer


def _rfft_kernel(xp: Any, x: Any, axis: int, norm: str) -> Any:
    wide = x.astype(dtypes.float32) if x.dtype in SHORT else x
    with np.errstate(all="ignore"):
        return xp.fft.rfft(wide, axis=axis, norm=norm)


def _twice(xp: Any, ndim: int, axis: int, n: int, once: float, others: float, dtype: DType) -> Any:
    """A factor for each place of half a spectrum: `once` where it stands for itself, `others` where for two of `n`."""
    factor = np.full(n // 2 + 1, others, dtype)
    factor[0] = once
    if n % 2 == 0:
        factor[-1] = once
    return xp.asarray(factor.reshape([-1 if i == axis else 1 for i in range(ndim)]))


def _rfft_transpose_kernel(xp: Any, y: Any, axis: int, norm: str, shape: tuple[int, ...]) -> Any:
    n = shape[axis]
    with np.errstate(all="ignore"):
        half = y * _twice(xp, y.ndim, axis, n, 1.0, 0.5, _REAL[y.dtype])
        return xp.fft.irfft(half, n, axis=axis, norm=TRANSPOSED[norm])


_rfft = entry_point(defop(
    "rfft",
    inputs="x",
    attrs="axis norm",
    infer=_rfft_infer("rfft"),
    kernel=_rfft_kernel,
    accepts="floating",
    vjp={"x": lambda g, x_shape, x_dtype, axis, norm: _rfft_transpose((g,), x_shape, axis, norm).astype(x_dtype)},
    linear="x",
    maths={"x": "x̄ = Re(Fᴴ ȳ)"},
    batching="along_axis",
))  # fmt: skip

_rfft_transpose: EntryPoint = defop_with_shape(
    "rfft_transpose",
    inputs="y",
    attrs="axis norm",
    infer=lambda y, axis, norm, shape: known(shape, _REAL[y.dtype]),
    kernel=_rfft_transpose_kernel,
    accepts="complex",
    vjp={"y": lambda g, axis, norm: _rfft(g, axis, norm)},
    linear="y",
    maths={"y": "ȳ = F x̄"},
    batching="along_axis_to_shape",
    dynamic_batching="along_axis_to_shape_dynamic",
)


def rfft(x: Tensor, axis: int, norm: str) -> Tensor:
    """The first half of the spectrum of real `x` along one axis."""
    return _rfft(x, axis, norm)


# irfft and its transpose


def _irfft_infer(y: TensorSpec, axis: int, odd: bool, norm: str) -> TensorSpec:
    _check_points("irfft", y, (axis,))
    m = y.shape[axis]
    n = None if m is None else 2 * (m - 1) + odd
    if n == 0:
        raise ShapeError(f"irfft: axis {axis} of {y} stands for no points; give n=1, or two frequencies at least")
    return known(_with_size(y.shape, axis, n), _REAL[y.dtype])


def _irfft_kernel(xp: Any, y: Any, axis: int, n: int, norm: str) -> Any:
    with np.errstate(all="ignore"):
        return xp.fft.irfft(y, n, axis=axis, norm=norm)


def _irfft_transpose_kernel(xp: Any, x: Any, axis: int, norm: str) -> Any:
    with np.errstate(all="ignore"):
        y = xp.fft.rfft(x, axis=axis, norm=TRANSPOSED[norm])
        return y * _twice(xp, x.ndim, axis, x.shape[axis], 1.0, 2.0, x.dtype)


_irfft = entry_point(defop(
    "irfft",
    inputs="y",
    attrs="axis odd norm",
    infer=_irfft_infer,
    kernel=lambda xp, y, axis, odd, norm: _irfft_kernel(xp, y, axis, 2 * (y.shape[axis] - 1) + odd, norm),
    accepts="complex",
    vjp={"y": lambda g, axis, norm: _irfft_transpose(g, axis, norm)},
    linear="y",
    maths={"y": "ȳ = F x̄ / n, doubled where a frequency stands for two"},
    batching="along_axis",
))  # fmt: skip

_irfft_transpose: EntryPoint = entry_point(defop(
    "irfft_transpose",
    inputs="x",
    attrs="axis norm",
    infer=_rfft_infer("irfft_transpose"),
    kernel=_irfft_transpose_kernel,
    accepts="floating",
    vjp={"x": lambda g, x_shape, axis, norm: _irfft_to((g,), x_shape, axis, norm)},
    linear="x",
    maths={"x": "x̄ = irfft(ȳ)"},
    batching="along_axis",
))  # fmt: skip

_irfft_to: EntryPoint = defop_with_shape(
    "irfft_to",
    inputs="y",
    attrs="axis norm",
    infer=lambda y, axis, norm, shape: known(shape, _REAL[y.dtype]),
    kernel=lambda xp, y, axis, norm, shape: _irfft_kernel(xp, y, axis, shape[axis], norm),
    accepts="complex",
    vjp={"y": lambda g, axis, norm: _irfft_transpose(g, axis, norm)},
    linear="y",
    maths={"y": "ȳ = F x̄ / n, doubled where a frequency stands for two"},
    batching="along_axis_to_shape",
    dynamic_batching="along_axis_to_shape_dynamic",
)


def irfft(y: Tensor, axis: int, odd: bool, norm: str) -> Tensor:
    """The real points of a half spectrum of size m along one axis: 2 (m - 1) of them, or one more if `odd`."""
    return _irfft(y, axis, odd, norm)


# crop_or_fill: axes brought to a length, as n= and s= ask for


def _crop_or_fill(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    if x.shape == shape:
        return x
    part = x[tuple([slice(n) for n in shape])]
    if part.shape == shape:
        return part
    if xp is not np:
        return xp.pad(part, [(0, n - m) for n, m in zip(shape, part.shape, strict=True)])
    filled = np.zeros(shape, part.dtype)  # np.pad takes ten times as long
    filled[tuple([slice(n) for n in part.shape])] = part
    return filled


def _with_sizes(shape: Shape, axes: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[Any, ...]:
    wanted = dict(zip(axes, sizes, strict=True))
    return tuple([wanted.get(i, n) for i, n in enumerate(shape)])


_fitted = entry_point(defop(
    "crop_or_fill",
    inputs="x",
    attrs="axes sizes",
    infer=lambda x, axes, sizes: known(_with_sizes(x.shape, axes, sizes), x.dtype),
    kernel=lambda xp, x, axes, sizes: _crop_or_fill(xp, x, _with_sizes(x.shape, axes, sizes)),
    accepts="numeric",
    vjp={"x": lambda g, x_shape: _fitted_to((g,), x_shape)},
    linear="x",
    maths={"x": "x̄ = ȳ cropped, or filled with 0, to the shape of x"},
    batching="along_axis",
))  # fmt: skip

_fitted_to: EntryPoint = defop_with_shape(
    "crop_or_fill_to",
    inputs="x",
    infer=lambda x, shape: known(shape, x.dtype),
    kernel=_crop_or_fill,
    vjp={"x": lambda g, x_shape: _fitted_to((g,), x_shape)},
    linear="x",
    maths={"x": "x̄ = ȳ cropped, or filled with 0, to the shape of x"},
    batching="last_axes_to_shape",
    dynamic_batching="last_axes_to_shape_dynamic",
)


def fitted(x: Tensor, axes: tuple[int, ...], sizes: tuple[int, ...]) -> Tensor:
    """`x` with its axes cropped, or filled with zeros at the end, to `sizes`; `x` itself where they are so already."""
    return x if all(x.shape[i] == n for i, n in zip(axes, sizes, strict=True)) else _fitted(x, axes, sizes)


# fftshift

_fftshift: EntryPoint = entry_point(defop(
    "fftshift",
    inputs="x",
    attrs="axes inverse",
    infer=lambda x, axes, inverse: known(x.shape, x.dtype),
    kernel=lambda xp, x, axes, inverse: (xp.fft.ifftshift if inverse else xp.fft.fftshift)(x, axes=axes),
    vjp={"x": lambda g, axes, inverse: _fftshift(g, axes, not inverse)},
    linear="x",
    maths={"x": "x̄ = ȳ shifted back"},
    batching="along_axis",
))  # fmt: skip


def shifted(x: Tensor, axes: tuple[int, ...], inverse: bool) -> Tensor:
    """The zero frequency in the middle of `axes`, or back at their start."""
    return _fftshift(x, axes, inverse)


# operands


def as_complex(name: str, x: TensorLike) -> Tensor:
    """`x` as a complex tensor; raises DTypeError for integers and booleans."""
    x = as_tensor(x)
    if dtypes.kind(x.dtype) == "complex":
        return x
    return as_real(name, x).astype(_COMPLEX[x.dtype])


def as_real(name: str, x: TensorLike) -> Tensor:
    """`x` as a float32 or float64 tensor; raises DTypeError for any that is not floating."""
    x = as_tensor(x)
    if dtypes.kind(x.dtype) != "floating":
        what = "write ll.real(x) for the real part" if dtypes.kind(x.dtype) == "complex" else "cast it"
        raise DTypeError(f"{name} needs a floating tensor, got {x.spec}; {what}, as in ll.astype(x, ll.float32)")
    return x.astype(dtypes.float32) if x.dtype in SHORT else x


def checked_norm(name: str, norm: str) -> str:
    """`norm`, which says by what the sums are divided; raises ArgumentError for an unknown one."""
    if norm not in TRANSPOSED:
        raise ArgumentError(f"{name}: norm={norm!r}; write 'backward' (1/n on the inverse), 'ortho' or 'forward'")
    return norm

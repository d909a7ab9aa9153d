"""Fourier transforms: the Array API's `fft` extension, and `fft2`. `ll.fft.fft(x)`.

They compute in the precision of their operand: float32 gives complex64, float64 complex128, and 16-bit floats are made
float32 first. All are differentiable to any order. `norm` says where the sums are divided by the number of points n:
"backward" (by n on the inverse), "forward" (by n on the transform) or "ortho" (by its square root on both).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.device_scopes import device as device_scope
from limelight.core.devices import Device
from limelight.core.dtypes import DTypeLike
from limelight.core.tensor import Tensor, TensorLike, as_tensor, constant
from limelight.errors import ArgumentError, DTypeError
from limelight.ops import fourier
from limelight.ops.fourier import TRANSPOSED, as_complex, as_real, checked_norm
from limelight.user_code import hints

__all__ = [
    "fft", "ifft", "fftn", "ifftn", "fft2", "ifft2", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft",
    "fftfreq", "rfftfreq", "fftshift", "ifftshift",
]  # fmt: skip

if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("fft")
__dir__ = hints.listing(__all__)

Axes = int | Sequence[int] | None
Sizes = Sequence[int] | None

# complex to complex


def fft(x: TensorLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform along `axis`: Σⱼ xⱼ exp(-2πi jk/n) for each k (Cooley and Tukey 1965).

    Args:
        x: floating or complex.
        n: the size to which the axis is cropped, or filled with zeros, first; by default its own.
        axis: the axis; the last by default.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Complex, in the shape of `x` but for `n`.

    Raises:
        ArgumentError: an axis does not exist, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.fft.fft(ll.constant([1.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return _transform("fft", x, n, axis, norm, inverse=False)


def ifft(x: TensorLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse discrete Fourier transform along `axis`: Σₖ xₖ exp(2πi jk/n) / n for each j.

    Args:
        x: floating or complex.
        n: the size to which the axis is cropped, or filled with zeros, first; by default its own.
        axis: the axis; the last by default.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Complex, in the shape of `x` but for `n`.

    Raises:
        ArgumentError: an axis does not exist, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.fft.ifft(ll.constant([2.0, 2.0])).tolist()
    [(2+0j), 0j]
    """
    return _transform("ifft", x, n, axis, norm, inverse=True)


def fftn(x: TensorLike, /, *, s: Sizes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform over several axes.

    Args:
        x: floating or complex.
        s: the sizes to which the axes are cropped, or filled with zeros, first; by default their own.
        axes: the axes; by default all, or the last `len(s)`.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Complex, in the shape of `x` but for `s`.

    Raises:
        ArgumentError: an axis does not exist or is named twice, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.fft.fftn(ll.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return _transforms("fftn", x, s, axes, norm, inverse=False)


def ifftn(x: TensorLike, /, *, s: Sizes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The inverse discrete Fourier transform over several axes.

    Args:
        x: floating or complex.
        s: the sizes to which the axes are cropped, or filled with zeros, first; by default their own.
        axes: the axes; by default all, or the last `len(s)`.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Complex, in the shape of `x` but for `s`.

    Raises:
        ArgumentError: an axis does not exist or is named twice, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.fft.ifftn(ll.fft.fftn(ll.ones((2, 2)))).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return _transforms("ifftn", x, s, axes, norm, inverse=True)


def fft2(x: TensorLike, /, *, s: Sizes = None, axes: Axes = (-2, -1), norm: str = "backward") -> Tensor:
    """The discrete Fourier transform over two axes: the spectrum of each image in a batch.

    Args:
        x: floating or complex.
        s: the sizes to which the axes are cropped, or filled with zeros, first; by default their own.
        axes: the axes; the last two by default.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Complex, in the shape of `x` but for `s`.

    Raises:
        ArgumentError: an axis does not exist or is named twice, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.fft.fft2(ll.ones((5, 4, 4))).shape
    (5, 4, 4)
    """
    return _transforms("fft2", x, s, axes, norm, inverse=False)


def ifft2(x: TensorLike, /, *, s: Sizes = None, axes: Axes = (-2, -1), norm: str = "backward") -> Tensor:
    """The inverse discrete Fourier transform over two axes.

    Args:
        x: floating or complex.
        s: the sizes to which the axes are cropped, or filled with zeros, first; by default their own.
        axes: the axes; the last two by default.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Complex, in the shape of `x` but for `s`.

    Raises:
        ArgumentError: an axis does not exist or is named twice, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.fft.ifft2(ll.ones((5, 4, 4))).dtype.name
    'complex64'
    """
    return _transforms("ifft2", x, s, axes, norm, inverse=True)


def _transform(name: str, x: TensorLike, n: int | None, axis: int, norm: str, inverse: bool) -> Tensor:
    return _transforms(name, x, None if n is None else (n,), (axis,), norm, inverse)


def _transforms(name: str, x: TensorLike, s: Sizes, axes: Axes, norm: str, inverse: bool) -> Tensor:
    x = as_complex(name, x)
    over, sizes = _where(name, x, s, axes)
    x = x if sizes is None else fourier.fitted(x, over, sizes)
    return fourier.fftn(x, over, inverse, checked_norm(name, norm))


def _where(name: str, x: Tensor, s: Sizes, axes: Axes) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """The axes counted from the front, and the sizes wanted of them."""
    wanted = None if s is None else shapes.wholes(name, "a size", s)
    if axes is None:
        axes = range(x.ndim) if wanted is None else range(-len(wanted), 0)
    axes = shapes.wholes(name, "an axis", axes)
    over = tuple([shapes.one_axis(name, x.ndim, axis) for axis in axes])
    if len(set(over)) != len(over):
        raise ArgumentError(f"{name}: axes {axes} name the same axis twice")
    if wanted is None:
        return over, None
    sizes = wanted
    if len(sizes) != len(over):
        raise ArgumentError(f"{name}: {len(sizes)} sizes in s={sizes} for {len(over)} axes {over}")
    if min(sizes, default=1) < 1:
        raise ArgumentError(f"{name}: a transform needs one point at least, got size {min(sizes)}")
    return over, sizes


# real to half a spectrum, and back


def rfft(x: TensorLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform of a real tensor along `axis`: the first n // 2 + 1 values of `fft`.

    The others are their conjugates.

    Args:
        x: floating.
        n: the size to which the axis is cropped, or filled with zeros, first; by default its own.
        axis: the axis; the last by default.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Complex, in the shape of `x` but for the n // 2 + 1 frequencies.

    Raises:
        ArgumentError: an axis does not exist, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating.

    >>> import limelight as ll
    >>> ll.fft.rfft(ll.ones(4)).tolist()
    [(4+0j), 0j, 0j]
    """
    return rfftn(x, s=None if n is None else (n,), axes=(axis,), norm=norm)


def irfft(x: TensorLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `rfft`, of n real points.

    The imaginary parts of frequency 0 and, for even n, n/2 do not count.

    Args:
        x: floating or complex, with m frequencies along the axis.
        n: how many points; by default 2 (m - 1).
        axis: the axis; the last by default.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Floating, in the shape of `x` but for the n points.

    Raises:
        ArgumentError: an axis does not exist, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.fft.irfft(ll.fft.rfft(ll.constant([1.0, 2.0, 3.0])), n=3).shape
    (3,)
    """
    return irfftn(x, s=None if n is None else (n,), axes=(axis,), norm=norm)


def rfftn(x: TensorLike, /, *, s: Sizes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform of a real tensor over several axes, the last of which keeps half, as in `rfft`.

    Args:
        x: floating.
        s: the sizes to which the axes are cropped, or filled with zeros, first; by default their own.
        axes: the axes; by default all, or the last `len(s)`.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Complex, in the shape of `x` but for the frequencies.

    Raises:
        ArgumentError: an axis does not exist or is named twice, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating.

    >>> import limelight as ll
    >>> ll.fft.rfftn(ll.ones((2, 4))).shape
    (2, 3)
    """
    x = as_real("rfftn", x)
    over, sizes = _where("rfftn", x, s, axes)
    _check_axes("rfftn", over)
    x = x if sizes is None else fourier.fitted(x, over, sizes)
    half = fourier.rfft(x, over[-1], checked_norm("rfftn", norm))
    return fourier.fftn(half, over[:-1], False, norm) if over[:-1] else half


def irfftn(x: TensorLike, /, *, s: Sizes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The inverse of `rfftn`.

    Args:
        x: floating or complex, with m frequencies along the last of the axes.
        s: the sizes of the result along the axes; by default their own, and 2 (m - 1) for the last.
        axes: the axes; by default all, or the last `len(s)`.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Floating, in the shape of `x` but for the points.

    Raises:
        ArgumentError: an axis does not exist or is named twice, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.fft.irfftn(ll.fft.rfftn(ll.ones((2, 4)))).shape
    (2, 4)
    """
    x = as_complex("irfftn", x)
    over, sizes = _where("irfftn", x, s, axes)
    _check_axes("irfftn", over)
    odd = sizes is not None and sizes[-1] % 2 == 1
    x = x if sizes is None else fourier.fitted(x, over, (*sizes[:-1], sizes[-1] // 2 + 1))
    checked_norm("irfftn", norm)
    x = fourier.fftn(x, over[:-1], True, norm) if over[:-1] else x
    return fourier.irfft(x, over[-1], odd, norm)


def _check_axes(name: str, axes: tuple[int, ...]) -> None:
    if not axes:
        raise ArgumentError(f"{name}: needs one axis at least, whose spectrum is halved")


def hfft(x: TensorLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The real spectrum of a signal with Hermitian symmetry, given by its first half.

    Args:
        x: floating or complex, the first m points.
        n: how many frequencies; by default 2 (m - 1).
        axis: the axis; the last by default.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Floating, in the shape of `x` but for the n frequencies.

    Raises:
        ArgumentError: an axis does not exist, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating or complex.

    >>> import limelight as ll
    >>> ll.fft.hfft(ll.constant([1.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return irfft(as_complex("hfft", x).conj(), n=n, axis=axis, norm=TRANSPOSED[checked_norm("hfft", norm)])


def ihfft(x: TensorLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `hfft`: the first n // 2 + 1 values of the inverse transform of a real spectrum.

    Args:
        x: floating.
        n: the size to which the axis is cropped, or filled with zeros, first; by default its own.
        axis: the axis; the last by default.
        norm: where sums are divided by the number of points n: "backward" (the default) in the inverse, "forward" in
            the transform, "ortho" in both, by √n.

    Returns:
        Complex, in the shape of `x` but for the n // 2 + 1 points.

    Raises:
        ArgumentError: an axis does not exist, a size is below 1, or there is no such `norm`.
        ShapeError: an axis has no points.
        DTypeError: `x` is not floating.

    >>> import limelight as ll
    >>> ll.fft.ihfft(ll.ones(4)).tolist()
    [(1-0j), -0j, -0j]
    """
    return rfft(x, n=n, axis=axis, norm=TRANSPOSED[checked_norm("ihfft", norm)]).conj()


# frequencies


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | Device | None = None) -> Tensor:
    """The frequencies of `fft`, in cycles per unit of the sample spacing `d`: 0, 1, ..., -2, -1 over n d.

    Args:
        n: how many points, at least 1.
        d: the spacing of the samples, not 0; 1.
        dtype: floating; float32.
        device: where the result is; by default where the scope around says.

    Returns:
        A vector (n,).

    Raises:
        ArgumentError: `n` is no int from 1 on, or `d` is 0.
        DTypeError: the `dtype` is not floating.

    >>> import limelight as ll
    >>> ll.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | Device | None = None
) -> Tensor:
    """The frequencies of `rfft`, in cycles per unit of the sample spacing `d`: 0, 1, ..., n // 2 over n d.

    Args:
        n: how many points, at least 1.
        d: the spacing of the samples, not 0; 1.
        dtype: floating; float32.
        device: where the result is; by default where the scope around says.

    Returns:
        A vector (n // 2 + 1,).

    Raises:
        ArgumentError: `n` is no int from 1 on, or `d` is 0.
        DTypeError: the `dtype` is not floating.

    >>> import limelight as ll
    >>> ll.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequencies("rfftfreq", n, d, dtype, device)


def _frequencies(name: str, n: int, d: float, dtype: DTypeLike | None, device: str | Device | None) -> Tensor:
    wanted = dtypes.float32 if dtype is None else dtypes.dtype(dtype)
    if dtypes.kind(wanted) != "floating":
        raise DTypeError(f"{name}: frequencies are floating, not {wanted.name}; give dtype=ll.float32 or ll.float64")
    n = shapes.whole(name, "n", n)
    if n < 1 or d == 0:
        raise ArgumentError(f"{name}: needs one point at least and a spacing that is not 0, got n={n}, d={d}")
    frequencies = getattr(np.fft, name)(n, d).astype(wanted)
    if device is None:
        return constant(frequencies)
    with device_scope(device):
        return constant(frequencies)


def fftshift(x: TensorLike, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The frequency 0 moved to the middle of `axes` (an axis, several, or None for all); any dtype.

    >>> import limelight as ll
    >>> ll.fft.fftshift(ll.constant([0, 1, 2, -2, -1])).tolist()
    [-2, -1, 0, 1, 2]
    """
    x = as_tensor(x)
    return fourier.shifted(x, shapes.axes("fftshift", x.ndim, axes), False)


def ifftshift(x: TensorLike, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`; the two differ for odd sizes.

    >>> import limelight as ll
    >>> ll.fft.ifftshift(ll.constant([-2, -1, 0, 1, 2])).tolist()
    [0, 1, 2, -2, -1]
    """
    x = as_tensor(x)
    return fourier.shifted(x, shapes.axes("ifftshift", x.ndim, axes), True)

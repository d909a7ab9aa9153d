"""Fourier transforms, and what else is done with complex numbers between real ones: in real and imaginary parts.

A transform of n points is a product with two matrices, which are what limelight's own kernel makes of the unit vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.core.op import get
from limelight.export.to_onnx.arrays import cast, equal, like, matmul, move, unary, where, zeros_like
from limelight.export.to_onnx.builder import Complex, Var
from limelight.export.to_onnx.registry import LOWERINGS, Refused, Site, lowers, lowers_complex

# --- transforms


def _along(x: Var, matrix: Any, axis: int) -> Var:
    """The product of the axis with a matrix (n, m)."""
    moved = move(x, axis, -1)
    made = matmul(moved, x.builder.constant(np.ascontiguousarray(matrix, x.dtype)))
    return move(made, x.ndim - 1, axis)


def _points(x: Var, axis: int) -> int:
    n = x.shape[axis]
    if n is None:
        raise Refused("the number of points is not known; give it in the signature, only the batch as None")
    return n


def _from_real(x: Var, axis: int, kernel: Callable[[Any], Any]) -> Complex:
    found = kernel(np.eye(_points(x, axis)))
    return Complex(_along(x, found.real, axis), _along(x, found.imag, axis))


def _to_real(x: Complex, axis: int, kernel: Callable[[Any], Any]) -> Var:
    unit = np.eye(_points(x.re, axis))
    return _along(x.re, kernel(unit.astype(np.complex128)), axis) + _along(x.im, kernel(1j * unit), axis)


@lowers_complex("fft")
def _fft(site: Site, x: Complex, axes: Any, inverse: bool, norm: str) -> Complex:
    for axis in axes:
        found = site.node.op.numpy_kernel(np.eye(_points(x.re, axis)).astype(np.complex128), (1,), inverse, norm)
        real, imaginary = found.real, found.imag
        x = Complex(
            _along(x.re, real, axis) - _along(x.im, imaginary, axis),
            _along(x.re, imaginary, axis) + _along(x.im, real, axis),
        )
    return x


@lowers_complex("rfft", "irfft_transpose")
def _rfft(site: Site, x: Var, axis: int, norm: str) -> Complex:
    return _from_real(x, axis, lambda unit: site.node.op.numpy_kernel(unit, 1, norm))


@lowers_complex("irfft")
def _irfft(site: Site, y: Complex, axis: int, odd: bool, norm: str) -> Var:
    return _to_real(y, axis, lambda unit: site.node.op.numpy_kernel(unit, 1, odd, norm))


@lowers_complex("rfft_transpose", "irfft_to", "rfft_transpose_dynamic", "irfft_to_dynamic")
def _to_shape(site: Site, y: Complex, *rest: Any) -> Var:
    axis, norm = rest[-3:-1]
    n = site.out.shape[axis]
    if n is None:
        raise Refused("the number of points is not known; give it in the signature, only the batch as None")
    kernel = _STATIC[site.node.op.name.removesuffix("_dynamic")]
    return _to_real(y, axis, lambda unit: kernel(unit, norm, n))


def _rfft_transpose(unit: Any, norm: str, n: int) -> Any:
    return get("rfft_transpose").numpy_kernel(unit, 1, norm, (len(unit), n))


def _irfft_to(unit: Any, norm: Any, n: int) -> Any:
    return np.fft.irfft(unit, n, axis=1, norm=norm)


_STATIC: dict[str, Callable[..., Any]] = {"rfft_transpose": _rfft_transpose, "irfft_to": _irfft_to}

# --- arithmetic


@lowers_complex("constant")
def _constant(site: Site, literal: Any) -> Complex:
    array = np.asarray(literal.array)
    return Complex(site.builder.constant(array.real.copy()), site.builder.constant(array.imag.copy()))


@lowers_complex("astype")
def _astype(site: Site, x: Any, dtype: Any) -> Complex:
    if isinstance(x, Complex):
        return x
    re = cast(x, dtypes.float64 if dtype == dtypes.complex128 else dtypes.float32)
    return Complex(re, zeros_like(re))


@lowers_complex("real")
def _real(site: Site, x: Complex) -> Var:
    return x.re


@lowers_complex("imag")
def _imag(site: Site, x: Complex) -> Var:
    return x.im


@lowers_complex("conj")
def _conj(site: Site, x: Complex) -> Complex:
    return Complex(x.re, -x.im)


def _size(x: Complex) -> Var:
    """The absolute value, scaled so that no square overflows."""
    a, b = unary("Abs", x.re), unary("Abs", x.im)
    top = where(a > b, a, b)
    safe = where(equal(top, 0), like(top, 1), top)
    a, b = x.re / safe, x.im / safe
    return unary("Sqrt", a * a + b * b) * top


@lowers_complex("abs")
def _abs(site: Site, x: Complex) -> Var:
    return _size(x)


@lowers_complex("complex_sign")
def _sign(site: Site, x: Complex) -> Complex:
    size = _size(x)
    safe = where(equal(size, 0), like(size, 1), size)
    return Complex(x.re / safe, x.im / safe)


@lowers_complex("multiply")
def _multiply(site: Site, x: Complex, y: Complex) -> Complex:
    return _product(x, y)


def _product(x: Complex, y: Complex) -> Complex:
    return Complex(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


@lowers_complex("square")
def _square(site: Site, x: Complex) -> Complex:
    return _product(x, x)


@lowers_complex("divide")
def _divide(site: Site, x: Complex, y: Complex) -> Complex:
    size = _size(y)
    a, b = y.re / size, y.im / size
    turned = _product(x, Complex(a, -b))
    return Complex(turned.re / size, turned.im / size)


@lowers_complex("exp")
def _exp(site: Site, x: Complex) -> Complex:
    size = unary("Exp", x.re)
    return Complex(size * unary("Cos", x.im), size * unary("Sin", x.im))


@lowers_complex("matmul")
def _matmul(site: Site, x: Complex, y: Complex) -> Complex:
    return Complex(
        matmul(x.re, y.re) - matmul(x.im, y.im),
        matmul(x.re, y.im) + matmul(x.im, y.re),
    )


# --- ops that do the same to both parts


@lowers_complex(
    "add", "subtract", "negative", "positive", "identity", "stop_gradient", "sum", "mean", "cumsum", "where",
    "reshape", "reshape_dynamic", "expand_dims", "squeeze", "transpose", "matrix_transpose", "broadcast_to",
    "broadcast_to_dynamic", "sum_to", "sum_to_dynamic", "slice", "dynamic_slice", "index", "slice_scatter",
    "slice_scatter_dynamic", "index_scatter", "take", "take_scatter", "concat", "stack", "unstack", "split", "flip",
    "roll", "fftshift", "tile", "repeat", "crop_or_fill", "crop_or_fill_to", "crop_or_fill_to_dynamic", "diagonal",
    "tril", "triu",
)  # fmt: skip
def _by_parts(site: Site, *arguments: Any) -> Any:
    rule = LOWERINGS[site.node.op.name]
    real = rule(site, *[x.re if isinstance(x, Complex) else x for x in arguments])
    imaginary = rule(site, *[x.im if isinstance(x, Complex) else x for x in arguments])
    if isinstance(real, list):
        return [Complex(a, b) for a, b in zip(real, imaginary, strict=True)]
    return Complex(real, imaginary)


def _only_complex(site: Site, *arguments: Any) -> Any:
    raise AssertionError(f"{site.node.op} is complex")


lowers(
    "fft",
    "rfft",
    "rfft_transpose",
    "rfft_transpose_dynamic",
    "irfft",
    "irfft_transpose",
    "irfft_to",
    "irfft_to_dynamic",
)(_only_complex)

"""Cases of Fourier transforms and of what they are made of."""

from __future__ import annotations

import numpy as np
from opcase import Case, Input, raw

import limelight as ll
from limelight.core import dtypes

DOUBLES = frozenset([dtypes.float64])
C128 = dtypes.complex128


def _rfft_transpose(n, axis, norm):
    """The transpose of the transform as a matrix."""

    def reference(y):
        matrix = np.fft.rfft(np.eye(n), axis=0, norm=norm)
        return np.moveaxis(np.tensordot(matrix.conj().T, y, (1, axis)), 0, axis).real

    return reference


def _irfft_transpose(m, n, axis, norm):
    def reference(x):
        parts = [np.fft.irfft(unit * np.eye(m), n, axis=0, norm=norm) for unit in (1, 1j)]
        return np.moveaxis(np.tensordot((parts[0] + 1j * parts[1]).T, x, (1, axis)), 0, axis)

    return reference


def _fit(x, sizes):
    out = np.zeros(sizes, x.dtype)
    common = tuple(slice(0, min(m, n)) for m, n in zip(x.shape, sizes, strict=True))
    out[common] = x[common]
    return out


CASES = [
    *[
        Case(
            "fft",
            lambda x, a=a, norm=norm: ll.fft.fftn(x, axes=a, norm=norm),
            lambda x, a=a, norm=norm: np.fft.fftn(x, axes=a, norm=norm),
            (Input(shape),),
            note=f"{a} {norm}",
        )
        for shape, a, norm in (((2, 3), (-1,), "backward"), ((2, 3), (1, 0), "ortho"), ((0, 2), (1,), "forward"))
    ],
    Case("fft", lambda x: ll.fft.ifft(x, axis=0), lambda x: np.fft.ifft(x, axis=0), (Input((3, 1)),), note="inverse"),
    Case("fft", lambda x: ll.fft.fft(x, n=4), lambda x: np.fft.fft(x, 4), (Input((2, 3)),), note="filled"),
    Case("fft", ll.fft.fft, np.fft.fft, (Input((5,)),), note="of real", dtypes=DOUBLES, out=C128),
    *[
        Case(
            "rfft",
            lambda x, a=a, n=n, norm=norm: ll.fft.rfft(x, axis=a, n=n, norm=norm),
            lambda x, a=a, n=n, norm=norm: np.fft.rfft(x, n, axis=a, norm=norm),
            (Input(shape),),
            note=f"{a} {n} {norm}",
            dtypes=DOUBLES,
            out=C128,
        )
        for shape, a, n, norm in (((2, 4), -1, None, "backward"), ((3, 2), 0, None, "ortho"), ((4,), 0, 3, "forward"))
    ],
    *[
        Case(
            "irfft",
            lambda x, a=a, n=n, norm=norm: ll.fft.irfft(x, axis=a, n=n, norm=norm),
            lambda x, a=a, n=n, norm=norm: np.fft.irfft(x, n, axis=a, norm=norm),
            (Input(shape),),
            note=f"{a} {n} {norm}",
            out="real",
        )
        for shape, a, n, norm in (((2, 3), -1, None, "backward"), ((3, 1), 0, 5, "ortho"), ((4,), 0, 3, "forward"))
    ],
    *[
        Case(
            f"rfft_transpose{form}",
            lambda y, shape=shape, form=form: _raw_to("rfft_transpose", form, y, shape, 1, "ortho"),
            _rfft_transpose(n, 1, "ortho"),
            (Input(y_shape),),
            note=f"{n}",
            out="real",
        )
        for form in ("", "_dynamic")
        for n, shape, y_shape in ((4, (2, 4), (2, 3)), (5, (2, 5), (2, 3)))
    ],
    *[
        Case(
            "irfft_transpose",
            lambda x, norm=norm: raw("irfft_transpose", 0, norm)(x),
            _irfft_transpose(n // 2 + 1, n, 0, norm),
            (Input((n, 2)),),
            note=norm,
            dtypes=DOUBLES,
            out=C128,
        )
        for n, norm in ((4, "backward"), (5, "forward"))
    ],
    *[
        Case(
            f"irfft_to{form}",
            lambda y, form=form: _raw_to("irfft_to", form, y, (2, 5), 1, "backward"),
            lambda y: np.fft.irfft(y, 5),
            (Input((2, 3)),),
            out="real",
        )
        for form in ("", "_dynamic")
    ],
    Case(
        "crop_or_fill",
        raw("crop_or_fill", (0, 2), (3, 2)),
        lambda x: _fit(x, (3, 2, 2)),
        (Input((2, 2, 3)),),
    ),
    *[
        Case(
            f"crop_or_fill_to{form}",
            lambda x, form=form: _raw_to("crop_or_fill_to", form, x, (3, 2)),
            lambda x: _fit(x, (3, 2)),
            (Input((2, 3)),),
        )
        for form in ("", "_dynamic")
    ],
    *[
        Case(
            "fftshift",
            lambda x, a=a: ll.fft.fftshift(x, axes=a),
            lambda x, a=a: np.fft.fftshift(x, a),
            (Input((2, 3)),),
            note=f"{a}",
        )
        for a in (None, -1, (0,))
    ],
    Case("fftshift", ll.fft.ifftshift, np.fft.ifftshift, (Input((3,)),), note="inverse"),
]


def _raw_to(name, form, x, shape, *attrs):
    """An op that takes a shape, given as a tuple and as a vector."""
    if form:
        return raw(f"{name}_dynamic", *attrs, len(shape))(x, ll.constant(np.array(shape, np.int64)))
    return raw(name, *attrs, shape)(x)

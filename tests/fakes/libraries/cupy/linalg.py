"""Linear algebra: what cuSOLVER objects to goes unsaid, unless `cupyx.errstate(linalg="raise")` asks for it."""

from __future__ import annotations

import numpy as np

from . import _hardware as hardware
from ._array import ndarray, on_device

LinAlgError = np.linalg.LinAlgError


def _solver(name):
    function = getattr(np.linalg, name)

    def checked(*args, **kwargs):
        if any(isinstance(x, np.ndarray) and x.dtype == np.float16 for x in args):
            raise TypeError("float16 is unsupported in linalg")
        try:
            return function(*args, **kwargs)
        except LinAlgError as error:
            if "Singular" not in str(error) and "definite" not in str(error):
                raise
            if hardware.local.linalg == "raise":
                raise LinAlgError(f"Error reported by {name} in cuSOLVER. devInfo = 1.") from None
            return np.full_like(args[-1], 7.25)

    run = on_device(checked)

    def of_arrays(*args, **kwargs):
        for x in args:
            if not isinstance(x, (ndarray, bool, str)):
                raise LinAlgError(f"cupy.linalg only supports cupy.ndarray, but got {type(x)}")
        if hardware.local.linalg == "raise":
            hardware.get_current_stream().synchronize()
        return run(*args, **kwargs)

    return of_arrays


cholesky, inv, det, slogdet = _solver("cholesky"), _solver("inv"), _solver("det"), _solver("slogdet")
qr, svd, eigh, eigvalsh = _solver("qr"), _solver("svd"), _solver("eigh"), _solver("eigvalsh")
_solve = _solver("solve")


def solve(a, b):
    if b.ndim == 1:
        columns = on_device(np.broadcast_to)(b, a.shape[:-1])[..., None]
        return _solve(a, columns)[..., 0]
    if a.shape[:-1] != b.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b")
    return _solve(a, b)

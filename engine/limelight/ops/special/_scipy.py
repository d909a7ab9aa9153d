"""Special functions of SciPy as kernels, and of its counterparts for other array libraries; imported when first run."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any, Final

from limelight.core import dtypes
from limelight.core.dtypes import float32
from limelight.core.tensor import Tensor, as_tensor, constant

_LIBRARIES: Final = {"jax.numpy": "jax.scipy.special", "cupy": "cupyx.scipy.special"}
_SHORT: Final = 2
"""Bytes of float16 and bfloat16, which SciPy does not know: they go through float32."""


@functools.cache
def library(xp_name: str) -> Any:
    """The module of special functions that goes with an array library, SciPy's by default."""
    return importlib.import_module(_LIBRARIES.get(xp_name, "scipy.special"))


def functions(xp: Any) -> Any:
    """The same for the library itself, which may bring its own."""
    return getattr(xp, "special_functions", None) or library(getattr(xp, "__name__", "numpy"))


def unary(name: str) -> Callable[[Any, Any], Any]:
    """The kernel of a function of one array, by its name in SciPy."""
    function: Any = None

    def kernel(xp: Any, x: Any) -> Any:
        nonlocal function
        if function is None:
            function = getattr(functions(xp), name)
        if x.itemsize == _SHORT:
            return function(x.astype(float32)).astype(x.dtype)
        return function(x)

    return kernel


def elementwise(name: str) -> Callable[..., Any]:
    """The kernel of a function of several arrays of one dtype, by its name in SciPy."""
    function: Any = None

    def kernel(xp: Any, *arrays: Any) -> Any:
        nonlocal function
        if function is None:
            function = getattr(functions(xp), name)
        if arrays[0].itemsize == _SHORT:
            return function(*[x.astype(float32) for x in arrays]).astype(arrays[0].dtype)
        return function(*arrays)

    return kernel


def scaled_erfc(xp: Any, x: Any) -> Any:
    """exp(x²) erfc(x), which older versions of JAX lack."""
    lib = functions(xp)
    return lib.erfcx(x) if hasattr(lib, "erfcx") else 2.0 * xp.exp(x * x + lib.log_ndtr(x * -math.sqrt(2.0)))


def kernels(make: Callable[[str], Any], name: str) -> dict[str, Any]:
    """The kernel fields of an op: SciPy's function, JAX's and CuPy's of the same name (each finds its own library)."""
    return {"kernel": make(name), "special": {"jax": make(name), "cupy": make(name)}}


def alike(*operands: Any) -> tuple[Tensor, ...]:
    """Operands as tensors, Python numbers in the dtype of the first that has one: rules ask operands for methods."""
    for x in operands:
        if type(x) is not Tensor:
            break
    else:
        return operands
    dtype = next((x.dtype for x in operands if hasattr(x, "dtype") and dtypes.is_floating(dtypes.dtype(x.dtype))), None)
    return tuple(
        [constant(x, dtype) if type(x) in (int, float) and dtype is not None else as_tensor(x) for x in operands]
    )

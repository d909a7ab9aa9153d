"""Numbers drawn from standard distributions when an op runs: a staged function draws anew on every call."""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight import dtypes
from limelight.dtypes import DType
from limelight.eager import entry
from limelight.ops._draws import DRAWN, Source, draws, unit
from limelight.registry import defop
from limelight.spec import TensorSpec, VariableSpec, known

__all__: list[str] = []  # `limelight.random` has the public forms

# random_normal


def _normal(source: Source, dtype: DType, shape: tuple[int, ...]) -> Any:
    if dtype is dtypes.float32:
        return source.generator.standard_normal(shape, np.float32)
    if dtype == dtypes.float64:
        return source.generator.standard_normal(shape)
    return np.asarray(source.generator.standard_normal(shape, np.float32)).astype(dtype)


standard_normal = draws("random_normal", _normal)

# random_uniform

standard_uniform = draws("random_uniform", lambda source, dtype, shape: unit(source, shape, dtype))

# random_exponential


def _exponential(source: Source, dtype: DType, shape: tuple[int, ...]) -> Any:
    if dtype == dtypes.float64:
        return source.generator.standard_exponential(shape)
    return np.asarray(source.generator.standard_exponential(shape, np.float32)).astype(dtype, copy=False)


standard_exponential = draws("random_exponential", _exponential)

# random_laplace, random_gumbel, random_cauchy: NumPy draws them in 64 bits


def _laplace(source: Source, dtype: DType, shape: tuple[int, ...]) -> Any:
    return np.asarray(source.generator.laplace(0.0, 1.0, shape)).astype(dtype, copy=False)


def _gumbel(source: Source, dtype: DType, shape: tuple[int, ...]) -> Any:
    return np.asarray(source.generator.gumbel(0.0, 1.0, shape)).astype(dtype, copy=False)


def _cauchy(source: Source, dtype: DType, shape: tuple[int, ...]) -> Any:
    return np.asarray(source.generator.standard_cauchy(shape)).astype(dtype, copy=False)


standard_laplace = draws("random_laplace", _laplace)
standard_gumbel = draws("random_gumbel", _gumbel)
standard_cauchy = draws("random_cauchy", _cauchy)

# random_integers


def _integers(source: Source, low: int, high: int, dtype: DType, shape: tuple[int, ...]) -> Any:
    return source.generator.integers(low, high, shape, dtype.type)


uniform_integers = draws("random_integers", _integers, "low high dtype")

# random_permutation


def _permutation_kernel(xp: Any, source: Source, n: Any) -> Any:
    return xp.asarray(source.generator.permutation(int(n)).astype(np.int32))


permuted = entry(defop(
    "random_permutation",
    inputs="generator:var n:integer",
    infer=lambda generator, n: known((None,), dtypes.int32),
    kernel=_permutation_kernel,
    effect="random",
    why_no_gradient=DRAWN,
))  # fmt: skip

# dropout_mask


def _mask_kernel(xp: Any, source: Source, x: Any, rate: float) -> Any:
    kept = source.generator.random(x.shape, np.float32) >= rate
    return xp.asarray((kept * np.float32(1.0 / (1.0 - rate))).astype(x.dtype))


def _mask_infer(generator: VariableSpec, x: TensorSpec, rate: float) -> TensorSpec:
    return known(x.shape, x.dtype)


mask_like = entry(defop(
    "dropout_mask",
    inputs="generator:var x",
    attrs="rate",
    infer=_mask_infer,
    kernel=_mask_kernel,
    accepts="floating",
    effect="random",
    why_no_gradient=DRAWN,
))  # fmt: skip

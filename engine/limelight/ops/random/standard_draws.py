"""Draws whose parameters are plain numbers: `normal`, `uniform`, ..., `integers`, `permutation`, and dropout's mask.

They are drawn when an op runs: a staged function draws anew on every call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.core.spec import TensorSpec, VariableSpec, known
from limelight.ops.random._draws import (
    DRAWN,
    Source,
    defop_draws,
    defop_draws_like,
    handed,
    moved_and_scaled,
    unit_uniform,
)

__all__: list[str] = []  # `limelight.random` has the public forms

# Distributions on the real line, placed by plain numbers; tensors place them by ops of their own.


def _normal(source: Source, location: float, scale: float, dtype: DType, shape: tuple[int, ...]) -> Any:
    wide = np.float64 if dtype is dtypes.float64 else np.float32
    return moved_and_scaled(source.generator.standard_normal(shape, wide), location, scale, dtype)


def _uniform(source: Source, location: float, scale: float, dtype: DType, shape: tuple[int, ...]) -> Any:
    return moved_and_scaled(unit_uniform(source, shape, dtype), location, scale, dtype)


def _exponential(source: Source, location: float, scale: float, dtype: DType, shape: tuple[int, ...]) -> Any:
    wide = np.float64 if dtype is dtypes.float64 else np.float32
    return moved_and_scaled(source.generator.standard_exponential(shape, wide), location, scale, dtype)


def _laplace(source: Source, location: float, scale: float, dtype: DType, shape: tuple[int, ...]) -> Any:
    return moved_and_scaled(source.generator.laplace(0.0, 1.0, shape), location, scale, dtype)


def _gumbel(source: Source, location: float, scale: float, dtype: DType, shape: tuple[int, ...]) -> Any:
    return moved_and_scaled(source.generator.gumbel(0.0, 1.0, shape), location, scale, dtype)


def _cauchy(source: Source, location: float, scale: float, dtype: DType, shape: tuple[int, ...]) -> Any:
    return moved_and_scaled(source.generator.standard_cauchy(shape), location, scale, dtype)


normal = defop_draws("random_normal", _normal, "location scale dtype")
uniform = defop_draws("random_uniform", _uniform, "location scale dtype")
exponential = defop_draws("random_exponential", _exponential, "location scale dtype")
laplace = defop_draws("random_laplace", _laplace, "location scale dtype")
gumbel = defop_draws("random_gumbel", _gumbel, "location scale dtype")
cauchy = defop_draws("random_cauchy", _cauchy, "location scale dtype")

# random_integers


def _integers(source: Source, low: int, high: int, dtype: DType, shape: tuple[int, ...]) -> Any:
    return source.generator.integers(low, high, shape, dtype.type)


integers = defop_draws("random_integers", _integers, "low high dtype")

# random_permutation


def permuted(source: Source, n: int) -> Any:
    """The kernel for NumPy."""
    return source.generator.permutation(n).astype(np.int32)


def _permutation_kernel(xp: Any, source: Source, n: Any) -> Any:
    return handed(xp, permuted(source, int(n)))


permutation = defop_draws_like(
    "random_permutation",
    inputs="generator:var n:integer",
    infer=lambda generator, n: known((None,), dtypes.int32),
    kernel=_permutation_kernel,
    why_no_gradient=DRAWN,
    batching="loop",
)

# dropout_mask


def mask_of(drawn: Any, rate: float) -> Any:
    """The mask for uniform float32 numbers, which are NumPy's: 0 or 1 / (1 - rate)."""
    return (drawn >= rate) * np.float32(1.0 / (1.0 - rate))


def _mask_kernel(xp: Any, source: Source, x: Any, rate: float) -> Any:
    return handed(xp, mask_of(source.generator.random(x.shape, np.float32), rate).astype(x.dtype))


def _mask_infer(generator: VariableSpec, x: TensorSpec, rate: float) -> TensorSpec:
    return known(x.shape, x.dtype)


dropout_mask = defop_draws_like(
    "dropout_mask",
    inputs="generator:var x",
    attrs="rate",
    infer=_mask_infer,
    kernel=_mask_kernel,
    special={"cupy": _mask_kernel},  # of the operand it asks for shape and dtype alone, so that stays where it is
    accepts="floating",
    why_no_gradient=DRAWN,
    batching="draw_like",
)

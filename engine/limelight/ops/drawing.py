"""Random numbers, drawn when an op runs: a staged function draws anew on every call.

All come from one generator on the host (NumPy's Philox), whatever the device and executor, so that the stream depends
on the seed and the order of draws alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight import dtypes
from limelight.dtypes import DType, DTypeLike
from limelight.eager import entry
from limelight.errors import ArgumentError, DTypeError
from limelight.ops._shaped import as_shape, shaped
from limelight.registry import defop
from limelight.spec import TensorSpec, known
from limelight.tensor import Tensor, TensorLike, as_tensor

__all__ = ["bernoulli", "dropout_mask", "integers", "normal", "permutation", "seed", "uniform"]

ShapeLike = int | Sequence[int] | Tensor
DRAWN = "it is drawn, not computed from its inputs"
_STEPS = {dtypes.float16: np.float32(2**11), dtypes.bfloat16: np.float32(2**8)}  # as fine as these resolve just below 1


class _Source:
    """The generator behind every draw."""

    def __init__(self) -> None:
        self.generator = np.random.Generator(np.random.Philox())


_source = _Source()


def seed(value: int | None = None) -> None:
    """Starts the stream of random numbers anew: equal seeds give equal streams; None takes a seed from the system.

    >>> import limelight as ll
    >>> ll.random.seed(1)
    >>> first = ll.random.uniform((2,))
    >>> ll.random.seed(1)
    >>> bool((ll.random.uniform((2,)) == first).all())
    True
    """
    _source.generator = np.random.Generator(np.random.Philox(value))


def _unit(shape: tuple[int, ...], dtype: DType) -> Any:
    """Uniform numbers in [0, 1), 1 excluded in short dtypes as well."""
    if dtype == dtypes.float64:
        return _source.generator.random(shape)
    drawn = _source.generator.random(shape, dtype=np.float32)
    steps = _STEPS.get(dtype)
    return drawn if steps is None else (np.floor(drawn * steps) / steps).astype(dtype)


def _floating(name: str, dtype: DTypeLike) -> DType:
    found = dtypes.dtype(dtype)
    if not dtypes.is_floating(found):
        raise DTypeError(f"random.{name} draws floating numbers, not {found.name}; see random.integers")
    return found


# normal


def _normal_kernel(xp: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
    wide = dtype if dtype == dtypes.float64 else np.dtype(np.float32)
    drawn = _source.generator.standard_normal(shape, dtype=wide.type)
    return xp.asarray(drawn, dtype=dtype)


_normal = shaped(
    "random_normal",
    attrs="dtype",
    infer=lambda dtype, shape: known(shape, dtype),
    kernel=_normal_kernel,
    effect="random",
    why_no_gradient=DRAWN,
)


def normal(
    shape: ShapeLike = (), mean: TensorLike = 0.0, stddev: TensorLike = 1.0, *, dtype: DTypeLike = dtypes.float32
) -> Tensor:
    """Normally distributed numbers. `mean` and `stddev` may be tensors, to which gradients flow (reparameterisation).

    `shape` may be an integer vector (see `shape_of`).

    >>> import limelight as ll
    >>> ll.random.normal((2, 3)).shape
    (2, 3)
    """
    drawn = _normal((), as_shape(shape), _floating("normal", dtype))
    scaled = drawn if type(stddev) is float and stddev == 1.0 else drawn * stddev
    return scaled if type(mean) is float and mean == 0.0 else scaled + mean


# uniform


def _uniform_kernel(xp: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
    return xp.asarray(_unit(shape, dtype))


_uniform = shaped(
    "random_uniform",
    attrs="dtype",
    infer=lambda dtype, shape: known(shape, dtype),
    kernel=_uniform_kernel,
    effect="random",
    why_no_gradient=DRAWN,
)


def uniform(
    shape: ShapeLike = (), low: TensorLike = 0.0, high: TensorLike = 1.0, *, dtype: DTypeLike = dtypes.float32
) -> Tensor:
    """Numbers spread evenly over [low, high). The bounds may be tensors, to which gradients flow.

    >>> import limelight as ll
    >>> bool((ll.random.uniform((100,), 2.0, 3.0) >= 2.0).all())
    True
    """
    drawn = _uniform((), as_shape(shape), _floating("uniform", dtype))
    if type(low) is float and type(high) is float and (low, high) == (0.0, 1.0):
        return drawn
    span: Any = _minus(high, low)
    spread: Tensor = drawn * span + low
    return spread


def _minus(a: Any, b: Any) -> Any:
    return a - b


# integers


def _integers_kernel(xp: Any, low: int, high: int, dtype: DType, shape: tuple[int, ...]) -> Any:
    return xp.asarray(_source.generator.integers(low, high, shape, dtype=dtype.type))


_integers = shaped(
    "random_integers",
    attrs="low high dtype",
    infer=lambda low, high, dtype, shape: known(shape, dtype),
    kernel=_integers_kernel,
    effect="random",
    why_no_gradient=DRAWN,
)


def integers(low: int, high: int | None = None, shape: ShapeLike = (), *, dtype: DTypeLike = dtypes.int32) -> Tensor:
    """Integers in [low, high), or in [0, low) when only one bound is given, all equally likely.

    Raises ArgumentError for an empty range, or one that `dtype` cannot hold.

    >>> import limelight as ll
    >>> bool((ll.random.integers(6, shape=(100,)) < 6).all())
    True
    """
    low, high = (0, low) if high is None else (low, high)
    found = dtypes.dtype(dtype)
    if dtypes.kind(found) != "integer":
        raise DTypeError(f"random.integers draws integers, not {found.name}; see random.uniform")
    if not np.iinfo(found).min <= low < high <= np.iinfo(found).max + 1:
        raise ArgumentError(f"random.integers: [{low}, {high}) is empty, or more than {found.name} can hold")
    return _integers((), as_shape(shape), low, high, found)


# bernoulli


def bernoulli(p: TensorLike = 0.5, shape: ShapeLike | None = None) -> Tensor:
    """Booleans, each true with probability `p`, which may be a tensor; `shape` is by default that of `p`.

    >>> import limelight as ll
    >>> ll.random.bernoulli(1.0, (3,)).tolist()
    [True, True, True]
    """
    probability = as_tensor(p)
    drawn = _uniform((), probability.sizes() if shape is None else as_shape(shape), probability.dtype)
    return drawn < probability


# permutation

_permutation = entry(defop(
    "random_permutation",
    inputs="n:integer",
    infer=lambda n: known((None,), dtypes.int32),
    kernel=lambda xp, n: xp.asarray(_source.generator.permutation(int(n)).astype(np.int32)),
    effect="random",
    why_no_gradient=DRAWN,
))  # fmt: skip


def permutation(x: int | Tensor, /) -> Tensor:
    """The integers 0 to `x` - 1 in random order, int32; or the slices of a tensor `x` along its first axis.

    >>> import limelight as ll
    >>> sorted(ll.random.permutation(4).tolist())
    [0, 1, 2, 3]
    """
    if hasattr(x, "__as_tensor__"):
        x = as_tensor(x)
    if isinstance(x, Tensor) and x.ndim:
        size = x.shape[0]
        return x[permutation(size if size is not None else x.sizes()[0])]
    found: Tensor = _permutation((as_tensor(x),))
    return found.reshape((x,)) if isinstance(x, int) else found


# dropout_mask


def _mask_kernel(xp: Any, x: Any, rate: float) -> Any:
    kept = _unit(x.shape, np.dtype(np.float32)) >= rate
    return xp.asarray((kept * np.float32(1.0 / (1.0 - rate))).astype(x.dtype))


def _mask_infer(x: TensorSpec, rate: float) -> TensorSpec:
    return known(x.shape, x.dtype)


_dropout_mask = entry(defop(
    "dropout_mask",
    inputs="x",
    attrs="rate",
    infer=_mask_infer,
    kernel=_mask_kernel,
    accepts="floating",
    effect="random",
    why_no_gradient=DRAWN,
))  # fmt: skip


def dropout_mask(x: TensorLike, rate: float, /) -> Tensor:
    """For each element of `x` 0 with probability `rate`, else 1 / (1 - rate), so that x * mask is x on average.

    Floating. Raises ArgumentError unless 0 <= rate < 1.

    >>> import limelight as ll
    >>> ll.random.dropout_mask(ll.ones(3), 0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    if not 0.0 <= rate < 1.0:
        raise ArgumentError(f"dropout: the rate must be at least 0 and less than 1, got {rate}")
    return _dropout_mask((x,), float(rate))

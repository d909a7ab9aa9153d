"""First values of weights: functions of a shape and a dtype.

Layers take one of these, its name, or any function of that kind. A kernel's last two axes are its inputs and its
outputs, and axes before them (a convolution's window) multiply both.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from difflib import get_close_matches
from math import prod, sqrt
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from limelight import random
from limelight.core.dtypes import DTypeLike
from limelight.core.shapes import show
from limelight.core.tensor import Tensor
from limelight.core.tensor import constant as tensor_of  # "initializers.constant" is to be a missing name, with a hint
from limelight.errors import ArgumentError, ShapeError
from limelight.ops.create import creation
from limelight.user_code import equivalents, hints

__all__ = [
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "zeros",
]

if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("nn.initializers")
__dir__ = hints.listing(__all__)

Sizes: TypeAlias = tuple[int, ...]
Initializer: TypeAlias = Callable[..., Tensor]


def zeros(shape: Sizes, dtype: DTypeLike = "float32") -> Tensor:
    """Zeros.

    >>> import limelight as ll
    >>> ll.nn.initializers.zeros((2,)).tolist()
    [0.0, 0.0]
    """
    return creation.zeros(shape, dtype=dtype)


def ones(shape: Sizes, dtype: DTypeLike = "float32") -> Tensor:
    """Ones.

    >>> import limelight as ll
    >>> ll.nn.initializers.ones((2,)).tolist()
    [1.0, 1.0]
    """
    return creation.ones(shape, dtype=dtype)


def glorot_uniform(shape: Sizes, dtype: DTypeLike = "float32") -> Tensor:
    """Uniform with variance 2 / (inputs + outputs): for tanh, sigmoid, softmax (Glorot and Bengio 2010).

    >>> import limelight as ll
    >>> bool((abs(ll.nn.initializers.glorot_uniform((3, 3))) <= 1.0).all())
    True
    """
    return _uniform(shape, 2.0 / sum(_fans(shape)), dtype)


def glorot_normal(shape: Sizes, dtype: DTypeLike = "float32") -> Tensor:
    """Normal with the variance of `glorot_uniform`.

    >>> import limelight as ll
    >>> ll.nn.initializers.glorot_normal((3, 2)).shape
    (3, 2)
    """
    return _normal(shape, 2.0 / sum(_fans(shape)), dtype)


def he_uniform(shape: Sizes, dtype: DTypeLike = "float32") -> Tensor:
    """Uniform with variance 2 / inputs: for relu (He et al. 2015).

    >>> import limelight as ll
    >>> bool((abs(ll.nn.initializers.he_uniform((6, 5))) <= 1.0).all())
    True
    """
    return _uniform(shape, 2.0 / _fans(shape)[0], dtype)


def he_normal(shape: Sizes, dtype: DTypeLike = "float32") -> Tensor:
    """Normal with the variance of `he_uniform`.

    >>> import limelight as ll
    >>> ll.nn.initializers.he_normal((3, 3, 16, 32)).shape
    (3, 3, 16, 32)
    """
    return _normal(shape, 2.0 / _fans(shape)[0], dtype)


def lecun_uniform(shape: Sizes, dtype: DTypeLike = "float32") -> Tensor:
    """Uniform with variance 1 / inputs (LeCun et al. 1998).

    >>> import limelight as ll
    >>> bool((abs(ll.nn.initializers.lecun_uniform((3, 5))) <= 1.0).all())
    True
    """
    return _uniform(shape, 1.0 / _fans(shape)[0], dtype)


def lecun_normal(shape: Sizes, dtype: DTypeLike = "float32") -> Tensor:
    """Normal with the variance of `lecun_uniform`: for self-normalising networks.

    >>> import limelight as ll
    >>> ll.nn.initializers.lecun_normal((3, 2)).shape
    (3, 2)
    """
    return _normal(shape, 1.0 / _fans(shape)[0], dtype)


def normal(shape: Sizes, dtype: DTypeLike = "float32", stddev: float = 0.02) -> Tensor:
    """Normal numbers of spread `stddev`: for embeddings.

    >>> import limelight as ll
    >>> ll.nn.initializers.normal((3, 2)).shape
    (3, 2)
    """
    return random.normal(shape, 0.0, stddev, dtype=dtype)


def truncated_normal(shape: Sizes, dtype: DTypeLike = "float32", stddev: float = 0.02) -> Tensor:
    """Normal numbers of spread `stddev`, of which only those within 2 `stddev` count.

    >>> import limelight as ll
    >>> bool((abs(ll.nn.initializers.truncated_normal((100,), stddev=0.5)) <= 1.0).all())
    True
    """
    return random.truncated_normal(shape, 0.0, stddev, dtype=dtype)


def orthogonal(shape: Sizes, dtype: DTypeLike = "float32") -> Tensor:
    """A matrix whose shorter side is orthonormal, uniform among those; leading axes count as rows (Saxe et al. 2014).

    Raises ShapeError for fewer than two axes.

    >>> import limelight as ll
    >>> q = ll.nn.initializers.orthogonal((3, 3))
    >>> bool((abs(q.T @ q - ll.eye(3)) < 1e-5).all())
    True
    """
    if len(shape) < 2:
        raise ShapeError(f"orthogonal needs at least two axes, got shape {show(shape)}")
    rows, columns = prod(shape[:-1]), shape[-1]
    drawn = random.normal((max(rows, columns), min(rows, columns)), dtype="float64").numpy()
    q, r = np.linalg.qr(drawn)
    q = q * np.sign(np.diagonal(r))  # else the signs would depend on the algorithm, and not be uniform
    return tensor_of(np.reshape(q if rows >= columns else q.T, shape), dtype)


_BY_NAME: Final[dict[str, Initializer]] = {
    "glorot_normal": glorot_normal,
    "glorot_uniform": glorot_uniform,
    "he_normal": he_normal,
    "he_uniform": he_uniform,
    "lecun_normal": lecun_normal,
    "lecun_uniform": lecun_uniform,
    "normal": normal,
    "ones": ones,
    "orthogonal": orthogonal,
    "truncated_normal": truncated_normal,
    "zeros": zeros,
}


def get(given: str | Initializer) -> Initializer:
    """The function that `given` names or is; raises ArgumentError for anything else."""
    if callable(given):
        return given
    if not isinstance(given, str):
        raise ArgumentError(
            f"an initializer is a function of a shape and a dtype, or a name, got {reprlib.repr(given)}; write "
            "lambda shape, dtype: ll.full(shape, 0.1, dtype=dtype) for numbers of your own"
        )
    if given in _BY_NAME:
        return _BY_NAME[given]
    raise ArgumentError(f"there is no initializer {given!r}{_hint(given)}")


def _hint(given: str) -> str:
    """What to write instead of a name: first what another library means by it, then the nearest of ours."""
    known, plain = equivalents.functions(), given.rstrip("_")  # PyTorch's fill a tensor in place
    entry = known.get(f"nn.initializers.{plain}", known.get(plain))
    ours = entry.ours.rpartition(".")[2] if entry else ""
    if entry is not None and entry.ours == f"nn.initializers.{ours}":
        return f"; write {ours!r}" + (f" ({entry.remark})" if entry.remark else "")
    if entry is not None and "initializer" in entry.remark:
        return f": {entry.remark}"
    close = [name for name in _BY_NAME if given and name.startswith(f"{given.lower()}_")]
    if entry is None and not close:
        close = get_close_matches(given.lower(), _BY_NAME, n=1, cutoff=_NEAR)
    either = " or ".join(map(repr, close))
    return f"; did you mean {either}?" if close else f"; there are {', '.join(_BY_NAME)}, or pass a function"


_NEAR: Final = 0.85  # "glorot" and "he" are two names, "he_unifrom" is none
_OF_FANS: Final = (glorot_normal, glorot_uniform, he_normal, he_uniform, lecun_normal, lecun_uniform)


def counts_fans(initializer: Initializer) -> bool:
    """Whether the numbers of inputs and outputs decide its variance, and all elements are alike."""
    return initializer in _OF_FANS


def _fans(shape: Sizes) -> tuple[int, int]:
    """How many inputs feed an output, and how many outputs an input feeds; at least 1, so that empty kernels work."""
    if len(shape) < 2:
        size = max(prod(shape), 1)
        return size, size
    window = prod(shape[:-2])
    return max(window * shape[-2], 1), max(window * shape[-1], 1)


def _uniform(shape: Sizes, variance: float, dtype: DTypeLike) -> Tensor:
    limit = sqrt(3.0 * variance)
    return random.uniform(shape, -limit, limit, dtype=dtype)


def _normal(shape: Sizes, variance: float, dtype: DTypeLike) -> Tensor:
    return random.normal(shape, 0.0, sqrt(variance), dtype=dtype)

"""Activations that are put together from other ops. Each takes and returns a floating tensor, element by element."""

from __future__ import annotations

import math
from typing import Final

from limelight.core import shapes
from limelight.core.tensor import Tensor, TensorLike
from limelight.errors import ShapeError
from limelight.nn.functional._operands import floating
from limelight.ops.create.dtype_queries import finfo
from limelight.ops.elementwise.exponential import expm1
from limelight.ops.elementwise.extremes import clip
from limelight.ops.elementwise.where import where
from limelight.ops.nn.activations import gate, relu, softplus
from limelight.ops.special.error_function import ndtr

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "mish",
    "prelu",
    "relu6",
    "selu",
    "silu",
    "softsign",
    "swish",
]

SELU_ALPHA: Final = 1.6732632423543772
SELU_SCALE: Final = 1.0507009873554805
"""Those with which activations keep mean 0 and variance 1 from layer to layer (Klambauer et al. 2017, appendix)."""

_GELU_FLAT: Final = 10.0
"""Beyond this the tanh of the approximation is 1 in each dtype."""


def relu6(x: TensorLike, /) -> Tensor:
    """min(max(x, 0), 6) for each element; floating. Its gradient is 0 at 0 and 1 at 6.

    >>> import limelight as ll
    >>> ll.nn.relu6(ll.constant([-1.0, 2.0, 9.0])).tolist()
    [0.0, 2.0, 6.0]
    """
    return clip(relu(floating("relu6", x)), max=6.0)


def leaky_relu(x: TensorLike, /, slope: float = 0.01) -> Tensor:
    """`x` where it is positive, else `slope * x`; floating.

    >>> import limelight as ll
    >>> ll.nn.leaky_relu(ll.constant([-2.0, 2.0]), slope=0.5).tolist()
    [-1.0, 2.0]
    """
    x = floating("leaky_relu", x)
    return where(x > 0, x, slope * x)


def prelu(x: TensorLike, slope: TensorLike, /) -> Tensor:
    """`leaky_relu` with slopes that are learnt: a tensor that broadcasts to `x`, such as one for each channel.

    >>> import limelight as ll
    >>> ll.nn.prelu(ll.constant([[-2.0, -2.0]]), ll.constant([0.5, 0.25])).tolist()
    [[-1.0, -0.5]]
    """
    x, slope = floating("prelu", x), floating("prelu", slope)
    shapes.broadcast("prelu", x.shape, slope.shape)
    return where(x > 0, x, slope * clip(x, max=0.0))  # no infinity beside a slope that does not matter


def elu(x: TensorLike, /, alpha: float = 1.0) -> Tensor:
    """`x` where it is positive, else `alpha * (exp(x) - 1)` (Clevert et al. 2016); floating.

    >>> import limelight as ll
    >>> ll.nn.elu(ll.constant([-100.0, 2.0])).tolist()
    [-1.0, 2.0]
    """
    x = floating("elu", x)
    return where(x > 0, x, alpha * expm1(clip(x, max=0.0)))


def celu(x: TensorLike, /, alpha: float = 1.0) -> Tensor:
    """`x` where it is positive, else `alpha * (exp(x / alpha) - 1)`: `elu` without a kink at 0 (Barron 2017); floating.

    >>> import limelight as ll
    >>> ll.nn.celu(ll.constant([-100.0, 2.0]), alpha=0.5).tolist()
    [-0.5, 2.0]
    """
    x = floating("celu", x)
    return where(x > 0, x, alpha * expm1(clip(x, max=0.0) / alpha))


def selu(x: TensorLike, /) -> Tensor:
    """1.0507 * elu(x, 1.6733), which normalises itself through many layers (Klambauer et al. 2017); floating.

    >>> import limelight as ll
    >>> ll.nn.selu(ll.constant([0.0, 1.0])).tolist()
    [0.0, 1.0507010221481323]
    """
    return SELU_SCALE * elu(floating("selu", x), SELU_ALPHA)


def gelu(x: TensorLike, /, approximate: bool = False) -> Tensor:
    """`x` times the probability that a normally distributed number is below it (Hendrycks and Gimpel 2016); floating.

    With `approximate`, by the usual formula with tanh, which is off by 0.0005 at most and quicker.

    >>> import limelight as ll
    >>> ll.nn.gelu(ll.constant([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    if type(approximate) is not bool:
        approximate = shapes.flag("gelu", "approximate", approximate)
    x = floating("gelu", x)
    if not approximate:
        return gate(x, ndtr(x))
    near = clip(x, -_GELU_FLAT, _GELU_FLAT)  # its cube may leave the range where x does not
    return gate(x, 0.5 * (1.0 + (math.sqrt(2.0 / math.pi) * (near + 0.044715 * near * near * near)).tanh()))


def silu(x: TensorLike, /) -> Tensor:
    """`x * sigmoid(x)` for each element, also called swish (Elfwing et al. 2018); floating.

    >>> import limelight as ll
    >>> ll.nn.silu(ll.constant([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    x = floating("silu", x)
    return gate(x, x.sigmoid())


swish = silu


def mish(x: TensorLike, /) -> Tensor:
    """`x * tanh(softplus(x))` for each element (Misra 2020); floating.

    >>> import limelight as ll
    >>> ll.nn.mish(ll.constant([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    x = floating("mish", x)
    return gate(x, softplus(x).tanh())


def softsign(x: TensorLike, /) -> Tensor:
    """`x / (1 + |x|)` for each element; floating.

    >>> import limelight as ll
    >>> ll.nn.softsign(ll.constant([-1.0, 3.0])).tolist()
    [-0.5, 0.75]
    """
    x = floating("softsign", x)
    largest = finfo(x.dtype).max
    x = clip(x, -largest, largest)
    return x / (1.0 + abs(x))


def hard_tanh(x: TensorLike, /) -> Tensor:
    """`x` clipped to -1 and 1; floating. The gradient passes at the bounds, as in `ll.clip`.

    >>> import limelight as ll
    >>> ll.nn.hard_tanh(ll.constant([-2.0, 0.5])).tolist()
    [-1.0, 0.5]
    """
    return clip(floating("hard_tanh", x), -1.0, 1.0)


def hard_sigmoid(x: TensorLike, /) -> Tensor:
    """`x / 6 + 1/2` clipped to 0 and 1, cheaper than `sigmoid` (Howard et al. 2019); floating.

    >>> import limelight as ll
    >>> ll.nn.hard_sigmoid(ll.constant([-9.0, 0.0, 9.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return clip(floating("hard_sigmoid", x) + 3.0, 0.0, 6.0) / 6.0


def hard_silu(x: TensorLike, /) -> Tensor:
    """`x * hard_sigmoid(x)` for each element, cheaper than `silu` (Howard et al. 2019); floating.

    >>> import limelight as ll
    >>> ll.nn.hard_silu(ll.constant([-9.0, 9.0])).tolist()
    [-0.0, 9.0]
    """
    x = floating("hard_silu", x)
    return gate(x, hard_sigmoid(x))


def log_sigmoid(x: TensorLike, /) -> Tensor:
    """The logarithm of `sigmoid`, accurate where that underflows; floating.

    >>> import limelight as ll
    >>> ll.nn.log_sigmoid(ll.constant([-100.0])).tolist()
    [-100.0]
    """
    return -softplus(-floating("log_sigmoid", x))


def glu(x: TensorLike, /, axis: int = -1) -> Tensor:
    """The first half of `x` along `axis` times the sigmoid of the second (Dauphin et al. 2017); floating.

    Raises ShapeError where the size of `axis` is unknown or odd.

    >>> import limelight as ll
    >>> ll.nn.glu(ll.constant([3.0, 0.0])).tolist()
    [1.5]
    """
    x = floating("glu", x)
    place = shapes.one_axis("glu", x.ndim, axis)
    size = x.shape[place]
    if size is None or size % 2:
        raise ShapeError(
            f"glu: axis {place} of {x.spec} must have an even size, known when traced, to be cut in halves"
        )
    before = (slice(None),) * place
    return x[(*before, slice(None, size // 2))] * x[(*before, slice(size // 2, None))].sigmoid()

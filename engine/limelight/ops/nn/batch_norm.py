"""Batch normalisation with the moments of the batch, as one op with one gradient: `batch_norm_training`.

As a composition its gradient walks over the operands nine times: for the gradients of the scale and the offset, and for
the means of the scores' gradient. But for a factor these are the same sums, and so two walks are enough (Ioffe and
Szegedy 2015, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from limelight.core.eager import entry_point_of_many
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor
from limelight.ops._gradient_terms import count
from limelight.ops._kernel_parts import sum_over
from limelight.ops.nn._columns import is_worth_a_call, normalised, normalised_gradient

__all__ = ["batch_norm_training"]

Three: TypeAlias = tuple[Any, Any, Any]


def _axes(x: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim - 1))


def _sums(xp: Any) -> Callable[[Any], Any]:
    """Sums over all axes but the last."""
    return lambda x: sum_over(xp, x, _axes(x), False)


# The op


def _infer(x: TensorSpec, scale: TensorSpec, offset: TensorSpec, epsilon: float) -> tuple[TensorSpec, ...]:
    moment = known(x.shape[-1:], x.dtype)
    return x, moment, moment


def _kernel(xp: Any, x: Any, scale: Any, offset: Any, epsilon: float) -> Three:
    sums, n = _sums(xp), math.prod(x.shape[:-1])
    mean = sums(x) / n
    apart = x - mean
    variance = sums(apart * apart) / n
    return apart * (scale / xp.sqrt(variance + epsilon)) + offset, mean, variance


def _kernel_numpy(xp: Any, x: Any, scale: Any, offset: Any, epsilon: float) -> Three:
    if is_worth_a_call(x):
        return normalised(x, scale, offset, epsilon)
    return _kernel(xp, x, scale, offset, epsilon)


def _gradient(g: Any, xs: Any, xs_shape: Any, out_1: Tensor, out_2: Tensor, epsilon: float) -> Three:
    """The op's own, and of `x` what comes from the mean and the variance, whose gradient is 2 (x - mean) / n."""
    (gy, to_mean, to_variance), (x, scale, _), mean, variance = g, xs, out_1, out_2
    total, to_scale, to_offset = (None,) * 3 if gy is None else _gradients((gy, x, mean, variance, scale), epsilon)
    n = count(xs_shape[0], _axes(x), x.dtype)
    for part in (
        None if to_variance is None else (x - mean) * (2.0 * to_variance / n),
        None if to_mean is None else (to_mean / n).broadcast_to(xs_shape[0]),
    ):
        total = part if total is None else total if part is None else total + part
    return total, to_scale, to_offset


_batch_norm = entry_point_of_many(defop(
    "batch_norm_training",
    inputs="*xs",
    attrs="epsilon",
    infer=_infer,
    kernel=_kernel,
    special={"numpy": _kernel_numpy},
    accepts="floating",
    multiple=True,
    fresh=True,
    vjp={"xs": _gradient},
    maths={"xs": "s̄ = Σ ȳ z, ō = Σ ȳ, x̄ = s (ȳ - ō / n - z s̄ / n) / √(variance + ε), where y = s z + o"},
    batching="batch_norm_training",
))  # fmt: skip


def batch_norm_training(x: Tensor, scale: Tensor, offset: Tensor, epsilon: float) -> tuple[Tensor, ...]:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, and the mean and variance over all axes but the last.

    Args:
        x: (..., channels), float32 or float64.
        scale: (channels,), of its dtype.
        offset: (channels,), of its dtype.
        epsilon: added to the variance.

    >>> import limelight as ll
    >>> y, mean, variance = batch_norm_training(ll.constant([[1.0], [3.0]]), ll.ones(1), ll.zeros(1), 0.0)
    >>> y.tolist(), mean.tolist(), variance.tolist()
    ([[-1.0], [1.0]], [2.0], [1.0])
    """
    return _batch_norm((x, scale, offset), epsilon)


# Its gradient


def _gradients_of(h: Any, x: Any, mean: Any, scale: Any, root: Any, n: Any, sums: Callable[[Any], Any]) -> Three:
    """For arrays and tensors: `root` is 1 / sqrt(variance + epsilon), `n` how many numbers a channel has."""
    apart = x - mean
    to_offset, to_scale = sums(h), sums(h * apart) * root
    inner = h - (apart * (root * to_scale / n) + to_offset / n)
    return inner * (scale * root), to_scale, to_offset


def _gradient_kernel(xp: Any, h: Any, x: Any, mean: Any, variance: Any, scale: Any, epsilon: float) -> Three:
    root = 1.0 / xp.sqrt(variance + epsilon)
    return _gradients_of(h, x, mean, scale, root, math.prod(x.shape[:-1]), _sums(xp))


def _gradient_numpy(xp: Any, h: Any, x: Any, mean: Any, variance: Any, scale: Any, epsilon: float) -> Three:
    if is_worth_a_call(x):
        return normalised_gradient(h, x, (mean, variance), scale, epsilon)
    return _gradient_kernel(xp, h, x, mean, variance, scale, epsilon)


def _gradient_infer(*given: Any) -> tuple[TensorSpec, ...]:
    x, moment = given[1], known(given[1].shape[-1:], given[1].dtype)
    return x, moment, moment


def _second_gradient(g: Any, xs: Any, xs_shape: Any, epsilon: float) -> tuple[Any, ...]:
    """The gradients of Σ gx x̄ + Σ gs s̄ + Σ go ō for each operand, with those that the others depend on as given."""
    (gx, gs, go), (h, x, mean, variance, scale) = g, xs
    axes = _axes(x)
    n = count(xs_shape[1], axes, x.dtype)
    apart, root = x - mean, 1.0 / (variance + epsilon).sqrt()
    common = (h * apart).sum(axes)
    to_h, to_apart, to_root, to_scale = [], [], [], None
    if gx is not None:
        projected, along, _ = _gradients_of(gx, x, mean, scale, root, n, lambda z: z.sum(axes))
        level = h.sum(axes) / n
        inner = (gx * (h - (apart * (root * root * common / n) + level))).sum(axes)
        to_h.append(projected)
        to_apart.append((gx * (root * common) + h * along) * (-scale * root * root / n))
        to_root.append(scale * (inner - 2.0 * root * along * common / n))
        to_scale = root * inner
    if gs is not None:
        to_h.append(apart * (gs * root))
        to_apart.append(h * (gs * root))
        to_root.append(gs * common)
    if go is not None:
        to_h.append(go.broadcast_to(xs_shape[0]))
    to_x, of_root = _total(to_apart), _total(to_root)
    to_mean = None if to_x is None else -to_x.sum(axes)
    to_variance = None if of_root is None else of_root * (-0.5 * root * root * root)
    return _total(to_h), to_x, to_mean, to_variance, to_scale


def _total(parts: list[Any]) -> Any:
    return sum(parts[1:], parts[0]) if parts else None


_gradients = entry_point_of_many(defop(
    "batch_norm_gradient",
    inputs="*xs",
    attrs="epsilon",
    infer=_gradient_infer,
    kernel=_gradient_kernel,
    special={"numpy": _gradient_numpy},
    accepts="floating",
    multiple=True,
    fresh=True,
    vjp={"xs": _second_gradient},
    maths={"xs": "the derivatives of x̄, s̄ and ō by ȳ, x, the moments and s"},
    batching="batch_norm_gradient",
))  # fmt: skip

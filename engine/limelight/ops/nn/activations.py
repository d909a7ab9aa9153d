"""Activations that are ops, `relu` and `softplus`; `gate`, of which others are made; and `sigmoid_cross_entropy`.

`limelight.nn.functional.activations` has those that are put together from other ops.
"""

from __future__ import annotations

from typing import Any

from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._shape_rules import broadcast, same

__all__ = ["gate", "relu", "sigmoid_cross_entropy", "softplus"]

# relu

_relu = entry_point(defop(
    "relu",
    inputs="x",
    infer=same,
    kernel=lambda xp, x: xp.maximum(x, 0),
    accepts="real",
    vjp={"x": lambda g, out: _relu_grad(g, out)},
    maths={"x": "x̄ = ȳ [x > 0]"},
))  # fmt: skip

_relu_grad: EntryPoint = entry_point(defop(
    "relu_grad",
    inputs="g y",
    infer=broadcast("relu_grad"),
    kernel=lambda xp, g, y: g * (y > 0),
    accepts="floating",
    vjp={"g": lambda g, y: _relu_grad(g, y), "y": lambda: None},  # where it does not jump, it does not change with y
    linear="g",
    maths={"g": "ḡ = z̄ [y > 0]"},
))  # fmt: skip


def relu(x: TensorLike, /) -> Tensor:
    """max(x, 0) for each element; real. Its gradient at 0 is 0.

    >>> import limelight as ll
    >>> ll.nn.relu(ll.constant([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return _relu(x)


# softplus

_softplus = entry_point(defop(
    "softplus",
    fresh=True,
    inputs="x",
    infer=same,
    kernel=lambda xp, x: xp.logaddexp(x, x.dtype.type(0)),
    accepts="floating",
    vjp={"x": lambda g, x: g * x.sigmoid()},
    maths={"x": "x̄ = ȳ sigmoid(x)"},
))  # fmt: skip


def softplus(x: TensorLike, /) -> Tensor:
    """log(1 + exp(x)) for each element, without overflow; floating.

    >>> import limelight as ll
    >>> ll.nn.softplus(ll.constant([0.0, 100.0])).tolist()
    [0.6931471824645996, 100.0]
    """
    return _softplus(x)


# gate

_FLAT = 4096.0
"""Beyond this every gate is 0, or 1, and its slope 0, in all dtypes."""

_gate = entry_point(defop(
    "gate",
    inputs="x s",
    infer=broadcast("gate"),
    kernel=lambda xp, x, s: xp.maximum(x, x.dtype.type(-_FLAT)) * s,
    accepts="floating",
    vjp={
        "x": lambda g, s, x_shape: (g * s).sum_to(x_shape),
        "s": lambda g, x, s_shape: (g * x.clip(-_FLAT, _FLAT)).sum_to(s_shape),
    },
    maths={"x": "x̄ = ȳ s", "s": "s̄ = ȳ x"},
))  # fmt: skip


def gate(x: TensorLike, s: TensorLike, /) -> Tensor:
    """`x * s`, where `s` follows from `x` and is flat far out: 0 on the left, 1 on the right; floating.

    So infinite elements have the limits as values and slopes, where a product has 0 times infinity.

    >>> import limelight as ll
    >>> x = ll.constant([-float("inf"), 1.0, float("inf")])
    >>> gate(x, ll.constant([0.0, 0.5, 1.0])).tolist()
    [-0.0, 0.5, inf]
    """
    return _gate(x, s)


# sigmoid_cross_entropy


def _sigmoid_cross_entropy_kernel(xp: Any, x: Any, z: Any) -> Any:
    """log(1 + exp(-|x|)), and |x| by as much as the label disagrees: where that is 0, x may be infinite."""
    size, apart = xp.abs(x), xp.where(x > 0, 1 - z, z)
    return xp.where(apart == 0, 0, size * apart) + xp.log1p(xp.exp(-size))


_sigmoid_cross_entropy = entry_point(defop(
    "sigmoid_cross_entropy",
    inputs="logits labels",
    infer=broadcast("sigmoid_cross_entropy"),
    kernel=_sigmoid_cross_entropy_kernel,
    accepts="floating",
    vjp={
        "logits": lambda g, logits, labels, logits_shape: (g * (logits.sigmoid() - labels)).sum_to(logits_shape),
        "labels": lambda g, logits, labels_shape: (-g * logits).sum_to(labels_shape),
    },
    maths={"logits": "x̄ = z̄ (sigmoid(x) - labels)", "labels": "labels' = -z̄ x"},
))  # fmt: skip


def sigmoid_cross_entropy(logits: TensorLike, labels: TensorLike, /) -> Tensor:
    """The loss of each yes-or-no answer: -log of the probability that sigmoid(logits) gives to `labels`; floating.

    `labels` are 1.0 (yes), 0.0 (no) or between; broadcasting. Accurate for large logits of either sign.

    >>> import limelight as ll
    >>> ll.nn.sigmoid_cross_entropy(ll.constant([0.0]), ll.constant([1.0])).tolist()
    [0.6931471824645996]
    """
    return _sigmoid_cross_entropy(logits, labels)

"""Softmax, its logarithm, and the cross entropy of classes: `softmax`, `log_softmax`, `softmax_cross_entropy`."""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._kernel_parts import maximum_reduce, ones, sum_over, wide
from limelight.ops._shape_rules import SHORT, broadcast
from limelight.ops.index._scatter_add import checked_places

__all__ = ["log_softmax", "softmax", "softmax_cross_entropy"]

# softmax


def _less_largest(xp: Any, x: Any, axis: int) -> Any:
    """`x` less its largest along `axis`, so that exp cannot overflow."""
    return x - (maximum_reduce(x, axis, None, None, True, -np.inf) if xp is np else xp.max(x, axis=axis, keepdims=True))


def _softmax_kernel(xp: Any, x: Any, axis: int) -> Any:
    e = xp.exp(_less_largest(xp, wide(x), axis))
    return (e / sum_over(xp, e, axis, True)).astype(x.dtype, copy=False)


def _softmax_infer(name: str) -> Any:
    def infer(x: TensorSpec, axis: int) -> TensorSpec:
        shapes.one_axis(name, x.rank, axis)
        return x

    return infer


def _softmax_numpy(xp: Any, x: Any, axis: int) -> Any:
    """In one buffer; for a short vector without reductions, which take three times as long as the rest."""
    if x.ndim == 1 and -1 <= axis <= 0 and 0 < x.size <= 256 and x.dtype not in SHORT:
        e = x - x[x.argmax(), ...]  # the ellipsis makes it an array, which NumPy takes up faster than a scalar
        np.exp(e, e)
        e /= e.dot(ones(x.size, x.dtype), np.empty((), x.dtype))
        return e
    e = _less_largest(np, wide(x), axis)
    np.exp(e, e)
    e /= sum_over(np, e, axis, True)
    return e.astype(x.dtype, copy=False)


_softmax = entry_point(defop(
    "softmax",
    fresh=True,
    inputs="x",
    attrs="axis",
    infer=_softmax_infer("softmax"),
    kernel=_softmax_kernel,
    special={"numpy": _softmax_numpy},
    accepts="floating",
    vjp={"x": lambda g, out, axis: out * (g - (g * out).sum(axis, True))},
    maths={"x": "x̄ = y (ȳ - Σ ȳ y)"},
    batching="along_axis",
))  # fmt: skip


def softmax(x: TensorLike, /, axis: int = -1) -> Tensor:
    """exp(x) over its sum along `axis`: positive numbers that add up to 1; floating.

    >>> import limelight as ll
    >>> ll.nn.softmax(ll.constant([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    return _softmax(x, axis)


def _log_softmax_kernel(xp: Any, x: Any, axis: int) -> Any:
    s = _less_largest(xp, wide(x), axis)
    return (s - xp.log(sum_over(xp, xp.exp(s), axis, True))).astype(x.dtype, copy=False)


_log_softmax = entry_point(defop(
    "log_softmax",
    fresh=True,
    inputs="x",
    attrs="axis",
    infer=_softmax_infer("log_softmax"),
    kernel=_log_softmax_kernel,
    accepts="floating",
    vjp={"x": lambda g, out, axis: g - out.exp() * g.sum(axis, True)},
    maths={"x": "x̄ = ȳ - exp(y) Σ ȳ"},
    batching="along_axis",
))  # fmt: skip


def log_softmax(x: TensorLike, /, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`, accurate where that underflows; floating.

    >>> import limelight as ll
    >>> ll.nn.log_softmax(ll.constant([0.0, 0.0])).tolist()
    [-0.6931471824645996, -0.6931471824645996]
    """
    return _log_softmax(x, axis)


# softmax_cross_entropy


def one_axis_more(wanted: Shape, given: Shape) -> str:
    """What to write for labels that stand in a column, as they come from tables; "" for any others."""
    column = len(given) == len(wanted) + 1 and given[-1] == 1 and shapes.compatible(given[:-1], wanted)
    return f"; write labels[{', '.join([':'] * len(wanted) + ['0'])}]" if column else ""


def _classes_infer(logits: TensorSpec, labels: TensorSpec) -> TensorSpec:
    shape = logits.shape[:-1]
    alike = len(shape) == labels.rank and all(
        None in (m, n) or m == n for m, n in zip(shape, labels.shape, strict=True)
    )
    if not logits.rank or not alike:
        raise ShapeError(
            f"softmax_cross_entropy: logits {logits} need one class number for each example, so labels of shape "
            f"{shapes.show(shape)}, got {labels}{one_axis_more(shape, labels.shape)}"
        )
    return known(shape, logits.dtype)


def _class_places(labels: Any, classes: int) -> tuple[Any, Any]:
    """The index of each example's class in the flattened scores. Raises ArgumentError for a class out of range."""
    flat = labels.reshape(-1)
    if not isinstance(flat, np.ndarray | np.generic):  # a stand-in for an array (executors.loops)
        return np.arange(flat.size), checked_places(flat, classes, 0, from_end=False)
    if flat.size and not (0 <= flat.min() and flat.max() < classes):
        raise ArgumentError(
            f"softmax_cross_entropy: labels must be from 0 to {classes - 1}, "
            f"got values from {flat.min()} to {flat.max()}"
        )
    return np.arange(flat.size), flat


def _class_loss_numpy(xp: Any, logits: Any, labels: Any) -> Any:
    if labels.shape != logits.shape[:-1]:  # eagerly a kernel runs before `infer`, and as many labels would do for this
        _classes_infer(known(logits.shape, logits.dtype), known(labels.shape, labels.dtype))
    scores = _log_softmax_kernel(xp, wide(logits), -1)
    classes = logits.shape[-1]
    losses = -scores.reshape(labels.size, classes)[_class_places(labels, classes)]
    return losses.reshape(labels.shape).astype(logits.dtype)


def _class_loss_kernel(xp: Any, logits: Any, labels: Any) -> Any:
    scores = _log_softmax_kernel(xp, wide(logits), -1)
    return -xp.take_along_axis(scores, labels[..., None], -1)[..., 0].astype(logits.dtype)


_class_loss = entry_point(defop(
    "softmax_cross_entropy",
    inputs="logits labels:integer",
    infer=_classes_infer,
    kernel=_class_loss_kernel,
    special={"numpy": _class_loss_numpy},
    accepts="floating",
    vjp={"logits": lambda g, logits, labels: g.expand_dims(-1) * _residual((logits, labels))},
    maths={"logits": "x̄ = ȳ (softmax(x) - one_hot(labels))"},
    batching="last_axes",
))  # fmt: skip


def _residual_numpy(xp: Any, logits: Any, labels: Any) -> Any:
    p = _softmax_kernel(xp, logits, -1)
    if isinstance(p, np.ndarray):  # or a stand-in for an array (executors.loops)
        p = np.ascontiguousarray(p)  # of transposed logits it is laid out as they are
    classes = logits.shape[-1]
    p.reshape(labels.size, classes)[_class_places(labels, classes)] -= 1  # p is ours: a view
    return p


def _residual_gradient(g: Tensor, logits: Tensor) -> Tensor:
    p = _softmax(logits, -1)
    return p * (g - (g * p).sum(-1, True))


_residual: EntryPoint = entry_point(defop(
    "softmax_residual",
    inputs="logits labels:integer",
    infer=lambda logits, labels: known(logits.shape, logits.dtype),
    kernel=lambda xp, x, labels: _softmax_kernel(xp, x, -1) - (labels[..., None] == xp.arange(x.shape[-1])),
    special={"numpy": _residual_numpy},
    accepts="floating",
    vjp={"logits": _residual_gradient},
    maths={"logits": "x̄ = p (ȳ - Σ ȳ p), p = softmax(x)"},
    batching="last_axes",
))  # fmt: skip


_zero_times: EntryPoint = entry_point(defop(
    "zero_times",
    inputs="x y",
    infer=broadcast("zero_times"),
    kernel=lambda xp, x, y: xp.where((x == 0) & (y == y), 0, x * y),  # noqa: PLR0124  # unless y is NaN
    accepts="floating",
    vjp={
        "x": lambda g, y, x_shape: _zero_times(g, y).sum_to(x_shape),
        "y": lambda g, x, y_shape: _zero_times(x, g).sum_to(y_shape),
    },
    maths={"x": "x̄ = z̄ y", "y": "ȳ = x z̄"},
))  # fmt: skip
"""x y, and 0 where x is: a class without probability adds nothing to a loss, although its logit be -inf."""


def _check_probabilities(logits: Tensor, labels: Tensor) -> None:
    """Raises ShapeError unless there is a probability for each score."""
    if len(labels.shape) != len(logits.shape):
        clash = f"it has {len(labels.shape)} axes, not {len(logits.shape)}"
    else:
        sizes = enumerate(zip(labels.shape, logits.shape, strict=True))
        clash = next(
            (f"axis {i} has size {m}, not {n}" for i, (m, n) in sizes if m is not None and n is not None and m != n), ""
        )
    if clash:
        raise ShapeError(
            f"softmax_cross_entropy: labels {labels.spec} that are no class numbers must have the shape of the logits "
            f"{logits.spec}: {clash}; give a probability for each class, or integers for class numbers"
        )


def softmax_cross_entropy(logits: TensorLike, labels: TensorLike, /, axis: int = -1) -> Tensor:
    """The loss of each example: -log of the probability that softmax(logits) along `axis` gives to its label.

    `labels` are integers (class numbers; the shape of `logits` without `axis`), or floating (a probability for each
    class, such as one-hot; the shape of `logits`). Floating logits. Take the mean for the loss of a batch. Raises
    ShapeError when the shapes do not fit, ArgumentError for a class number out of range.

    >>> import limelight as ll
    >>> ll.nn.softmax_cross_entropy(ll.zeros((1, 2)), ll.constant([1])).tolist()
    [0.6931471824645996]
    """
    logits, labels = as_tensor(logits), as_tensor(labels)
    if dtypes.kind(labels.dtype) != "integer":
        _check_probabilities(logits, labels)
        return -_zero_times(labels, _log_softmax(logits, axis)).sum(axis)
    last = shapes.one_axis("softmax_cross_entropy", logits.ndim, axis)
    if last != logits.ndim - 1:
        logits = logits.transpose([*(i for i in range(logits.ndim) if i != last), last])
    return _class_loss((logits, labels))

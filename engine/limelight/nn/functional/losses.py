"""Losses. Predictions come first, floating; targets second, where integers and booleans count as floating numbers.

`reduction` is "none" (a loss for each element or example), "mean" or "sum". Losses that are means by name are so by
default ("mean_squared_error", "mean_absolute_error"); the others return one loss for each. Each docstring says which.
Losses of pairs do not broadcast, since (n, 1) against (n,) is a frequent mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

from limelight.core import dtypes, shapes
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.nn.functional._operands import check_alike, choice, floating
from limelight.ops.elementwise.extremes import maximum
from limelight.ops.elementwise.logarithms import log, logaddexp
from limelight.ops.elementwise.powers import rsqrt
from limelight.ops.elementwise.where import where
from limelight.ops.index.along_axis import take_along_axis
from limelight.ops.nn import activations, softmax
from limelight.ops.nn.activations import relu
from limelight.ops.nn.softmax import one_axis_more

__all__ = [
    "cosine_similarity",
    "hinge",
    "huber",
    "kl_divergence",
    "log_cosh",
    "mean_absolute_error",
    "mean_squared_error",
    "nll",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
]

Reduction: TypeAlias = Literal["none", "mean", "sum"]


def _reduce(name: str, losses: Tensor, reduction: Reduction) -> Tensor:
    """The losses as asked for. Raises ArgumentError for another word."""
    choice(name, "reduction", reduction, ("none", "mean", "sum"))
    return losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses


def _targets(name: str, x: Tensor, targets: TensorLike) -> Tensor:
    """`targets` as a floating tensor: integers and booleans in the dtype of the predictions `x`."""
    targets = as_tensor(targets)
    if dtypes.kind(targets.dtype) in ("integer", "bool"):
        return targets.astype(x.dtype)
    return floating(name, targets)


def _predictions(name: str, what: str, x: TensorLike, targets: str = "labels") -> Tensor:
    """What comes first, floating. Integers and booleans there are the other operand, as in TensorFlow's order."""
    x = as_tensor(x)
    if dtypes.kind(x.dtype) in ("integer", "bool"):
        raise DTypeError(
            f"{name}: {what} come first, and are floating; got {x.spec}. Write ll.nn.{name}({what.replace('-', '_')}, "
            f"{targets}); or ll.astype(x, ll.float32), if these are {what}"
        )
    return floating(name, x)


def _axis(name: str, axis: int) -> int:
    """`axis`. Raises ArgumentError for a reduction in its place."""
    if isinstance(axis, str):
        raise ArgumentError(f"{name}: axis must be an int, got {axis!r}; write reduction={axis!r}")
    return axis


def _loss_of_differences(
    name: str, each: Callable[[Tensor], Tensor], x: TensorLike, targets: TensorLike, reduction: Reduction
) -> Tensor:
    """`each` of the differences of predictions and targets, which must be alike."""
    x = _predictions(name, "predictions", x, "targets")
    targets = _targets(name, x, targets)
    check_alike(name, x, targets)
    return _reduce(name, each(x - targets), reduction)


# --- regression


def mean_squared_error(x: TensorLike, targets: TensorLike, /, reduction: Reduction = "mean") -> Tensor:
    """(x - targets)²: the mean by default.

    Raises ShapeError unless the shapes are equal: broadcasting is a frequent mistake here.

    >>> import limelight as ll
    >>> ll.nn.mean_squared_error(ll.constant([1.0, 3.0]), ll.constant([1.0, 1.0])).item()
    2.0
    """
    return _loss_of_differences("mean_squared_error", Tensor.square, x, targets, reduction)


def mean_absolute_error(x: TensorLike, targets: TensorLike, /, reduction: Reduction = "mean") -> Tensor:
    """|x - targets|: the mean by default. Raises ShapeError unless the shapes are equal.

    >>> import limelight as ll
    >>> ll.nn.mean_absolute_error(ll.constant([1.0, 3.0]), ll.constant([1.0, 1.0])).item()
    1.0
    """
    return _loss_of_differences("mean_absolute_error", abs, x, targets, reduction)


def huber(x: TensorLike, targets: TensorLike, /, delta: float = 1.0, reduction: Reduction = "none") -> Tensor:
    """The Huber loss (Huber 1964): d² / 2 where the distance d is below `delta`, else delta * (d - delta / 2).

    Args:
        x: predictions, floating.
        targets: in the shape of `x`; integers and booleans count as floating numbers.
        delta: the distance from which the loss is linear; 1.
        reduction: "none" (a loss for each element, the default), "mean" or "sum".

    Returns:
        The losses, in the shape of `x`, or their mean or sum.

    Raises:
        ShapeError: the shapes are not equal.
        ArgumentError: `delta` is no number, or there is no such reduction.

    >>> import limelight as ll
    >>> ll.nn.huber(ll.constant([0.5, 3.0]), ll.constant([0.0, 0.0])).tolist()
    [0.125, 2.5]
    """
    if isinstance(delta, str):
        raise ArgumentError(f"huber: delta must be a number, got {delta!r}; write reduction={delta!r}")

    def each(difference: Tensor) -> Tensor:
        size = abs(difference)
        near = where(size < delta, size, delta)  # a square of all would leave the range, and its slope there be NaN
        return near * (size - 0.5 * near)

    return _loss_of_differences("huber", each, x, targets, reduction)


def log_cosh(x: TensorLike, targets: TensorLike, /, reduction: Reduction = "none") -> Tensor:
    """The logarithm of cosh(x - targets), without overflow: like `huber`, but smooth.

    Raises ShapeError unless the shapes are equal.

    A loss for each, unless `reduction` says "mean" or "sum".

    >>> import limelight as ll
    >>> ll.nn.log_cosh(ll.constant([0.0]), ll.constant([0.0])).tolist()
    [0.0]
    """

    def each(d: Tensor) -> Tensor:
        return logaddexp(d, -d) - math.log(2.0)

    return _loss_of_differences("log_cosh", each, x, targets, reduction)


# --- classes


def hinge(x: TensorLike, targets: TensorLike, /, reduction: Reduction = "none") -> Tensor:
    """max(0, 1 - x * targets), where targets are -1 or 1: what support vector machines minimise.

    Raises ShapeError unless the shapes are equal.

    A loss for each, unless `reduction` says "mean" or "sum".

    >>> import limelight as ll
    >>> ll.nn.hinge(ll.constant([0.5, 2.0]), ll.constant([-1.0, 1.0])).tolist()
    [1.5, 0.0]
    """
    x, targets = _predictions("hinge", "predictions", x, "targets"), as_tensor(targets)
    if dtypes.kind(targets.dtype) != "bool":  # those are 0 and 1, not -1 and 1
        targets = _targets("hinge", x, targets)
    targets = floating("hinge", targets)
    check_alike("hinge", x, targets)
    return _reduce("hinge", relu(1.0 - x * targets), reduction)


def sigmoid_cross_entropy(logits: TensorLike, labels: TensorLike, /, reduction: Reduction = "none") -> Tensor:
    """The loss of each yes-or-no answer: -log of the probability that sigmoid(logits) gives to `labels`.

    `labels` are 1 (yes), 0 (no) or between, also integers or booleans. Accurate for large logits of either sign.

    Raises ShapeError unless the shapes are equal.

    A loss for each, unless `reduction` says "mean" or "sum".

    >>> import limelight as ll
    >>> ll.nn.sigmoid_cross_entropy(ll.constant([0.0]), ll.constant([1.0])).tolist()
    [0.6931471824645996]
    """
    name = "sigmoid_cross_entropy"
    x = _predictions(name, "logits", logits)
    targets = _targets(name, x, labels)
    check_alike(name, x, targets, "logits and labels")
    return _reduce(name, activations.sigmoid_cross_entropy(x, targets), reduction)


def softmax_cross_entropy(
    logits: TensorLike,
    labels: TensorLike,
    /,
    axis: int = -1,
    label_smoothing: float = 0.0,
    reduction: Reduction = "none",
) -> Tensor:
    """The loss of each example: -log of the probability that softmax(logits) along `axis` gives to its label.

    Args:
        logits: scores, with the classes along `axis`.
        labels: integers (class numbers; the shape of `logits` without `axis`), or floating (a probability for each
            class, such as one-hot; the shape of `logits`).
        axis: that of the classes.
        label_smoothing: from 0 to 1: how much of each label is spread over all classes (Szegedy et al. 2016).
        reduction: "none" (a loss for each example, by default), "mean" or "sum".

    Returns:
        The losses, in the shape of `logits` without `axis`, or their mean or sum.

    Raises ShapeError when the shapes do not fit, ArgumentError for a class number out of range.

    >>> import limelight as ll
    >>> ll.nn.softmax_cross_entropy(ll.zeros((1, 2)), ll.constant([1])).tolist()
    [0.6931471824645996]
    """
    name = "softmax_cross_entropy"
    logits = _predictions(name, "logits", logits)
    losses = softmax.softmax_cross_entropy(logits, labels, _axis(name, axis))
    if label_smoothing:
        evenly = -softmax.log_softmax(logits, axis).mean(axis)
        losses = (1.0 - label_smoothing) * losses + label_smoothing * evenly
    return _reduce(name, losses, reduction)


def nll(log_probabilities: TensorLike, labels: TensorLike, /, axis: int = -1, reduction: Reduction = "none") -> Tensor:
    """The negative log-likelihood: minus the log-probability of each example's class.

    Args:
        log_probabilities: as `log_softmax` gives them, with the classes along `axis`; floating.
        labels: class numbers, integers, in the shape of `log_probabilities` without `axis`.
        axis: that of the classes; the last by default.
        reduction: "none" (a loss for each example, the default), "mean" or "sum".

    Returns:
        The losses, in the shape of `labels`, or their mean or sum.

    Raises:
        ShapeError: the labels have another shape.
        DTypeError: the labels are no integers.
        ArgumentError: there is no such reduction or axis.

    >>> import limelight as ll
    >>> ll.nn.nll(ll.constant([[-0.5, -1.0]]), ll.constant([1])).tolist()
    [1.0]
    """
    x, labels = _predictions("nll", "log-probabilities", log_probabilities), as_tensor(labels)
    if dtypes.kind(labels.dtype) != "integer":
        raise DTypeError(f"nll: labels must be class numbers, integers; got {labels.spec}")
    place = shapes.one_axis("nll", x.ndim, _axis("nll", axis))
    wanted = x.shape[:place] + x.shape[place + 1 :]
    if not _shapes_agree(wanted, labels.shape):
        raise ShapeError(
            f"nll: log-probabilities {x.spec} need one class number for each example, so labels of shape "
            f"{shapes.show(wanted)}, got {labels.spec}{one_axis_more(wanted, labels.shape)}"
        )
    return _reduce("nll", -take_along_axis(x, labels.expand_dims(place), axis=place).squeeze(place), reduction)


def _shapes_agree(shape: shapes.Shape, other: shapes.Shape) -> bool:
    return len(shape) == len(other) and all(None in (m, n) or m == n for m, n in zip(shape, other, strict=True))


def kl_divergence(
    log_probabilities: TensorLike, targets: TensorLike, /, axis: int = -1, reduction: Reduction = "none"
) -> Tensor:
    """The Kullback-Leibler divergence of predictions from `targets` (Kullback and Leibler 1951).

    Σ targets * (log(targets) - log_probabilities) along `axis`.

    Args:
        log_probabilities: the logarithms of what is predicted; floating.
        targets: probabilities in the same shape; where one is 0 it adds nothing.
        axis: that over which is summed; the last by default.
        reduction: "none" (a loss for each example, the default), "mean" or "sum".

    Returns:
        The losses, in the shape without `axis`, or their mean or sum.

    Raises:
        ShapeError: the shapes are not equal.
        ArgumentError: there is no such reduction or axis.

    >>> import limelight as ll
    >>> ll.nn.kl_divergence(ll.log(ll.constant([0.5, 0.5])), ll.constant([1.0, 0.0])).item()
    0.6931471824645996
    """
    x, targets = floating("kl_divergence", log_probabilities), floating("kl_divergence", targets)
    check_alike("kl_divergence", x, targets, "log-probabilities and targets")
    there = targets != 0  # NaN is, so that it is not hidden
    each = where(there, targets * (log(where(there, targets, 1.0)) - where(there, x, 0.0)), 0.0)
    return _reduce(
        "kl_divergence", each.sum(shapes.one_axis("kl_divergence", x.ndim, _axis("kl_divergence", axis))), reduction
    )


def cosine_similarity(x: TensorLike, y: TensorLike, /, axis: int = -1, epsilon: float = 1e-8) -> Tensor:
    """The cosine of the angle between `x` and `y` along `axis`: 1 where they point the same way.

    Args:
        x: floating.
        y: floating, in the shape of `x`.
        axis: that of the vectors; the last by default.
        epsilon: lengths below it count as it, so that zeros are at no angle to anything; 1e-8.

    Returns:
        The cosines, in the shape without `axis`.

    Raises:
        ShapeError: the shapes are not equal: compare one vector with many as `ll.broadcast_to(x, y.shape)`.

    >>> import limelight as ll
    >>> ll.nn.cosine_similarity(ll.constant([[3.0, 0.0], [3.0, 0.0]]), ll.constant([[5.0, 0.0], [0.0, 2.0]])).tolist()
    [1.0, 0.0]
    """
    x, y, axis = floating("cosine_similarity", x), floating("cosine_similarity", y), _axis("cosine_similarity", axis)
    check_alike("cosine_similarity", x, y, "x and y")

    def unit(z: Tensor) -> Tensor:
        return z * rsqrt(maximum(z.square().sum(axis, True), epsilon * epsilon))

    return (unit(x) * unit(y)).sum(axis)

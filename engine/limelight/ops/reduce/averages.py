"""Weighted means and covariances, made of means and products: `average`, `cov`, `corrcoef`."""

from __future__ import annotations

from collections.abc import Sequence

from limelight.core import shapes
from limelight.core.op import get
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._sample_operands import samples

__all__ = ["average", "corrcoef", "cov"]


def average(
    x: TensorLike,
    /,
    axis: int | Sequence[int] | None = None,
    weights: TensorLike | None = None,
    *,
    keepdims: bool = False,
) -> Tensor:
    """The mean over `axis`, in which elements count as much as their `weights` say.

    Args:
        x: numeric; integers and booleans count as float32.
        axis: an axis, several, or None (the default) for all.
        weights: in the shape of `x`, or a vector along the one axis. By default all are 1.
        keepdims: whether these axes stay in place with size 1. False.

    Returns:
        sum(x * weights) / sum(weights), in the shape of `x` without the axes. NaN where the weights add up to 0.

    Raises:
        ShapeError: the weights have another shape.

    >>> import limelight as ll
    >>> ll.average(ll.constant([1.0, 2.0]), weights=ll.constant([3.0, 1.0])).item()
    1.25
    """
    if type(keepdims) is not bool:
        keepdims = shapes.flag("average", "keepdims", keepdims)
    (x,) = samples("average", x)
    if weights is None:
        return x.mean(axis, keepdims)
    weights = as_tensor(weights).astype(x.dtype)
    if weights.ndim == 1 and x.ndim > 1 and isinstance(axis, int):
        along = shapes.one_axis("average", x.ndim, axis)
        weights = weights.reshape((1,) * along + (-1,) + (1,) * (x.ndim - 1 - along))
    elif weights.ndim != x.ndim:
        raise ShapeError(
            f"average: weights {weights.spec} must have the shape of x {x.spec}, or be a vector along one axis"
        )
    shares = weights.broadcast_to(x.sizes())
    result: Tensor = (x * weights).sum(axis, keepdims) / shares.sum(axis, keepdims)
    return result


def cov(
    x: TensorLike,
    /,
    y: TensorLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The covariances of variables.

    Args:
        x: numeric, (variables, observations); a vector is one variable. Integers and booleans count as float32.
        y: further variables, of the same form.
        rowvar: whether a row is a variable; if not, a column is. True.
        bias: whether the products are divided by the number of observations, not by one less. False.
        correction: the products are divided by the number of observations less this; by default as `bias` says.

    Returns:
        (variables, variables), or a scalar of one variable.

    Raises:
        ShapeError: there are more than two axes, or none, or `y` has another number of observations.
        ArgumentError: `rowvar` or `bias` is not True or False.

    >>> import limelight as ll
    >>> ll.cov(ll.constant([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    if type(rowvar) is not bool:
        rowvar = shapes.flag("cov", "rowvar", rowvar)
    if type(bias) is not bool:
        bias = shapes.flag("cov", "bias", bias)
    for name, given in (("rowvar", rowvar), ("bias", bias)):
        if not isinstance(given, (bool, int)):
            raise ArgumentError(f"cov: {name} must be True or False, got {given!r}")
    rows = _variables("cov", x, y, bool(rowvar))
    apart = rows - rows.mean(-1, True)
    n = rows.shape[1]
    count = float(n) if n is not None else as_tensor(rows.sizes()[1]).astype(rows.dtype)
    if correction is None:
        correction = 0.0 if bias else 1.0
    products: Tensor = (apart @ apart.conj().transpose((1, 0))) / (count - correction)
    return products[0, 0] if products.shape == (1, 1) else products


def corrcoef(x: TensorLike, /, y: TensorLike | None = None, rowvar: bool = True) -> Tensor:
    """The correlation coefficients of variables: `cov`, over the deviations of both.

    Args:
        x: as in `cov`, as are `y` and `rowvar`.
        y: further variables.
        rowvar: whether a row is a variable. True.

    Returns:
        (variables, variables), or a scalar of one variable; NaN for one that does not vary.

    Raises:
        ShapeError: as `cov`.

    >>> import limelight as ll
    >>> ll.corrcoef(ll.constant([1.0, 2.0, 3.0]), ll.constant([3.0, 2.0, 1.0])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    if type(rowvar) is not bool:
        rowvar = shapes.flag("corrcoef", "rowvar", rowvar)
    products = cov(x, y, rowvar)
    if not products.ndim:
        return products / products
    deviations = abs(get("diagonal")(products, offset=0)).sqrt().astype(products.dtype)
    result: Tensor = products / deviations.expand_dims(-1) / deviations
    return result


def _variables(name: str, x: TensorLike, y: TensorLike | None, rowvar: bool) -> Tensor:
    """The observations of all variables, a row for each."""
    given = samples(name, x) if y is None else samples(name, x, y)
    for one in given:
        if one.ndim not in (1, 2):
            raise ShapeError(f"{name}: needs a matrix (variables, observations) or a vector, got {one.spec}")
    rows = [z.reshape((1, -1)) if z.ndim == 1 else z if rowvar else z.transpose((1, 0)) for z in given]
    if len(rows) == 1:
        return rows[0]
    if None not in (m := rows[0].shape[1], n := rows[1].shape[1]) and m != n:
        raise ShapeError(f"{name}: x and y must have as many observations, got {given[0].spec} and {given[1].spec}")
    joined: Tensor = get("concat")(*rows, axis=0)
    return joined

"""Reductions, and what runs along an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.export.to_onnx.arrays import (
    BOOL,
    INT64,
    all_axes,
    arange,
    arg,
    cast,
    concat,
    count,
    cumsum,
    cut,
    equal,
    expand,
    full,
    is_nan,
    like,
    maximum,
    mean,
    minimum,
    pick,
    reduce,
    reshape,
    scatter_elements,
    shape_of,
    size,
    sizes,
    squeeze,
    stack,
    total,
    unary,
    where,
    zeros_like,
)
from limelight.export.to_onnx.builder import Var
from limelight.export.to_onnx.registry import Refused, Site, lowers

_HALF_WORD = 2**32


@lowers("sum", "prod")
def _sum(site: Site, x: Var, axis: Any, keepdims: bool) -> Var:
    name = site.node.op.name
    if x.floating:
        return reduce(name.capitalize(), x, axis, keepdims)
    return (_whole_sum if name == "sum" else _whole_product)(cast(x, site.out.dtype), axis, keepdims)


def _whole_sum(x: Var, axis: Any, keepdims: bool) -> Var:
    """A sum of whole numbers, all bits of it: onnxruntime adds in float64, which has 53, and stops at the largest."""
    wide = cast(x, INT64)
    if x.dtype.itemsize < 8:
        return cast(reduce("Sum", wide, axis, keepdims), x.dtype)
    upper = wide / _HALF_WORD
    lower = wide - upper * _HALF_WORD
    return cast(reduce("Sum", upper, axis, keepdims) * _HALF_WORD + reduce("Sum", lower, axis, keepdims), x.dtype)


def _whole_product(x: Var, axis: Any, keepdims: bool) -> Var:
    """The same for a product: one half times the other, until one is left. An axis of unknown size has 53 bits."""
    axes = all_axes(x, axis)
    if any(not x.shape[a] for a in axes):
        return reduce("Prod", x, axes, keepdims)
    for a in axes:
        n = x.shape[a] or 1
        while n > 1:
            halves = cut(x, a, 0, n // 2) * cut(x, a, n // 2, n // 2 * 2)
            x = concat([halves, cut(x, a, n - 1, n)], a) if n % 2 else halves
            n -= n // 2
    return x if keepdims else squeeze(x, axes)


@lowers("max", "min")
def _extreme(site: Site, x: Var, axis: Any, keepdims: bool) -> Var:
    return extreme(x, axis, keepdims, largest=site.node.op.name == "max")


def extreme(x: Var, axis: Any, keepdims: bool, *, largest: bool) -> Var:
    if x.dtype == BOOL:
        return cast(extreme(cast(x, "int32"), axis, keepdims, largest=largest), BOOL)
    result = reduce("Max" if largest else "Min", x, axis, keepdims)
    if not x.floating or not all_axes(x, axis):
        return result
    spoilt = reduce("Max", cast(is_nan(x), "int32"), axis, keepdims)
    return where(cast(spoilt, BOOL), like(x, math.nan), result)


@lowers("all", "any")
def _all(site: Site, x: Var, axis: Any, keepdims: bool) -> Var:
    truth = cast(x if x.dtype == BOOL else ~equal(x, 0), "int32")
    if not all_axes(x, axis):
        return cast(truth, BOOL)
    if site.node.op.name == "any":
        return reduce("Sum", truth, axis, keepdims) > 0
    return equal(reduce("Sum", like(truth, 1) - truth, axis, keepdims), 0)


@lowers("count_nonzero")
def _count(site: Site, x: Var, axis: Any, keepdims: bool) -> Var:
    return reduce("Sum", cast(x if x.dtype == BOOL else ~equal(x, 0), INT64), axis, keepdims)


@lowers("argmax", "argmin")
def _arg(site: Site, x: Var, axis: Any, keepdims: bool) -> Var:
    largest = site.node.op.name == "argmax"
    rank = x.ndim
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    if x.floating:  # the first NaN, as everywhere else
        spoilt = cast(is_nan(x), "int32")
        any_spoilt = reduce("Max", spoilt, axis, keepdims)
        result = where(
            cast(any_spoilt, BOOL),
            arg(spoilt, axis, keepdims, largest=True),
            arg(x, axis, keepdims, largest=largest),
        )
    else:
        result = arg(cast(x, "int32") if x.dtype == BOOL else x, axis, keepdims, largest=largest)
    return reshape(result, (1,) * rank) if keepdims and rank != x.ndim else result


@lowers("mean")
def _mean(site: Site, x: Var, axis: Any, keepdims: bool) -> Var:
    return mean(x if x.floating else cast(x, site.out.dtype), axis, keepdims)


@lowers("var")
def _var(site: Site, x: Var, axis: Any, keepdims: bool, correction: float) -> Var:
    x = x if x.floating else cast(x, site.out.dtype)
    apart = x - mean(x, axis, True)
    n = count(x, all_axes(x, axis)) - correction
    return total(apart * apart, axis, keepdims) / maximum(n, like(x, 0))


def _peak(x: Var, axis: Any) -> Var:
    """The largest element along axes, finite."""
    top = reduce("Max", x, axis, True)
    return where(unary("Abs", top) < math.inf, top, like(x, 0))


@lowers("logsumexp")
def _logsumexp(site: Site, x: Var, axis: Any, keepdims: bool) -> Var:
    top = _peak(x, axis)
    result = unary("Log", total(unary("Exp", x - top), axis, True)) + top
    axes = all_axes(x, axis)
    return result if keepdims else reshape(result, [n for i, n in enumerate(sizes(x)) if i not in axes])


@lowers("logsumexp_shares")
def _shares(site: Site, x: Var, axis: Any, *rest: Any) -> Var:
    top = _peak(x, axis)
    parts = unary("Exp", x - top)
    return parts / total(parts, axis, True)


# --- along an axis


@lowers("cumsum")
def _cumsum(site: Site, x: Var, axis: int) -> Var:
    return cumsum(cast(x, site.out.dtype) if not x.floating else x, axis)


@lowers("cumprod")
def _cumprod(site: Site, x: Var, axis: int) -> Var:
    x = cast(x, site.out.dtype) if not x.floating else x
    return running(x, axis, lambda a, b: a * b, 1)


@lowers("cumextreme")
def _cumextreme(site: Site, x: Var, axis: int, largest: bool) -> Var:
    return running(x, axis, maximum if largest else minimum, _bound(x.dtype, not largest))


def _bound(dtype: Any, largest: bool) -> Any:
    if dtypes.kind(dtype) == "floating":
        return math.inf if largest else -math.inf
    limits = np.iinfo(dtype)
    return limits.max if largest else limits.min


def running(x: Var, axis: int, combine: Any, neutral: Any) -> Var:
    """Prefixes of an associative operation, doubling the reach in each step."""
    n = x.shape[axis]
    if n is None:
        raise Refused("it runs along an axis whose size is not known")
    reach = 1
    while reach < n:
        shape = list(sizes(x))
        shape[axis] = reach
        lead = full(x.builder, shape, neutral, x.dtype)
        x = combine(concat([lead, cut(x, axis, 0, n - reach)], axis), x)
        reach *= 2
    return x


@lowers("cumextreme_places")
def _cumextreme_places(site: Site, x: Var, axis: int, largest: bool) -> Var:
    """The last place at which the running extreme was new."""
    b = site.builder
    n = x.shape[axis]
    if n is None:
        raise Refused("it runs along an axis whose size is not known")
    held = running(x, axis, maximum if largest else minimum, _bound(x.dtype, not largest))
    before, rest = cut(held, axis, 0, n - 1), cut(x, axis, 1, None)
    new = (rest > before) if largest else (rest < before)
    if x.floating:
        new = new | (is_nan(rest) & ~is_nan(before))
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    places = where(new, reshape(arange(b, n, 1), shape), b.constant(0, INT64))
    first = zeros_like(cast(cut(x, axis, 0, 1), INT64))
    return running(concat([first, places], axis), axis, maximum, 0)


@lowers("delay", "lead")
def _delay(site: Site, x: Var, axis: int, first: Any) -> Var:
    shape = list(sizes(x))
    shape[axis] = 1
    longer = concat([full(site.builder, shape, first, x.dtype), x], axis)
    return cut(longer, axis, 0, size(x, axis)) if site.node.op.name == "delay" else longer


@lowers("recurrence")
def _recurrence(site: Site, a: Var, b: Var, axis: int, reverse: bool) -> Var:
    """Each step by itself: y[k] = b[k] + a[k] y[k - 1] (in reverse a[k + 1] y[k + 1])."""
    n = b.shape[axis] if b.shape[axis] is not None else a.shape[axis]
    if n is None:
        raise Refused("it runs along an axis whose size is not known")
    terms = [pick(b, axis, i) for i in range(n)]
    factors = [pick(a, axis, i) for i in range(n)]
    order = list(range(n - 1, -1, -1) if reverse else range(n))
    states: dict[int, Var] = {}
    for before, k in zip([None, *order], order, strict=False):
        states[k] = terms[k] if before is None else terms[k] + factors[before if reverse else k] * states[before]
    return stack([states[k] for k in range(n)], axis) if states else b


@lowers("bincount")
def _bincount(site: Site, x: Var, minlength: int) -> Var:
    b = site.builder
    numbers = cast(x, INT64)
    if x.shape[0] == 0:
        return b.constant(np.zeros(minlength, np.int64))
    least = concat([numbers, b.constant(np.array([minlength - 1], np.int64))], 0)
    n = reduce("Max", least, (0,)) + 1
    zeros = full(b, [n], 0, INT64)
    return scatter_elements(zeros, numbers, expand(b.constant(1, INT64), shape_of(x)), 0, "add")


@lowers("quantile_parts")
def _quantile_parts(site: Site, q: Var, name: str, whole: int) -> Var:
    return q / like(q, whole)

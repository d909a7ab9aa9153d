"""Running sums, products and extremes along an axis: `cumsum`, `cumprod`, `cummax`, `cummin`.

`cumprod` pulls back through the recurrence s = b + a s, an op whose own gradient is that recurrence run backwards.
Running extremes give the gradient to the first of equal elements, since to share it one would need all that come later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.backends import is_cupy
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, method
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._shape_rules import SHORT, TOTAL

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]


def _scan_infer(name: str, total: bool) -> Any:
    def infer(x: TensorSpec, axis: int, *attrs: Any) -> TensorSpec:
        shapes.one_axis(name, x.rank, axis)
        return known(x.shape, TOTAL[x.dtype] if total else x.dtype)

    return infer


def _reversed(x: Tensor, axis: int) -> Tensor:
    return x[(slice(None),) * axis + (slice(None, None, -1),)]


def _accumulate(ufunc: str) -> Callable[..., Any]:
    """A running sum or product; 16-bit floats are accumulated in float32."""

    def kernel(xp: Any, x: Any, axis: int) -> Any:
        wide = dtypes.float32 if x.dtype in SHORT else TOTAL[x.dtype]
        return getattr(xp, ufunc).accumulate(x, axis, wide).astype(TOTAL[x.dtype], copy=False)

    return kernel


# delay: what exclusive scans and the gradients below are made of


def _delay_kernel(xp: Any, x: Any, axis: int, first: Any) -> Any:
    before = (slice(None),) * axis
    lead = xp.full_like(x[(*before, slice(0, 1))], first)
    return xp.concatenate([lead, x[(*before, slice(0, -1))]], axis)


_delay: EntryPoint = entry_point(defop(
    "delay",
    inputs="x",
    attrs="axis first",
    infer=_scan_infer("delay", total=False),
    kernel=_delay_kernel,
    accepts="numeric",
    vjp={"x": lambda g, axis: _reversed(_delay(_reversed(g, axis), axis, 0), axis)},
    maths={"x": "x̄ᵢ = ȳᵢ₊₁, 0 for the last"},
    batching="along_axis",
))  # fmt: skip

# recurrence: sᵢ = bᵢ + aᵢ sᵢ₋₁, which every order of a running product's gradient is made of


def _recurrence_infer(a: TensorSpec, b: TensorSpec, axis: int, reverse: bool) -> TensorSpec:
    if None not in (*a.shape, *b.shape) and a.shape != b.shape:
        raise ShapeError(f"recurrence: factors {a} and terms {b} must have the same shape")
    return known(tuple([n if m is None else m for m, n in zip(a.shape, b.shape, strict=True)]), b.dtype)


def _recurrence_kernel(xp: Any, a: Any, b: Any, axis: int, reverse: bool) -> Any:
    n = b.shape[axis]
    if n < 2:
        return b
    wide = dtypes.float32 if b.dtype in SHORT else b.dtype
    factors, terms = (xp.moveaxis(z.astype(wide), axis, 0) for z in (a, b))
    state = terms[-1] if reverse else terms[0]
    states = [state]
    for i in range(n - 2, -1, -1) if reverse else range(1, n):
        state = terms[i] + factors[i + reverse] * state
        states.append(state)
    return xp.stack(states[::-1] if reverse else states, axis=axis).astype(b.dtype, copy=False)


def _recurrence_factors(g: Tensor, a: Tensor, out: Tensor, axis: int, reverse: bool) -> Tensor:
    back = _recurrence((a.conj(), g), axis, not reverse)
    return (_delay(back, axis, 0) * out.conj()) if reverse else (back * _delay(out, axis, 0).conj())


_recurrence: EntryPoint = entry_point(defop(
    "recurrence",
    inputs="a b",
    attrs="axis reverse",
    infer=_recurrence_infer,
    kernel=_recurrence_kernel,
    accepts="inexact",
    vjp={"a": _recurrence_factors, "b": lambda g, a, axis, reverse: _recurrence((a.conj(), g), axis, not reverse)},
    linear="b",
    maths={"a": "āᵢ = b̄ᵢ sᵢ₋₁*", "b": "b̄ᵢ = s̄ᵢ + aᵢ₊₁* b̄ᵢ₊₁"},
    batching="operands_along_axis",
))  # fmt: skip

# cumsum

_cumsum: EntryPoint = entry_point(defop(
    "cumsum",
    inputs="x",
    attrs="axis",
    infer=_scan_infer("cumsum", total=True),
    kernel=_accumulate("add"),
    accepts="numeric",
    vjp={"x": lambda g, axis: _reversed(_cumsum(_reversed(g, axis), axis), axis)},
    linear="x",
    maths={"x": "x̄ᵢ = Σ ȳⱼ over j >= i"},
    batching="along_axis",
))  # fmt: skip


@method("cumsum")
def cumsum(x: TensorLike, /, axis: int | None = None, *, reverse: bool = False, exclusive: bool = False) -> Tensor:
    """The cumulative sum along `axis`.

    Args:
        x: numeric. Integers are summed in at least 32 bits.
        axis: the axis; a vector may leave it out.
        reverse: whether to sum from the end. False.
        exclusive: whether the element itself is left out, so that the first is 0. False.

    Returns:
        A tensor of the shape of `x`.

    >>> import limelight as ll
    >>> ll.cumsum(ll.constant([1, 2, 3])).tolist(), ll.cumsum(ll.constant([1, 2, 3]), exclusive=True).tolist()
    ([1, 3, 6], [0, 1, 3])
    """
    if type(reverse) is not bool:
        reverse = shapes.flag("cumsum", "reverse", reverse)
    if type(exclusive) is not bool:
        exclusive = shapes.flag("cumsum", "exclusive", exclusive)
    return _scan("cumsum", _cumsum, x, axis, reverse, 0 if exclusive else None)


def cumulative_sum(
    x: TensorLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Tensor:
    """The cumulative sum along `axis`, in the Array API's form. See also `cumsum`.

    Args:
        x: numeric.
        axis: the axis; a vector may leave it out.
        dtype: what is summed in; by default that of `x`, integers in at least 32 bits.
        include_initial: whether a 0 comes first, so that the axis is longer by one. False.

    Returns:
        A tensor of the shape of `x`, but for such a 0.

    Raises:
        ArgumentError: the axis is missing or does not exist.

    >>> import limelight as ll
    >>> ll.cumulative_sum(ll.constant([1, 2, 3]), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    if type(include_initial) is not bool:
        include_initial = shapes.flag("cumulative_sum", "include_initial", include_initial)
    x = as_tensor(x)
    sums = _scan("cumulative_sum", _cumsum, x if dtype is None else x.astype(dtype), axis, False, None)
    sums = sums if dtype is None else sums.astype(dtype)
    return _lead(sums, shapes.one_axis("cumulative_sum", x.ndim, axis or 0), 0) if include_initial else sums


def _scan(name: str, run: EntryPoint, x: TensorLike, axis: int | None, reverse: bool, neutral: Any) -> Tensor:
    """A scan; exclusive where `neutral`, which then stands first, is given."""
    if type(x) is Tensor and not reverse and neutral is None:
        if axis is None and x._data.ndim == 1:
            return run(x, 0)
        if type(axis) is int and 0 <= axis < x.ndim:
            return run(x, axis)
    x = as_tensor(x)
    if axis is None and x.ndim != 1:
        raise ArgumentError(f"{name}: {x.spec} has {x.ndim} axes; say along which one, as in ll.{name}(x, axis=0)")
    along = shapes.one_axis(name, x.ndim, 0 if axis is None else axis)
    x = _reversed(x, along) if reverse else x
    scanned = run(x, along)
    scanned = scanned if neutral is None else _delay(scanned, along, neutral)
    return _reversed(scanned, along) if reverse else scanned


# cumulative_prod, cumprod


def _cumprod_gradient(g: Tensor, x: Tensor, out: Tensor, axis: int) -> Tensor:
    """The product of those before, times the gradients of those after with the products in between: no division."""
    return _delay(out, axis, 1).conj() * _recurrence((x.conj(), g), axis, True)


_cumprod: EntryPoint = entry_point(defop(
    "cumprod",
    inputs="x",
    attrs="axis",
    infer=_scan_infer("cumprod", total=True),
    kernel=_accumulate("multiply"),
    accepts="numeric",
    vjp={"x": _cumprod_gradient},
    maths={"x": "x̄ᵢ = yᵢ₋₁* sᵢ,  sᵢ = ȳᵢ + xᵢ₊₁* sᵢ₊₁"},
    batching="along_axis",
))  # fmt: skip


@method("cumprod")
def cumprod(x: TensorLike, /, axis: int | None = None, *, reverse: bool = False, exclusive: bool = False) -> Tensor:
    """The cumulative product along `axis`.

    Args:
        x: numeric. Integers are multiplied in at least 32 bits.
        axis: the axis; a vector may leave it out.
        reverse: whether to multiply from the end. False.
        exclusive: whether the element itself is left out, so that the first is 1. False.

    Returns:
        A tensor of the shape of `x`. The gradient is right where elements are zero, too, to any order.

    >>> import limelight as ll
    >>> ll.cumprod(ll.constant([2, 3, 4]), reverse=True).tolist()
    [24, 12, 4]
    """
    if type(reverse) is not bool:
        reverse = shapes.flag("cumprod", "reverse", reverse)
    if type(exclusive) is not bool:
        exclusive = shapes.flag("cumprod", "exclusive", exclusive)
    return _scan("cumprod", _cumprod, x, axis, reverse, 1 if exclusive else None)


def cumulative_prod(
    x: TensorLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Tensor:
    """The cumulative product along `axis`, in the Array API's form. See also `cumprod`.

    Args:
        x: numeric.
        axis: the axis; a vector may leave it out.
        dtype: what is multiplied in; by default that of `x`, integers in at least 32 bits.
        include_initial: whether a 1 comes first, so that the axis is longer by one. False.

    Returns:
        A tensor of the shape of `x`, but for such a 1.

    Raises:
        ArgumentError: the axis is missing or does not exist.

    >>> import limelight as ll
    >>> ll.cumulative_prod(ll.constant([2, 3, 4]), include_initial=True).tolist()
    [1, 2, 6, 24]
    """
    if type(include_initial) is not bool:
        include_initial = shapes.flag("cumulative_prod", "include_initial", include_initial)
    x = as_tensor(x)
    products = _scan("cumulative_prod", _cumprod, x if dtype is None else x.astype(dtype), axis, False, None)
    products = products if dtype is None else products.astype(dtype)
    return _lead(products, shapes.one_axis("cumulative_prod", x.ndim, axis or 0), 1) if include_initial else products


# lead: one element more at the start


def _lead_infer(x: TensorSpec, axis: int, first: Any) -> TensorSpec:
    n = x.shape[axis]
    return known((*x.shape[:axis], None if n is None else n + 1, *x.shape[axis + 1 :]), x.dtype)


def _lead_kernel(xp: Any, x: Any, axis: int, first: Any) -> Any:
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return xp.concatenate([xp.full(shape, first, x.dtype), x], axis)


_lead = entry_point(defop(
    "lead",
    inputs="x",
    attrs="axis first",
    infer=_lead_infer,
    kernel=_lead_kernel,
    accepts="numeric",
    vjp={"x": lambda g, axis: g[(slice(None),) * axis + (slice(1, None),)]},
    maths={"x": "x̄ = ȳ without the first"},
    batching="along_axis",
))  # fmt: skip

# cummax and cummin


def _places_kernel(xp: Any, x: Any, axis: int, largest: bool) -> Any:
    """Where the extreme so far has come from: the first of equal ones, and the first NaN for good."""
    x = x.astype(dtypes.float32) if x.dtype in SHORT else x
    before = (slice(None),) * axis
    rest, held = x[(*before, slice(1, None))], _extreme(xp, x, axis, largest)[(*before, slice(0, -1))]
    is_new = ((rest > held) if largest else (rest < held)) | (xp.isnan(rest) & ~xp.isnan(held))
    places = xp.arange(1, x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    first = xp.zeros(x[(*before, slice(0, 1))].shape, dtypes.int64)
    return _running(xp, xp.maximum, xp.concatenate([first, xp.where(is_new, places, 0)], axis), axis)


def _extreme(xp: Any, x: Any, axis: int, largest: bool) -> Any:
    return _running(xp, xp.maximum if largest else xp.minimum, x, axis)


def _running(xp: Any, ufunc: Any, x: Any, axis: int) -> Any:
    """`ufunc.accumulate`; CuPy has it for sums and products alone, and combines neighbours in log n steps."""
    if not is_cupy(xp):
        return ufunc.accumulate(x, axis)
    before = (slice(None),) * axis
    step, n = 1, x.shape[axis]
    while step < n:
        later, earlier = x[(*before, slice(step, None))], x[(*before, slice(None, -step))]
        x = xp.concatenate([x[(*before, slice(None, step))], ufunc(later, earlier)], axis)
        step *= 2
    return x


def _extreme_gradient(g: Tensor, x: Tensor, x_shape: Any, axis: int, largest: bool) -> Tensor:
    gradient: Tensor = g._scatter_along_axis(_places(x, axis, largest), x_shape, axis)
    return gradient


_places = entry_point(defop(
    "cumextreme_places",
    inputs="x",
    attrs="axis largest",
    infer=lambda x, axis, largest: known(x.shape, dtypes.int64),
    kernel=_places_kernel,
    accepts="real",
    why_no_gradient="its result is an index",
    batching="along_axis",
))  # fmt: skip

_cumextreme = entry_point(defop(
    "cumextreme",
    inputs="x",
    attrs="axis largest",
    infer=_scan_infer("cumextreme", total=False),
    kernel=_extreme,
    accepts="real",
    vjp={"x": _extreme_gradient},
    maths={"x": "x̄ᵢ = Σ ȳⱼ over the j whose extreme has come from i"},
    batching="along_axis",
))  # fmt: skip


def cummax(x: TensorLike, /, axis: int | None = None, *, reverse: bool = False, exclusive: bool = False) -> Tensor:
    """The cumulative maximum along `axis`.

    Args:
        x: real.
        axis: the axis; a vector may leave it out.
        reverse: whether to go from the end. False.
        exclusive: whether the element itself is left out, so that the first is -inf, or the least integer. False.

    Returns:
        A tensor of the shape of `x`; NaN from the first NaN on. The gradient goes to the first of equal elements.

    >>> import limelight as ll
    >>> ll.cummax(ll.constant([1, 3, 2])).tolist()
    [1, 3, 3]
    """
    if type(reverse) is not bool:
        reverse = shapes.flag("cummax", "reverse", reverse)
    if type(exclusive) is not bool:
        exclusive = shapes.flag("cummax", "exclusive", exclusive)
    x = as_tensor(x)
    least = _bound(x.dtype, largest=False) if exclusive else None
    return _scan("cummax", _running_max, x, axis, reverse, least)


def cummin(x: TensorLike, /, axis: int | None = None, *, reverse: bool = False, exclusive: bool = False) -> Tensor:
    """The cumulative minimum along `axis`.

    Args:
        x: real.
        axis: the axis; a vector may leave it out.
        reverse: whether to go from the end. False.
        exclusive: whether the element itself is left out, so that the first is inf, or the largest integer. False.

    Returns:
        A tensor of the shape of `x`; NaN from the first NaN on. The gradient goes to the first of equal elements.

    >>> import limelight as ll
    >>> ll.cummin(ll.constant([3, 1, 2])).tolist()
    [3, 1, 1]
    """
    if type(reverse) is not bool:
        reverse = shapes.flag("cummin", "reverse", reverse)
    if type(exclusive) is not bool:
        exclusive = shapes.flag("cummin", "exclusive", exclusive)
    x = as_tensor(x)
    most = _bound(x.dtype, largest=True) if exclusive else None
    return _scan("cummin", _running_min, x, axis, reverse, most)


def _running_max(x: Tensor, axis: int) -> Tensor:
    return _cumextreme(x, axis, True)


def _running_min(x: Tensor, axis: int) -> Tensor:
    return _cumextreme(x, axis, False)


def _bound(dtype: DType, largest: bool) -> float | int:
    if dtypes.kind(dtype) != "integer":
        return np.inf if largest else -np.inf
    limits = np.iinfo(dtype)
    return int(limits.max if largest else limits.min)

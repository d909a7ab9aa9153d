"""Margins around a tensor, constant or continued from its own elements: `pad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dtypes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.ops._gradient_terms import zeros
from limelight.ops._shape_rules import SHORT

__all__ = ["pad"]

Margins = tuple[tuple[int, int], ...]

# pad: with a constant


def _pad_infer(x: TensorSpec, margins: Margins, *attrs: Any) -> TensorSpec:
    return known(tuple([None if n is None else n + a + b for n, (a, b) in zip(x.shape, margins, strict=True)]), x.dtype)


def _inside_margins(margins: Margins) -> tuple[slice, ...]:
    """The index of what has margins around it."""
    return tuple([slice(a, -b if b else None) for a, b in margins])


def _pad_kernel(xp: Any, x: Any, margins: Margins, value: Any) -> Any:
    if not margins:
        return x
    if xp is not np:
        return xp.pad(x, margins, constant_values=value)
    shape = [n + a + b for n, (a, b) in zip(x.shape, margins, strict=True)]
    is_zero = type(value) is int and not value  # 0.0 may be -0.0
    out = np.zeros(shape, x.dtype) if is_zero else np.full(shape, value, x.dtype)
    out[tuple([slice(a, a + n) for n, (a, _) in zip(x.shape, margins, strict=True)])] = x
    return out


_pad = entry_point(defop(
    "pad",
    inputs="x",
    attrs="margins value",
    infer=_pad_infer,
    kernel=_pad_kernel,
    vjp={"x": lambda g, margins: g[_inside_margins(margins)]},
    maths={"x": "x̄ = ȳ without the margins"},
    batching="pad",
))  # fmt: skip

# pad_continued: with elements of the tensor; and its transpose, which adds the margins where they came from


def _sources(n: int, margin: tuple[int, int], mode: str) -> Any:
    """For each place along an axis of size `n` with its margins, the place that it continues."""
    places = np.arange(-margin[0], n + margin[1])
    if mode == "edge" or n == 1:
        return places.clip(0, n - 1)
    if mode == "wrap":
        return places % n
    period, last = (2 * n - 2, 0) if mode == "reflect" else (2 * n, 1)
    places = places % period
    return np.where(places < n, places, period - last - places)


def _check_continued(name: str, shape: tuple[int | None, ...], margins: Margins, mode: str) -> None:
    for axis, (n, margin) in enumerate(zip(shape, margins, strict=True)):
        if n == 0 and any(margin):
            raise ShapeError(
                f"{name}: axis {axis} of shape {shape} is empty: {mode!r} has nothing to continue; use mode='constant'"
            )


def _continued_infer(x: TensorSpec, margins: Margins, mode: str) -> TensorSpec:
    _check_continued("pad", x.shape, margins, mode)
    return _pad_infer(x, margins)


def _continued_kernel(xp: Any, x: Any, margins: Margins, mode: str) -> Any:
    _check_continued("pad", x.shape, margins, mode)
    return xp.pad(x, margins, mode=mode) if margins else x


def _folded_infer(x: TensorSpec, margins: Margins, mode: str) -> TensorSpec:
    return known(tuple([None if n is None else n - a - b for n, (a, b) in zip(x.shape, margins, strict=True)]), x.dtype)


def _folded_kernel(xp: Any, x: Any, margins: Margins, mode: str) -> Any:
    """A slice, to which the margins are added place by place: they are few beside what is inside."""
    wide = x.astype(dtypes.float32) if x.dtype in SHORT else x
    for axis, margin in enumerate(margins):
        if any(margin):
            wide = _fold_axis(xp, wide, axis, margin, mode)
    return wide.astype(x.dtype, copy=False)


def _fold_axis(xp: Any, x: Any, axis: int, margin: tuple[int, int], mode: str) -> Any:
    n = x.shape[axis] - sum(margin)
    sources = _sources(n, margin, mode)
    before = (slice(None),) * axis
    out = xp.array(x[(*before, slice(margin[0], margin[0] + n))])
    for place in (*range(margin[0]), *range(margin[0] + n, len(sources))):
        target, part = (*before, int(sources[place])), x[(*before, place)]
        if hasattr(out, "at"):
            out = out.at[target].add(part)
        else:
            out[target] += part
    return out


_continued: EntryPoint = entry_point(defop(
    "pad_continued",
    inputs="x",
    attrs="margins mode",
    infer=_continued_infer,
    kernel=_continued_kernel,
    vjp={"x": lambda g, margins, mode: _folded(g, margins, mode)},
    linear="x",
    maths={"x": "x̄ = ȳ, its margins added where they came from"},
    batching="pad",
))  # fmt: skip

_folded: EntryPoint = entry_point(defop(
    "pad_folded",
    inputs="x",
    attrs="margins mode",
    infer=_folded_infer,
    kernel=_folded_kernel,
    accepts="numeric",
    vjp={"x": lambda g, margins, mode: _continued(g, margins, mode)},
    linear="x",
    maths={"x": "x̄ = ȳ with margins that continue it"},
    batching="pad",
))  # fmt: skip

# the public function

_MODES: Final = {
    "constant": "constant",
    "reflect": "reflect",
    "symmetric": "symmetric",
    "edge": "edge",
    "replicate": "edge",
    "wrap": "wrap",
    "circular": "wrap",
}


def pad(
    x: TensorLike,
    widths: int | Sequence[int] | Sequence[Sequence[int]],
    /,
    mode: str = "constant",
    *,
    value: complex | TensorLike = 0,
) -> Tensor:
    """`x` with margins around it.

    Args:
        x: any shape and dtype.
        widths: how wide the margins are: a number for all sides, a pair (before, after) for all axes, or a pair for
            each. They may be wider than the axis.
        mode: for a b c with margins of 2: "constant" (the default), filled with `value`: 0 0 a b c 0 0; "edge" (or
            "replicate"): a a a b c c c; "reflect": c b a b c b a; "symmetric": b a a b c c b; "wrap" (or "circular"): b
            c a b c a b.
        value: what "constant" margins hold: a number, or a scalar tensor of the dtype of `x`, which has a gradient; 0.

    Returns:
        A tensor of the dtype of `x`.

    Raises:
        ArgumentError: margins are negative or fit no axes, or there is no such mode.
        ShapeError: an empty axis cannot be continued, or the `value` is no scalar.
        DTypeError: `x` cannot hold the `value`, or it is a tensor of another dtype.

    >>> import limelight as ll
    >>> ll.pad(ll.constant([1, 2, 3]), 2).tolist()
    [0, 0, 1, 2, 3, 0, 0]
    >>> ll.pad(ll.constant([[1, 2, 3]]), [(0, 1), (2, 0)], mode="reflect").tolist()
    [[3, 2, 1, 2, 3], [3, 2, 1, 2, 3]]
    """
    x = as_tensor(x)
    margins = _checked_margins(x, widths)
    kind = _MODES.get(mode)
    if kind is None:
        raise ArgumentError(f"pad: unknown mode {mode!r}; write one of {', '.join(map(repr, _MODES))}")
    if kind != "constant":
        return _continued(x, margins, kind)
    if isinstance(value, np.generic):
        value = value.item()
    if hasattr(value, "dtype"):
        return _pad_with_tensor(x, margins, as_tensor(value))
    return _pad(x, margins, _checked_value(x, value))


def _pad_with_tensor(x: Tensor, margins: Margins, value: Tensor) -> Tensor:
    if value.ndim:
        raise ShapeError(f"pad: the value must be a scalar, got {value.spec}; for margins that differ write ll.concat")
    if value.dtype != x.dtype:
        raise DTypeError(
            f"pad: the value is {value.dtype.name} and the tensor {x.dtype.name}; "
            f"write ll.astype(value, {x.dtype.name!r})"
        )
    is_margin = _pad(zeros(dtypes.bool_, x.sizes()), margins, True)
    return is_margin.where(value, _pad(x, margins, 0))


def _checked_value(x: Tensor, value: Any) -> Any:
    if type(value) not in (bool, int, float, complex):
        raise ArgumentError(f"pad: the value must be a number or a scalar tensor, got a {type(value).__name__}")
    if value == 0 or (dtypes.fits(value, x.dtype) and not (type(value) is int and not dtypes.in_range(value, x.dtype))):
        return value
    raise DTypeError(f"pad: the value {value!r} does not fit into {x.spec}; write ll.astype(x, ...) first")


def _checked_margins(x: Tensor, width: Any) -> Margins:
    try:
        wanted = np.asarray(width)
        if wanted.dtype.kind not in "iu" and wanted.size:
            raise ValueError
        pairs = np.broadcast_to(wanted.astype(np.int64), (x.ndim, 2)).tolist()
    except ValueError:
        raise ArgumentError(
            f"pad: widths={width!r} does not fit {x.spec}: write a whole number, a pair (before, after), or a "
            f"pair for each of its {x.ndim} axes"
        ) from None
    if any(n < 0 for pair in pairs for n in pair):
        raise ArgumentError(f"pad: margins must not be negative, got {width!r}; cut a part out by slicing, x[a:b]")
    return tuple([(before, after) for before, after in pairs])

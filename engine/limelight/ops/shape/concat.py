"""Tensors joined into one, and one taken apart: `concat`, `stack`; `split`, `unstack`; and `diff`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.eager import entry_point, entry_point_of_many
from limelight.core.op import defop
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, as_tensors
from limelight.errors import ArgumentError, CallError, DTypeError, ShapeError
from limelight.ops._gradient_terms import rank, zeros
from limelight.ops._shape_rules import check_axis_size

__all__ = ["concat", "diff", "split", "stack", "unstack"]

# concat


def _concat_infer(*arguments: Any) -> TensorSpec:
    *xs, axis = arguments
    for x in xs:
        _check_alike("concat", xs[0], x, axis)
    sizes = [x.shape[axis] for x in xs]
    total = None if None in sizes else sum(sizes)
    shape = [total if i == axis else _first_known([x.shape[i] for x in xs]) for i in range(xs[0].rank)]
    return known(tuple(shape), xs[0].dtype)


def _first_known(sizes: Sequence[int | None]) -> int | None:
    """The size that axes share, known if it is known of one of them."""
    return next((n for n in sizes if n is not None), None)


def _check_alike(name: str, first: Any, x: Any, axis: Any) -> None:
    pairs = enumerate(zip(first.shape, x.shape, strict=False))
    clash = next(((i, m, n) for i, (m, n) in pairs if i != axis and None not in (m, n) and m != n), None)
    if first.rank != x.rank or clash is not None:
        i, m, n = clash or (None, first.rank, x.rank)
        raise ShapeError(
            f"{name}: {first} and {x} must have the same shape{'' if axis is None else f', but for axis {axis}'}: "
            + (f"axis {i} has sizes {m} and {n}" if clash else f"they have {m} and {n} axes")
            + "; reshape, slice or pad one of them"
        )


def _concat_gradient(
    g: Tensor, xs_shape: tuple[Any, ...], axis: int, needed: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """The parts of `g` that belong to each joined tensor."""
    ends = list(accumulate([shape[axis] for shape in xs_shape]))
    before = (slice(None),) * axis
    starts = [0, *ends[:-1]]
    return tuple(
        [g[(*before, slice(a, b))] if wanted else None for a, b, wanted in zip(starts, ends, needed, strict=True)]
    )


_concat = entry_point(defop(
    "concat",
    inputs="*xs",
    attrs="axis",
    infer=_concat_infer,
    kernel=lambda xp, *arguments: xp.concatenate(arguments[:-1], arguments[-1]),
    vjp={"xs": _concat_gradient},
    linear="xs",
    maths={"xs": "x̄ₖ = the part of ȳ that came from xₖ"},
    batching="join",
))  # fmt: skip


def concat(xs: Sequence[TensorLike], /, axis: int | None = 0) -> Tensor:
    """Tensors joined along an existing axis; with `axis=None` they are flattened first. One kind of dtype.

    Raises ShapeError when other sizes differ, ArgumentError for no tensors.

    >>> import limelight as ll
    >>> ll.concat([ll.zeros((2, 3)), ll.ones((1, 3))]).shape
    (3, 3)
    """
    tensors = _as_tensors("concat", xs, axis)
    if axis is None:
        tensors, axis = tuple([x.reshape(-1) for x in tensors]), 0
    return _concat(tensors, 0 if axis == 0 and tensors[0].ndim else shapes.one_axis("concat", tensors[0].ndim, axis))


def _as_tensors(name: str, xs: Sequence[TensorLike], axis: Any) -> tuple[Tensor, ...]:
    if getattr(axis, "ndim", 0) or isinstance(axis, (list, tuple)):
        raise CallError(f"{name}: the tensors are one argument, a list or tuple; write ll.{name}([x, y])")
    tensors = tuple(as_tensors(xs))
    if not tensors:
        raise ArgumentError(f"{name}: needs at least one tensor")
    return tensors


def diff(
    x: TensorLike,
    /,
    n: int = 1,
    axis: int = -1,
    prepend: TensorLike | None = None,
    append: TensorLike | None = None,
) -> Tensor:
    """The differences of neighbours along `axis`, `n` times over.

    Args:
        x: numeric.
        n: how often; each time the axis is shorter by one, and with 0 `x` is returned as it is. 1.
        axis: the axis; the last by default.
        prepend: joined to `x` before, in front.
        append: joined to `x` before, behind.

    Returns:
        The differences.

    Raises:
        ArgumentError: `n` is negative.

    >>> import limelight as ll
    >>> ll.diff(ll.constant([1, 4, 9, 16])).tolist()
    [3, 5, 7]
    """
    x = as_tensor(x)
    along = shapes.one_axis("diff", x.ndim, axis)
    if n < 0:
        raise ArgumentError(f"diff: n must not be negative, got {n}")
    if n == 0:
        return x
    parts = as_tensors([part for part in (prepend, x, append) if part is not None])
    differences = x if len(parts) == 1 else _concat(tuple(parts), along)
    before = (slice(None),) * along
    for _ in range(n):
        differences = differences[(*before, slice(1, None))] - differences[(*before, slice(None, -1))]
    return differences


# stack and unstack


def _stack_infer(*arguments: Any) -> TensorSpec:
    *xs, axis = arguments
    for x in xs:
        _check_alike("stack", xs[0], x, None)
    shape = [_first_known([x.shape[i] for x in xs]) for i in range(xs[0].rank)]
    shape.insert(axis, len(xs))
    return known(tuple(shape), xs[0].dtype)


_stack = entry_point(defop(
    "stack",
    inputs="*xs",
    attrs="axis",
    infer=_stack_infer,
    kernel=lambda xp, *arguments: xp.stack(arguments[:-1], axis=arguments[-1]),
    vjp={"xs": lambda g, axis, needed: _unstack((g,), axis, len(needed))},
    linear="xs",
    maths={"xs": "x̄ₖ = ȳₖ"},
    batching="join",
))  # fmt: skip


def stack(xs: Sequence[TensorLike], /, axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis. One kind of dtype.

    Raises ShapeError when the shapes differ, ArgumentError for no tensors.

    >>> import limelight as ll
    >>> ll.stack([ll.zeros(3), ll.ones(3)], axis=1).shape
    (3, 2)
    """
    tensors = _as_tensors("stack", xs, axis)
    return _stack(tensors, shapes.one_axis("stack", tensors[0].ndim + 1, axis))


def _unstack_gradient(g: tuple[Tensor | None, ...], axis: int) -> Tensor:
    like = next(part for part in g if part is not None)
    return _stack(tuple([zeros(like.dtype, like.sizes()) if part is None else part for part in g]), axis)


_unstack: Callable[..., tuple[Tensor, ...]] = entry_point_of_many(defop(
    "unstack",
    inputs="x",
    attrs="axis num",
    infer=lambda x, axis, num: (known(shapes.reduce(x.shape, (axis,), False), x.dtype),) * num,
    kernel=lambda xp, x, axis, num: tuple([x[(slice(None),) * axis + (i,)] for i in range(num)]),
    multiple=True,
    vjp={"x": _unstack_gradient},
    linear="x",
    maths={"x": "x̄ = the ȳₖ stacked"},
    batching="along_axis",
))  # fmt: skip


def unstack(x: TensorLike, /, axis: int = 0) -> tuple[Tensor, ...]:
    """The tensors along `axis`, which is dropped: the inverse of `stack`. Its size must be known.

    >>> import limelight as ll
    >>> [part.tolist() for part in ll.unstack(ll.constant([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    x = as_tensor(x)
    axis = shapes.one_axis("unstack", x.ndim, axis)
    return _unstack((x,), axis, check_axis_size("unstack", x.shape, axis))


# split


def _split_infer(x: TensorSpec, sizes: tuple[int, ...], axis: int) -> tuple[TensorSpec, ...]:
    size = x.shape[axis]
    if size is not None and sum(sizes) != size:
        raise ShapeError(f"split: parts of sizes {sizes} do not add up to the {size} of axis {axis} of {x}")
    return tuple([known((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype) for n in sizes])


def _split_kernel(xp: Any, x: Any, sizes: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    if x.shape[axis] != sum(sizes):
        _split_infer(known(x.shape, x.dtype), sizes, axis)  # raises
    before = (slice(None),) * axis
    return tuple([x[(*before, slice(end - n, end))] for n, end in zip(sizes, accumulate(sizes), strict=True)])


def _split_gradient(g: tuple[Tensor | None, ...], x_shape: Any, sizes: tuple[int, ...], axis: int) -> Tensor:
    dtype = next(part.dtype for part in g if part is not None)
    parts = [
        zeros(dtype, _with_size(x_shape, axis, n)) if part is None else part for part, n in zip(g, sizes, strict=True)
    ]
    return _concat(tuple(parts), axis)


def _with_size(shape: Any, axis: int, size: int) -> Any:
    if isinstance(shape, tuple):
        return (*shape[:axis], size, *shape[axis + 1 :])
    here = (np.arange(rank(shape)) == axis).astype(np.int64)
    return shape * (1 - here) + size * here


_split = entry_point_of_many(defop(
    "split",
    inputs="x",
    attrs="sizes axis",
    infer=_split_infer,
    kernel=_split_kernel,
    multiple=True,
    vjp={"x": _split_gradient},
    linear="x",
    maths={"x": "x̄ = the ȳₖ joined"},
    batching="along_axis",
))  # fmt: skip


def split(x: TensorLike, parts: int | Sequence[int] | Tensor, /, axis: int = 0) -> tuple[Tensor, ...]:
    """`x` in pieces along `axis`: `parts` equal ones, or pieces of the sizes `parts`.

    Sizes may be a tensor of integers, in a staged function too: only their number must be known. Raises ShapeError when
    they do not make up the axis, DTypeError when they are no integers.

    >>> import limelight as ll
    >>> [part.tolist() for part in ll.split(ll.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """
    x = as_tensor(x)
    axis = shapes.one_axis("split", x.ndim, axis)
    if hasattr(parts, "dtype"):
        given = as_tensor(parts)
        if given.ndim or dtypes.kind(given.dtype) != "integer":
            return _split_by_tensor(x, given, axis)
        parts = given.__index__()
    if isinstance(parts, int):
        size = check_axis_size("split", x.shape, axis)
        if parts < 1 or size % parts:
            raise ShapeError(
                f"split: axis {axis} of {x.spec} does not divide into {parts} equal parts; give their sizes"
            )
        parts = (size // parts,) * parts
    sizes = shapes.wholes("split", "sizes", parts)
    if any(n < 0 for n in sizes):
        raise ShapeError(f"split: sizes must not be negative, got {sizes}")
    return _split((x,), sizes, axis)


def _split_by_tensor(x: Tensor, sizes: Tensor, axis: int) -> tuple[Tensor, ...]:
    """`split` by a vector of sizes. Where these have a value now, the op is the same as for numbers."""
    count = sizes.shape[0] if sizes.ndim == 1 else None
    if count is None:
        raise ShapeError(f"split: sizes are a vector whose length is known when traced, got {sizes.spec}")
    if dtypes.kind(sizes.dtype) != "integer":
        raise DTypeError(f"split: sizes are integers, got {sizes.spec}; write ll.astype(sizes, ll.int64)")
    if type(sizes) is Tensor:
        return split(x, sizes.tolist(), axis=axis)
    return _split_at_run_time(x, sizes.astype(dtypes.int64), count, axis)


def _split_at_run_time(x: Tensor, sizes: Tensor, count: int, axis: int) -> tuple[Tensor, ...]:
    ends = _split_ends((sizes, as_tensor(x.sizes()[axis]).astype(dtypes.int64)))
    starts = ends - sizes
    before = (slice(None),) * axis
    return tuple([x[(*before, slice(starts[i], ends[i]))] for i in range(count)])


# split_ends


def _split_ends_kernel(xp: Any, sizes: Any, size: Any) -> Any:
    if (sizes < 0).any() or sizes.sum() != size:
        raise ShapeError(
            f"split: sizes {sizes.tolist()} must not be negative, and add up to the {int(size)} of the axis"
        )
    return xp.cumsum(sizes)


_split_ends = entry_point(defop(
    "split_ends",
    inputs="sizes:integer size:integer",
    infer=lambda sizes, size: known(sizes.shape, dtypes.int64),
    kernel=_split_ends_kernel,
    why_no_gradient="places are integers",
    batching="loop",
))  # fmt: skip

"""What a `for` can go over in a graph: the rows of a tensor, a range of tensors, and pairs of these."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from limelight.autograph.python_numbers import as_number, as_row, is_array, like
from limelight.core import dtypes
from limelight.core.dispatch import apply
from limelight.core.op import get
from limelight.core.tensor import Tensor, as_tensor
from limelight.core.variable import Variable
from limelight.errors import ControlFlowError, DTypeError
from limelight.staging.trace_branch import tracing
from limelight.user_code.tracebacks import in_place_of_python

_SIGNED: Final = (dtypes.int32, dtypes.int64)
MOST_UNROLLED: Final = 16
"""Rows of an array of NumPy's that a cell goes over one by one; more are steps of a loop in the graph."""


class Steps(NamedTuple):
    """An iteration in a graph: how often, and what the k-th step sees.

    `rows` is a nest of tensors of `count` rows, whose k-th ones the steps see (None if they are made from k alone);
    `value(k, row)` is what the loop variable becomes.
    """

    count: Any  # an int, or an integer tensor
    rows: Any
    value: Callable[[Any, Any], Any]

    def __iter__(self) -> Any:  # in place of a range or zip that a comprehension or plain Python code goes over
        if isinstance(self.count, int):
            return (self.value(k, row_of(self.rows, k)) for k in builtins.range(self.count))
        raise ControlFlowError(
            "a range, zip or enumerate of tensors can be iterated by a `for` statement of converted code only; "
            "write a `for`, or ll.scan or ll.map_fn"
        )

    def after_first(self) -> Steps:
        """The steps after the first one; there must be one."""
        rows = tuple([x[1:] for x in self.rows]) if isinstance(self.rows, tuple) else self.rows
        rows = rows[1:] if isinstance(rows, Tensor | Variable) else rows
        return Steps(self.count - 1, rows, lambda k, row: self.value(k + 1, row))


def row_of(rows: Any, k: Any) -> Any:
    """The rows number `k` of a nest of tensors."""
    if rows is None:
        return None
    return tuple([x[k] for x in rows]) if isinstance(rows, tuple) else rows[k]


def steps(iterated: Any) -> Steps | None:
    """How to go over `iterated` in a graph; None for what Python goes over while tracing."""
    if isinstance(iterated, Steps):
        return iterated
    if tracing() is None or not isinstance(iterated, Tensor | Variable):
        return None
    if is_array(iterated) and iterated.shape[0] is not None and iterated.shape[0] <= MOST_UNROLLED:
        return None  # by Python, as in a plain cell: its rows may have other names
    rows = as_tensor(iterated)
    if rows.ndim == 0:
        raise DTypeError("iteration over a scalar tensor: it has no axes; for numbers up to it write range(n)")
    return Steps(count_of(rows), rows, lambda k, row: as_row(row, iterated))


def rounds(iterated: Any) -> Any:
    """How to go over data of which a graph asks, each time, whether there is more; None for anything else.

    Datasets and their iterators say so by `__limelight_rounds__`, which returns an object with `more()`, a boolean
    tensor, `next()`, and `run_always`.
    """
    make = getattr(type(iterated), "__limelight_rounds__", None)
    return None if make is None or tracing() is None else make(iterated)


def count_of(rows: Tensor) -> Any:
    """How many rows: an int, or a scalar tensor where that is unknown while tracing."""
    known: int | None = rows.shape[0]
    return known if known is not None else apply(get("shape_of"), (rows,))[0]


@in_place_of_python
def range_(*arguments: Any) -> Steps:
    """`range` with a tensor among its arguments."""
    numbers = [x if isinstance(x, int) else _signed(as_tensor(x)) for x in arguments]
    start, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    if isinstance(step, Tensor):
        raise ControlFlowError(
            f"range() with a step that is a tensor, {step.spec}: whether it counts up or down is unknown. "
            "Make the step a Python number, or write a while loop"
        )
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    span = stop - start if step > 0 else start - stop
    if abs(step) != 1:
        span = (span + (abs(step) - 1)) // abs(step)
    count = apply(get("maximum"), (span, 0))
    return Steps(count, None, lambda k, row: as_number(start + k * step, int))


def _signed(x: Tensor) -> Tensor:
    """An end of a range as an integer whose differences from others have a sign, and fit."""
    if x.dtype.kind not in "iu" or x.ndim:
        raise DTypeError(f"range() needs integer scalars, got {x.spec}; write ll.astype(x, ll.int32)")
    return x.astype(dtypes.int32 if x.dtype.itemsize < 4 else dtypes.int64) if x.dtype not in _SIGNED else x


@in_place_of_python
def enumerate_(iterable: Any, start: Any = 0) -> Any:
    """`enumerate` of what a graph goes over."""
    inner = steps(iterable)
    if inner is None:
        return builtins.enumerate(iterable, start)
    return Steps(inner.count, inner.rows, lambda k, row: (like(start + k, start), inner.value(k, row)))


@in_place_of_python
def zip_(*iterables: Any, strict: bool = False) -> Any:
    """`zip`, where at least one of its arguments is gone over in a graph."""
    maybe_steps = [steps(x) for x in iterables]
    if all(x is None for x in maybe_steps):
        return builtins.zip(*iterables, strict=strict)
    if any(x is None for x in maybe_steps):  # a list, say, which Python goes over: then it goes over the tensors, too
        if all(x is None or isinstance(x.count, int) for x in maybe_steps):
            return builtins.zip(
                *[y if x is None else x for x, y in builtins.zip(maybe_steps, iterables)],  # noqa: B905
                strict=strict,
            )
        other = next(x for x, known in builtins.zip(iterables, maybe_steps, strict=True) if known is None)
        raise ControlFlowError(
            f"zip() of a {type(other).__name__} and of tensors whose number of rows is unknown while tracing: a graph "
            "cannot step through the former; make it a tensor with ll.stack or ll.constant"
        )
    parts = [x for x in maybe_steps if x is not None]
    if all(isinstance(x.count, int) for x in parts):
        counts = {x.count for x in parts}
        if len(counts) > 1 and (strict or any(x.rows is not None for x in parts)):
            raise ControlFlowError(f"zip() of different numbers of rows, {sorted(counts)}; cut them first, x[:n]")
    if any(x.rows is None for x in parts):
        return _zipped_with_ranges(parts, strict)
    rows = tuple([x.rows for x in parts])
    return Steps(
        parts[0].count, rows, lambda k, row: tuple([x.value(k, r) for x, r in builtins.zip(parts, row, strict=True)])
    )


def _zipped_with_ranges(parts: list[Steps], strict: bool) -> Steps:
    """The steps of all `parts`, of which the shortest is known only at run time: their rows are picked one by one."""
    if strict and len(parts) > 1:
        raise ControlFlowError(
            "zip(strict=True) of a range of tensors: a graph cannot tell that the numbers of rows differ; "
            "check them before, with ll.debug.check, and write zip()"
        )
    count = functools.reduce(lambda a, b: apply(get("minimum"), (a, b)), [x.count for x in parts])
    return Steps(count, None, lambda k, _: tuple([x.value(k, row_of(x.rows, k)) for x in parts]))


@in_place_of_python
def reversed_(iterable: Any) -> Any:
    """`reversed` of what a graph goes over."""
    inner = steps(iterable)
    if inner is None:
        return builtins.reversed(iterable)
    if inner.rows is not None and not isinstance(inner.rows, Tensor):
        raise ControlFlowError("reversed() of a zip: reverse its parts, zip(reversed(x), reversed(y))")
    last = inner.count - 1
    rows = None if inner.rows is None else apply(get("flip"), (inner.rows,), ((0,),))
    return Steps(inner.count, rows, lambda k, row: inner.value(last - k, row))

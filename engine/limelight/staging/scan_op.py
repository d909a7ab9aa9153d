"""The op behind `scan` and `map_fn`.

Operands: the carry, the tensors to scan, then what the body captures. Its body gets the carry, one row of each scanned
tensor, and the captures; it returns the next carry and rows of the results, which the op stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.errors import ControlFlowError
from limelight.graph.ir import Graph, Value
from limelight.registry import Op, defop
from limelight.spec import ObjectSpec, Spec, TensorSpec, known
from limelight.staging.gradient import infer_outputs
from limelight.tensor import Tensor, as_tensor


def rows_of(spec: Any) -> Spec:
    """The spec of one row of what is scanned."""
    if isinstance(spec, TensorSpec):
        return known(spec.shape[1:], spec.dtype)
    assert isinstance(spec, ObjectSpec)
    return ObjectSpec(spec.kind.removeprefix("list of "))


def stack_of(row: Spec, steps: int | None) -> Spec:
    """The spec of the rows together: a tensor, or a list of opaque values."""
    if isinstance(row, TensorSpec):
        return known((steps, *row.shape), row.dtype)
    assert isinstance(row, ObjectSpec)
    return ObjectSpec(f"list of {row.kind}")


def passes(specs: Sequence[Any], attrs: tuple[Any, ...]) -> list[Any]:
    n, m = attrs[1:3]
    return [rows_of(s) if n <= i < n + m else s for i, s in enumerate(specs)]


def infer_scan(*given: Any) -> tuple[Spec, ...]:
    *specs, body, n, m, length, _ = given
    sizes = [length] if length is not None else [s.shape[0] for s in specs[n : n + m] if isinstance(s, TensorSpec)]
    found = {size for size in sizes if size is not None}
    if len(found) > 1:
        raise ControlFlowError(f"scan: the first axes of xs must have one size, got {sorted(found)}")
    steps = found.pop() if found else None
    rows = infer_outputs(body.graph, [*[v.spec for v in body.graph.inputs[:n]], *passes(specs, given[-5:])[n:]])
    return (*[value.spec for value in body.graph.inputs[:n]], *[stack_of(row, steps) for row in rows[n:]])


def run_scan(xp: Any, *given: Any) -> tuple[Any, ...]:
    *data, body, n, m, length, reverse = given
    carry, xs, captures = data[:n], data[n : n + m], data[n + m :]
    steps = _number(xs, length)
    if steps == 0:
        return (*carry, *[_empty(xp, body.graph, n, carry, value) for value in body.graph.outputs[n:]])
    hollow = getattr(body, "hollow", ())
    ragged = getattr(body, "ragged", {})
    columns = [
        _Column(xp, v.spec, steps, i in hollow, ragged.get(i, frozenset()))
        for i, v in enumerate(body.graph.outputs[n:], n)
    ]
    run = body.run
    for k in range(steps - 1, -1, -1) if reverse else range(steps):
        outputs = run(*carry, *[x[k] for x in xs], *captures)
        carry = outputs[:n]
        for column, row in zip(columns, outputs[n:], strict=True):
            column.put(k, row)
    return (*carry, *[column.result() for column in columns])


def _empty(xp: Any, graph: Graph, n: int, carry: Sequence[Any], value: Value) -> Any:
    """A stack of no rows. Where a row is a carry its sizes are known, other sizes that are not count as 0."""
    if not isinstance(value.spec, TensorSpec):
        return []
    likely = [i for i in range(n) if value in (graph.inputs[i], graph.outputs[i])]
    sizes = carry[likely[0]].shape if likely else [size or 0 for size in value.spec.shape]
    return xp.empty((0, *sizes), dtype=value.spec.dtype)


def _number(xs: Sequence[Any], length: int | None) -> int:
    sizes = [len(x) for x in xs] + ([] if length is None else [length])
    for n in sizes:
        if n != sizes[0]:
            raise ControlFlowError(f"scan: the first axes of xs must have one size, got {sizes}")
    return sizes[0]


class _Column:
    """One result of a scan, filled row by row: with NumPy rows go to their places, others are stacked at the end."""

    __slots__ = ("_hollow", "_ragged", "_rows", "_spec", "_steps", "_xp", "array")

    def __init__(self, xp: Any, spec: Any, steps: int, hollow: bool, ragged: frozenset[int]) -> None:
        self._hollow = hollow  # whether a row may be empty, standing for what another branch would have left
        self._ragged = ragged  # the axes along which rows may be shorter: iterations of a loop inside
        self._xp = xp
        self._spec = spec
        self._steps = steps
        self.array: Any = None
        self._rows: list[Any] | None = None

    def put(self, k: int, row: Any) -> None:
        if self.array is not None and row.shape == self.array.shape[1:]:
            self.array[k] = row
        elif self._rows is None and not self._ragged and isinstance(row, (np.ndarray, np.generic)):
            self._make_room(k, row)
        else:
            if self._rows is None:
                self._rows = [None] * self._steps
            self._rows[k] = row

    def _make_room(self, k: int, row: Any) -> None:
        """For the first row, and for the first one that is not empty."""
        if self._hollow and self.array is not None and not row.size:
            self.array[k] = 0
        elif self.array is None or (self._hollow and not self.array.size):
            make = np.zeros if self._hollow else np.empty
            self.array = make((self._steps, *row.shape), row.dtype)
            self.array[k] = row
        else:
            raise _uneven(self.array.shape[1:], row.shape, k)

    def result(self) -> Any:
        if self.array is not None:
            return self.array
        rows = self._rows or []
        if not isinstance(self._spec, TensorSpec):
            return rows
        rows = filled_up(self._xp, rows, self._hollow, self._ragged)
        k = next((k for k, row in enumerate(rows) if row.shape != rows[0].shape), None)
        if k is not None:
            raise _uneven(rows[0].shape, rows[k].shape, k)
        return self._xp.stack(rows)


def _uneven(shape: tuple[int, ...], other: tuple[int, ...], k: int) -> ControlFlowError:
    return ControlFlowError(
        f"scan: a value of shape {shape} has shape {other} at step {k}; what a scan returns at each step, or keeps for "
        "its gradient, must have one shape (pad it)"
    )


def filled_up(xp: Any, rows: list[Any], hollow: bool, ragged: frozenset[int]) -> list[Any]:
    """Rows of one shape, where that can be had: zeros stand for what is not there and is never read.

    `hollow`: an empty row stands for another branch's. `ragged`: the axes along which rows end early, since a loop
    inside had fewer iterations.
    """
    if not (hollow or ragged) or len({row.shape for row in rows}) < 2:
        return rows
    shape = tuple([max(sizes) for sizes in zip(*[row.shape for row in rows], strict=True)])
    return [_grown(xp, row, shape, hollow, ragged) for row in rows]


def _grown(xp: Any, row: Any, shape: tuple[int, ...], hollow: bool, ragged: frozenset[int]) -> Any:
    short = [axis for axis, (size, wanted) in enumerate(zip(row.shape, shape, strict=True)) if size < wanted]
    if not short or not (ragged.issuperset(short) or (hollow and not row.size)):
        return row
    return xp.pad(row, [(0, wanted - size) for size, wanted in zip(row.shape, shape, strict=True)])


def positions(count: Any) -> Tensor:
    """A row for each of `count` steps, a number or an integer tensor, which takes no memory."""
    return as_tensor(0).broadcast_to((count,) if isinstance(count, int) else count.astype("int64").reshape((1,)))


scan_op: Op = defop(
    "scan",
    inputs="*xs:any",
    attrs="body n_carry n_xs length reverse",
    infer=infer_scan,
    kernel=run_scan,
    multiple=True,
    higher_order=True,
    passes=passes,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records scan_forward
    maths={"xs": "x̄ₖ = backward of the body at step k, from the last"},
)

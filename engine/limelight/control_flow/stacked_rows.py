"""Stacks of the rows that a loop returns, one row for each step: their specs, and how they are filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.core.shapes import Shape
from limelight.core.spec import ObjectSpec, Spec, TensorSpec, known
from limelight.core.tensor import Tensor, as_tensor
from limelight.errors import ControlFlowError, ShapeError
from limelight.graph.ir import Graph
from limelight.staging.call_gradient import infer_outputs


def rows_of(spec: Any) -> Spec:
    """The spec of one row of a tensor, or of a list of opaque values, that is scanned."""
    if isinstance(spec, TensorSpec):
        return known(spec.shape[1:], spec.dtype)
    assert isinstance(spec, ObjectSpec)
    return ObjectSpec(spec.kind.removeprefix("list of "))


def stack_of(row: Spec, steps: int | None) -> Spec:
    """The spec of the stack of rows like `row`: a tensor, or a list of opaque values."""
    if isinstance(row, TensorSpec):
        return known((steps, *row.shape), row.dtype)
    assert isinstance(row, ObjectSpec)
    return ObjectSpec(f"list of {row.kind}")


def empty_stacks(xp: Any, graph: Graph, n: int, sizes: Sequence[Shape]) -> list[Any]:
    """The stacks of a loop without steps. Sizes that are not known count as 0.

    Args:
        xp: the array library.
        graph: the body.
        n: the number of carried values.
        sizes: the shapes of the body's inputs, () for opaque values.
    """
    inputs = [
        known(s, v.spec.dtype) if isinstance(v.spec, TensorSpec) else v.spec
        for v, s in zip(graph.inputs, sizes, strict=True)
    ]
    try:
        specs = infer_outputs(graph, inputs)
    except ShapeError:
        specs = tuple([value.spec for value in graph.outputs])
    carried = {  # a carried value that is also a row has the shape that it began with
        value: spec for values in (graph.outputs, graph.inputs) for value, spec in zip(values[:n], inputs, strict=False)
    }
    rows = [carried.get(value, spec) for value, spec in zip(graph.outputs[n:], specs[n:], strict=True)]
    return [
        xp.empty((0, *[size or 0 for size in row.shape]), dtype=row.dtype) if isinstance(row, TensorSpec) else []
        for row in rows
    ]


class Column:
    """A stack that is filled row by row: rows of NumPy go to their places at once, others are stacked at the end."""

    __slots__ = ("_rows", "_spec", "_steps", "_uneven", "_xp", "array")

    def __init__(self, xp: Any, spec: Any, steps: int, uneven: bool) -> None:
        self._uneven = uneven  # whether rows may have other sizes, and are filled up
        self._xp = xp
        self._spec = spec
        self._steps = steps
        self.array: Any = None
        self._rows: dict[int, Any] = {}  # those that are not in the array

    def put(self, k: int, row: Any) -> None:
        if self.array is not None:
            if row.shape == self.array.shape[1:]:
                self.array[k] = row
            elif self._uneven:
                self._fill_up(k, row)
            else:
                raise _shape_error("scan", self.array.shape[1:], row.shape, k)
        elif not self._rows and isinstance(row, (np.ndarray, np.generic)):
            self.array = np.empty((self._steps, *row.shape), row.dtype)
            self.array[k] = row
        else:
            self._rows[k] = row

    def _fill_up(self, k: int, row: Any) -> None:
        """Puts a row of another shape than those before."""
        room = self.array.shape[1:]
        if all(n <= m for n, m in zip(row.shape, room, strict=True)):
            self.array[k] = 0
            self.array[k][tuple([slice(n) for n in row.shape])] = row
        elif not self.array.size and all(n >= m for n, m in zip(row.shape, room, strict=True)):
            self.array = np.zeros((self._steps, *row.shape), row.dtype)  # those before were empty
            self.array[k] = row
        else:
            self._rows[k] = row

    def result(self) -> Any:
        if not self._rows:
            return self.array
        if self.array is not None:
            self._rows = dict(enumerate(self.array)) | self._rows
        rows = [self._rows[k] for k in range(self._steps)]
        return stacked("scan", self._xp, rows, self._spec, self._uneven)


def stacked(op: str, xp: Any, rows: Sequence[Any], spec: Any, uneven: bool) -> Any:
    """The stack of rows of all steps, of which there is at least one. Raises ControlFlowError where shapes differ.

    Args:
        op: the op that runs, for the error.
        xp: the array library.
        rows: the rows, in order.
        spec: the spec of a row.
        uneven: whether rows of different shapes are filled up with zeros to the largest.
    """
    if not isinstance(spec, TensorSpec):
        return list(rows)
    shape = rows[0].shape
    k = next((k for k, row in enumerate(rows) if row.shape != shape), None)
    if k is None:
        return xp.stack(rows)
    if not uneven:
        raise _shape_error(op, shape, rows[k].shape, k)
    largest = tuple([max(sizes) for sizes in zip(*[row.shape for row in rows], strict=True)])
    if xp is not np:
        return xp.stack([xp.pad(row, [(0, n - m) for n, m in zip(largest, row.shape, strict=True)]) for row in rows])
    stack = np.zeros((len(rows), *largest), rows[0].dtype)
    for place, row in zip(stack, rows, strict=True):
        place[tuple([slice(m) for m in row.shape])] = row
    return stack


def _shape_error(op: str, shape: tuple[int, ...], other: tuple[int, ...], k: int) -> ControlFlowError:
    return ControlFlowError(
        f"{op}: a value of shape {shape} has shape {other} at step {k}; what a loop returns at each step must have one "
        "shape (pad it)"
    )


def positions(count: Any) -> Tensor:
    """A row for each of `count` steps, a number or an integer tensor, which takes no memory."""
    return as_tensor(0).broadcast_to((count,) if isinstance(count, int) else count.astype("int64").reshape((1,)))

"""The op that hands on a sum computed in another order, if nothing can have overflowed in either order.

A partial sum may leave the range though the whole does not, and which partial sums there are depends on the order. So
the terms are bounded first: by Cauchy and Schwarz no partial sum of the products of two tensors exceeds the product of
their norms, which takes a scalar product each, a microsecond for forty small terms. Where the bounds do not add up to
less than the dtype's largest number, or are NaN, the sum is computed as it was written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from limelight.core.op import Op
from limelight.core.spec import TensorSpec
from limelight.graph.build import Rewriter
from limelight.graph.ir import Node, Value


class Norm(NamedTuple):
    """Bounds a term, or a sum of elements of `value` where `n` is how many there may be."""

    value: Value
    n: int = 1


class Product(NamedTuple):
    """Bounds the matrix product of two values, and each of its partial sums."""

    left: Value
    right: Value


class Scaled(NamedTuple):
    """Bounds the product of a sum with a factor."""

    terms: Bounds
    factor: Value


Bound: TypeAlias = "Norm | Product | Scaled"
Bounds: TypeAlias = "tuple[Bound, ...]"


def guarded(rewriter: Rewriter, root: Node, total: Value, bounds: Bounds, written: Sequence[Node]) -> Node:
    """A node that returns `total` where `bounds` are below the range of the dtype, else what `root` would.

    Args:
        rewriter: of the graph in which it is to be.
        root: the last node of the sum as it was written.
        total: the sum in another order, a value of the new graph.
        bounds: of its terms, with values of the new graph.
        written: the nodes of the sum as it was written, in order, `root` the last of them.
    """
    made = {value for node in written for value in node.outputs}
    operands = list(dict.fromkeys(x for node in written for x in node.inputs if x not in made))
    checked = list(dict.fromkeys(_values(bounds)))
    spec = root.outputs[0].spec
    assert isinstance(spec, TensorSpec)
    limit = float(np.finfo(spec.dtype).max) / 4
    run = GuardedSum(_numbered(bounds, checked), limit, len(checked), _Steps(operands, written))
    others = {"jax": partial(_on, run, "jax"), "cupy": partial(_as_written, run)}
    op = Op("guarded_sum", inputs="*xs", infer=lambda *xs: spec, kernel=partial(_on, run, "numpy"), special=others)
    inputs = (total, *checked, *map(rewriter.value, operands))
    return rewriter.add(root, op, inputs, (), [spec])


def guard_of(op: Op) -> GuardedSum | None:
    """What an op that `guarded` has made runs; None for other ops."""
    kernel = op.kernel
    return kernel.args[0] if isinstance(kernel, partial) and kernel.func is _on else None


def _values(bounds: Bounds) -> list[Value]:
    values: list[Value] = []
    for bound in bounds:
        if isinstance(bound, Scaled):
            values += [*_values(bound.terms), bound.factor]
        else:
            values += [bound.value] if isinstance(bound, Norm) else [bound.left, bound.right]
    return values


def _numbered(bounds: Bounds, values: list[Value]) -> tuple[Any, ...]:
    """The bounds with the places of their values instead of these: no graph is kept alive."""
    numbered: list[Any] = []
    for bound in bounds:
        if isinstance(bound, Scaled):
            numbered.append((_numbered(bound.terms, values), values.index(bound.factor), 1.0))
        elif isinstance(bound, Norm):
            numbered.append((None, values.index(bound.value), math.sqrt(bound.n)))
        else:
            numbered.append((values.index(bound.left), values.index(bound.right), 1.0))
    return tuple(numbered)


class _Steps:
    """The sum as it was written: kernels, and where in the list of operands and results each finds its own."""

    def __init__(self, operands: Sequence[Value], written: Sequence[Node]) -> None:
        places = {value: i for i, value in enumerate(operands)}
        self._steps = []
        for node in written:
            self._steps.append((node.op, [places[x] for x in node.inputs], node.params))
            places[node.outputs[0]] = len(places)

    def run(self, backend: str, operands: Sequence[Any]) -> Any:
        values = list(operands)
        for op, places, params in self._steps:
            values.append(op.kernel_on(backend)(*[values[i] for i in places], *params))
        return values[-1]


class GuardedSum(NamedTuple):
    """What the node runs, on the total, values whose norms are needed, and operands of the sum as it was written.

    Args:
        bounds: triples (left, right, factor) of places among these values. They bound a term by the norms of both times
            the factor; `left` may be None, or such triples themselves, whose sum it is then.
        limit: what the bounds must stay below.
        n_checked: how many values there are.
        steps: the sum as it was written.
    """

    bounds: tuple[Any, ...]
    limit: float
    n_checked: int
    steps: _Steps


def _on(run: GuardedSum, backend: str, xp: Any, total: Any, *arrays: Any) -> Any:
    squares = []
    for x in arrays[: run.n_checked]:
        flat = x.reshape(-1)
        squares.append(float(flat.dot(flat)))
    if _total(run.bounds, squares, run.limit) < run.limit:
        return total
    return run.steps.run(backend, arrays[run.n_checked :])


def _as_written(run: GuardedSum, xp: Any, total: Any, *arrays: Any) -> Any:
    """On a GPU, where each look at a norm would wait for the device."""
    return run.steps.run(f"cupy:{total.device.id}", arrays[run.n_checked :])


def _total(bounds: tuple[Any, ...], squares: list[float], limit: float) -> float:
    """The sum of the bounds; infinite where it reaches the limit on its way, NaN where a term is NaN."""
    total = 0.0
    for left, right, factor in bounds:
        norm = math.sqrt(squares[right]) * factor
        if type(left) is tuple:
            norm *= _total(left, squares, limit)
        elif left is not None:
            norm *= math.sqrt(squares[left])
        total += norm
    return total if total < limit else math.inf

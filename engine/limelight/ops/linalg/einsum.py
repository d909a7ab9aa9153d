"""`einsum`: sums of products over named axes, as a program of smaller ops.

First come diagonals and sums of single operands, then pairs in the order of `np.einsum_path`. A pair that is a product
by `@` becomes one; any other is the op `einsum_pair`, planned once for given shapes as a (batched) matrix product. Its
gradient is a pair again, with operand and output exchanged, and told the shape to sum or repeat to (`einsum_pair_to`).
That set of ops is closed under differentiation: one rule serves every order, axes of size 1, and sizes that are unknown
while tracing.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from limelight.core import dtypes
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensors
from limelight.errors import ArgumentError
from limelight.ops._given_shape import defop_with_shape
from limelight.ops._shape_rules import SHORT
from limelight.ops.linalg._einsum_notation import (
    contraction_order,
    label_sizes,
    parse_equation,
    places,
    plan_pair,
    run_pair,
)

__all__ = ["einsum"]

# einsum_pair: two operands, neither with a label twice


def _pair_infer(x: TensorSpec, y: TensorSpec, equation: str) -> TensorSpec:
    terms, output = parse_equation(equation, (x.rank, y.rank))
    sizes = label_sizes(equation, terms, (x.shape, y.shape))
    return known(tuple([sizes[label] for label in output]), x.dtype)


def _pair_kernel(xp: Any, x: Any, y: Any, equation: str, shape: tuple[int, ...] | None = None) -> Any:
    plan = plan_pair(equation, x.shape, y.shape, shape)
    if x.dtype in SHORT:
        wide = run_pair(xp, plan, x.astype(dtypes.float32), y.astype(dtypes.float32))
        return wide.astype(x.dtype)
    return run_pair(xp, plan, x, y)


@functools.lru_cache(maxsize=1024)
def _gradient_equation(equation: str, place: int) -> str:
    """The equation of the gradient for one operand of a pair: it changes places with the output."""
    left, output = equation.split("->")
    terms = left.split(",")
    return f"{output},{terms[1 - place]}->{terms[place]}"


_pair: EntryPoint = entry_point(defop(
    "einsum_pair",
    inputs="x y",
    attrs="equation",
    infer=_pair_infer,
    kernel=_pair_kernel,
    accepts="numeric",
    vjp={
        "x": lambda g, y, x_shape, equation: _pair_to((g, y.conj()), x_shape, _gradient_equation(equation, 0)),
        "y": lambda g, x, y_shape, equation: _pair_to((g, x.conj()), y_shape, _gradient_equation(equation, 1)),
    },
    linear="x y",
    maths={"x": "x̄ = Σ z̄ y* over the labels that x has not", "y": "ȳ = Σ z̄ x* over the labels that y has not"},
    batching="einsum",
))  # fmt: skip

_pair_to: EntryPoint = defop_with_shape(
    "einsum_pair_to",
    inputs="x y",
    attrs="equation",
    infer=lambda x, y, equation, shape: known(shape, x.dtype),
    kernel=_pair_kernel,
    accepts="numeric",
    vjp={
        "x": lambda g, y, x_shape, equation: _pair_to((g, y.conj()), x_shape, _gradient_equation(equation, 0)),
        "y": lambda g, x, y_shape, equation: _pair_to((g, x.conj()), y_shape, _gradient_equation(equation, 1)),
    },
    linear="x y",
    maths={"x": "x̄ = Σ z̄ y* over the labels that x has not", "y": "ȳ = Σ z̄ x* over the labels that y has not"},
    batching="einsum",
    dynamic_batching="einsum_dynamic",
)

# einsum_one: diagonals, sums and transposes of a single operand


def _one_infer(x: TensorSpec, equation: str) -> TensorSpec:
    terms, output = parse_equation(equation, (x.rank,))
    sizes = label_sizes(equation, terms, (x.shape,))
    return known(tuple([sizes[label] for label in output]), x.dtype)


class _Alone(NamedTuple):
    """What happens to a single operand: diagonals taken, summed, transposed, spread."""

    diagonal: str
    over: tuple[int, ...]
    order: tuple[int, ...]
    held: tuple[str, ...]
    targets: tuple[str, ...]


@functools.lru_cache(maxsize=1024)
def _alone_plan(equation: str) -> _Alone:
    term, output = equation.split("->")
    distinct = "".join(dict.fromkeys(term))
    over = tuple([i for i, label in enumerate(distinct) if label not in output])
    held = tuple([label for label in distinct if label in output])
    targets = tuple(dict.fromkeys(output))
    order = places([label for label in targets if label in held], held)
    return _Alone(f"{term}->{distinct}" if distinct != term else "", over, order, held, targets)


def _one_kernel(xp: Any, x: Any, equation: str, shape: tuple[int, ...] | None = None) -> Any:
    plan = _alone_plan(equation)
    term, output = equation.split("->")
    result = x.astype(dtypes.float32) if x.dtype in SHORT else x
    if plan.diagonal:
        label_sizes(equation, (term,), (x.shape,))
        result = xp.einsum(plan.diagonal, result)
    if plan.over:
        result = result.sum(plan.over, dtype=result.dtype)
    result = result.transpose(plan.order)
    if shape is not None:
        result = _spread(xp, result, plan.held, plan.targets, output, shape)
    return result.astype(x.dtype, copy=False)


def _spread(xp: Any, x: Any, held: Sequence[str], targets: Sequence[str], output: str, shape: tuple[int, ...]) -> Any:
    """`x` repeated along the labels that it has not, and put on the diagonal of those that the output has twice."""
    sizes = dict(zip(output, shape, strict=True))
    x = x.reshape([sizes[label] if label in held else 1 for label in targets])
    x = xp.broadcast_to(x, [sizes[label] for label in targets])
    if len(targets) == len(output):
        return x
    rank = len(targets)
    grid = {c: xp.arange(sizes[c]).reshape([-1 if i == j else 1 for j in range(rank)]) for i, c in enumerate(targets)}
    key, out = tuple([grid[label] for label in output]), xp.zeros(shape, x.dtype)
    if hasattr(out, "at"):
        return out.at[key].set(x)
    out[key] = x
    return out


def _reversed_equation(equation: str) -> str:
    return "->".join(reversed(equation.split("->")))


_one: EntryPoint = entry_point(defop(
    "einsum_one",
    inputs="x",
    attrs="equation",
    infer=_one_infer,
    kernel=_one_kernel,
    accepts="numeric",
    vjp={"x": lambda g, x_shape, equation: _one_to((g,), x_shape, _reversed_equation(equation))},
    linear="x",
    maths={"x": "x̄ = ȳ on the diagonals, repeated along summed labels"},
    batching="einsum",
))  # fmt: skip

_one_to: EntryPoint = defop_with_shape(
    "einsum_one_to",
    inputs="x",
    attrs="equation",
    infer=lambda x, equation, shape: known(shape, x.dtype),
    kernel=_one_kernel,
    accepts="numeric",
    vjp={"x": lambda g, x_shape, equation: _one_to((g,), x_shape, _reversed_equation(equation))},
    linear="x",
    maths={"x": "x̄ = ȳ summed over the labels that x has not"},
    batching="einsum",
    dynamic_batching="einsum_dynamic",
)

# einsum


class _Step(NamedTuple):
    """Operand i on its own, which stays in its place (then j is -1); or i and j to one, at the end of the list."""

    i: int
    j: int
    equation: str
    product: tuple[bool, bool, bool] | None
    """Where it is a matrix product: are the first, the second, and the result transposed?"""


_PRODUCT: Final = (_Step(0, 1, "", (False, False, False)),)
"""The most frequent program, which takes the shortest way."""


def einsum(equation: str, /, *operands: TensorLike) -> Tensor:
    """The sum of products of the operands over the axes that `equation` names; numeric.

    "ij,jk->ik" is a matrix product: a letter for each axis, commas between operands, the output after the arrow; labels
    that it lacks are summed over. A label twice in an operand means its diagonal, "..." any axes, which broadcast.
    Without an arrow the output has the labels that occur once, in alphabetical order. Axes of size 1 are repeated, as
    when broadcasting. Three and more operands are contracted in the cheapest order (that of np.einsum_path), and each
    pair by a matrix product. Integers keep their dtype.

    Raises ArgumentError for what is no equation, ShapeError where it does not fit the operands: it names the label that
    clashes, and both sizes.

    >>> import limelight as ll
    >>> ll.einsum("ij,jk->ik", ll.constant([[1, 2], [3, 4]]), ll.constant([[1], [1]])).tolist()
    [[3], [7]]
    >>> ll.einsum("...ii", ll.ones((2, 3, 3))).tolist()
    [3.0, 3.0]
    """
    if type(equation) is not str or not operands:
        given = getattr(equation, "spec", None) or repr(equation)
        raise ArgumentError(f"einsum: write ll.einsum('ij,jk->ik', x, y), with an operand at least; got {given}")
    if len(operands) == 2:
        x, y = operands
        if type(x) is Tensor and type(y) is Tensor and _steps(equation, (x._data.shape, y._data.shape)) is _PRODUCT:
            return x @ y
    held = as_tensors(operands)
    steps = _steps(equation, tuple([x.shape for x in held]))
    for i, j, form, product in steps:
        if j < 0:
            held[i] = _one(held[i], form)
        elif product is not None:
            y, x = held.pop(j), held.pop(i)
            result = (x.mT if product[0] else x) @ (y.mT if product[1] else y)
            held.append(result.mT if product[2] else result)
        else:
            y, x = held.pop(j), held.pop(i)
            held.append(_pair((x, y), form))
    return held[0]


@functools.lru_cache(maxsize=2048)
def _steps(equation: str, operand_shapes: tuple[Shape, ...]) -> tuple[_Step, ...]:
    """The program of an einsum on operands of these shapes."""
    terms, output = parse_equation(equation, tuple([len(shape) for shape in operand_shapes]))
    sizes = label_sizes(equation, terms, operand_shapes)
    if len(terms) == 1:
        return () if terms[0] == output else (_Step(0, -1, f"{terms[0]}->{output}", None),)
    steps, held = _steps_on_single_operands(terms, output)
    shown = tuple([tuple([sizes[label] for label in term]) for term in held])
    for i, j in contraction_order(tuple(held), output, shown):
        y, x = held.pop(j), held.pop(i)
        pair_output = _pair_output(x, y, held, output)
        steps.append(_Step(i, j, f"{x},{y}->{pair_output}", _as_product(x, y, pair_output, terms, operand_shapes)))
        held.append(pair_output)
    return _PRODUCT if len(steps) == 1 and steps[0].product == _PRODUCT[0].product else tuple(steps)


def _steps_on_single_operands(terms: Sequence[str], output: str) -> tuple[list[_Step], list[str]]:
    """Steps that take the diagonals of operands, and sum over labels that nobody else has; and the labels left."""
    steps, held = [], list(terms)
    for i, term in enumerate(terms):
        rest = "".join([*terms[:i], *terms[i + 1 :], output])
        held[i] = "".join([label for label in dict.fromkeys(term) if label in rest])
        if held[i] != term:
            steps.append(_Step(i, -1, f"{term}->{held[i]}", None))
    return steps, held


def _pair_output(x: str, y: str, others: Sequence[str], output: str) -> str:
    """The labels of a pair's result: in the order that a batch of matrix products gives, at the end in the output's."""
    if not others:
        return output
    needed = set(output).union(*others)
    both = [label for label in x if label in y and label in needed]
    mine, its = ([c for c in a if c not in b and c in needed] for a, b in ((x, y), (y, x)))
    return "".join([*both, *mine, *its])


def _as_product(
    x: str, y: str, output: str, terms: Sequence[str], operand_shapes: Sequence[Shape]
) -> tuple[bool, bool, bool] | None:
    """How a pair is a product by `@`, where all its sizes are known and none of them has to be repeated."""
    sizes: dict[str, set[int | None]] = {}
    for term, shape in zip(terms, operand_shapes, strict=True):
        for label, n in zip(term, shape, strict=True):
            sizes.setdefault(label, set()).add(n)
    if any(len(sizes[label]) > 1 or None in sizes[label] for label in (*x, *y)):
        return None
    lead = output[:-2]
    if len(output) < 2 or x[: len(lead)] != lead or y[: len(lead)] != lead or len(x) != len(output) or len(y) != len(x):
        return None
    for flipped, i, k in ((False, output[-2], output[-1]), (True, output[-1], output[-2])):
        over = (set(x) - set(output)) & (set(y) - set(output))
        if len(over) == 1 and i in x and k in y and i not in y and k not in x:
            j = over.pop()
            return x[-2:] == j + i, y[-2:] == k + j, flipped
    return None

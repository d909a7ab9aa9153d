"""Einsum's notation: equations parsed, sizes checked, the order of contractions, and how a pair is contracted."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from math import prod
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np

from limelight.core import shapes
from limelight.core.shapes import Shape
from limelight.errors import ArgumentError, ShapeError

# equations


@functools.lru_cache(maxsize=1024)
def parse_equation(equation: str, ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """The labels of each operand and of the output, a letter for each axis, those of an ellipsis among them.

    Without an arrow the output has the axes of the ellipsis, then the labels that occur once, in alphabetical order.
    Raises ArgumentError for what is no equation, ShapeError where it does not fit operands of these ranks.
    """
    text = "".join(equation.split())
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ArgumentError(f"einsum: {equation!r} has {len(terms)} operands between its commas, got {len(ranks)}")
    for term in (*terms, right):
        _check_term(equation, term)
    used = set(text) & set(ascii_letters)
    spare = [letter for letter in ascii_letters if letter not in used]
    widths = [_width(equation, i, term, rank) for i, (term, rank) in enumerate(zip(terms, ranks, strict=True))]
    widest = max(widths)
    if widest > len(spare):
        raise ArgumentError(f"einsum: {equation!r} has more than {len(ascii_letters)} different axes")
    dots = "".join(spare[:widest])
    inputs = tuple([term.replace("...", dots[widest - n :]) for term, n in zip(terms, widths, strict=True)])
    if not arrow:
        counts = Counter("".join(terms).replace(".", ""))
        right = dots + "".join(sorted(label for label, n in counts.items() if n == 1))
    output = right.replace("...", dots)
    _check_output(equation, inputs, output)
    return inputs, output


def _check_term(equation: str, term: str) -> None:
    bare = term.replace("...", "", 1)
    wrong = [c for c in bare if c not in ascii_letters]
    if wrong:
        raise ArgumentError(
            f"einsum: {wrong[0]!r} in {equation!r}: write a letter for each axis, commas between operands, '...' for "
            "axes without a name, and the output after '->', as in 'ij,jk->ik'"
        )


def _width(equation: str, index: int, term: str, rank: int) -> int:
    """How many axes the ellipsis of an operand stands for."""
    named = len(term.replace("...", ""))
    if rank < named or (rank > named and "..." not in term):
        raise ShapeError(
            f"einsum: {term!r} of {equation!r} names {named} axes, but operand {index} has {rank}"
            + ("; put '...' where the others are" if rank > named else "")
        )
    return rank - named


def _check_output(equation: str, inputs: Sequence[str], output: str) -> None:
    for label, count in Counter(output).items():
        if count > 1:
            raise ArgumentError(
                f"einsum: the output of {equation!r} has label {label!r} {count} times; it may have it once"
            )
        if not any(label in term for term in inputs):
            raise ArgumentError(f"einsum: the output of {equation!r} has label {label!r}, which no operand has")


# sizes


def label_sizes(equation: str, terms: Sequence[str], operand_shapes: Sequence[Shape]) -> dict[str, int | None]:
    """The size of each label: axes of size 1 are repeated where another operand has more, as when broadcasting.

    Raises ShapeError that names the label which clashes, both sizes and operands.
    """
    sizes: dict[str, int | None] = {}
    seen: dict[str, tuple[int, int]] = {}
    for i, (term, shape) in enumerate(zip(terms, operand_shapes, strict=True)):
        own: dict[str, int | None] = {}
        for label, n in zip(term, shape, strict=True):
            if None not in (n, own.get(label, n)) and own.get(label, n) != n:
                raise ShapeError(
                    f"einsum {equation!r}: label {label!r} stands for axes of sizes {own[label]} and {n} in operand "
                    f"{i}, of shape {shapes.show(shape)}; a diagonal needs equal sizes"
                )
            own[label] = n if own.get(label) is None else own[label]
        for label, n in own.items():
            if n not in (None, 1) and label in seen and seen[label][0] != n:
                m, j = seen[label]
                raise ShapeError(
                    f"einsum {equation!r}: label {label!r} has size {m} in operand {j}, of shape "
                    f"{shapes.show(operand_shapes[j])}, and size {n} in operand {i}, of shape {shapes.show(shape)}; "
                    "they must be equal, or one of them 1"
                )
            if n not in (None, 1):
                seen[label] = (n, i)
            sizes[label] = _meet(sizes.get(label, 1), n)
    return sizes


def _meet(m: int | None, n: int | None) -> int | None:
    if m == 1 or n == 1:
        return n if m == 1 else m
    return n if m is None else m


# the order of contractions


@functools.lru_cache(maxsize=1024)
def contraction_order(
    terms: tuple[str, ...], output: str, operand_shapes: tuple[Shape, ...]
) -> tuple[tuple[int, int], ...]:
    """Which two of the operands to contract next, again and again; the result goes to the end of the list.

    The cheapest order of up to four operands, a greedy one beyond, by NumPy; unknown sizes count as 32.
    """
    if len(terms) < 3:
        return ((0, 1),) if len(terms) == 2 else ()
    sizes = {label: 32 if n is None else n for label, n in label_sizes(output, terms, operand_shapes).items()}
    dummies = [np.broadcast_to(np.float32(0), [sizes[label] for label in term]) for term in terms]
    equation = f"{','.join(terms)}->{output}"
    path = np.einsum_path(equation, *dummies, optimize="optimal" if len(terms) < 5 else "greedy")[0][1:]
    pairs: list[tuple[int, int]] = []
    left = len(terms)
    for step in path:
        first, second, *more = sorted(step)
        pairs.append((first, second))
        left -= 1
        for gone, place in enumerate(more, 2):  # more than two at once are contracted one after another
            pairs.append((place - gone, left - 1))
            left -= 1
    return tuple(pairs)


# one pair


class Pair(NamedTuple):
    """How two arrays are contracted: squeezed, summed over labels of their own, made matrices, multiplied, reshaped."""

    x: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # squeezed, summed, order, matrix
    y: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    by: str  # "matmul", "dot" (of two matrices), "inner" (a dot product for each row), "multiply"
    middle: tuple[int, ...]  # the product's axes
    order: tuple[int, ...]  # in the order of the output
    shape: tuple[int, ...]  # with its axes of size 1
    wanted: tuple[int, ...]  # repeated to this


@functools.lru_cache(maxsize=4096)
def plan_pair(equation: str, x_shape: tuple[int, ...], y_shape: tuple[int, ...], shape: tuple[int, ...] | None) -> Pair:
    """The plan for a pair: labels of size 1 drop out first, so that the others have one size each.

    Args:
        equation: two terms and the output, without an ellipsis.
        x_shape: the first operand's.
        y_shape: the second operand's.
        shape: the output's, where it is given: it is then summed over axes of size 1, and repeated along those that no
            operand has.

    Returns:
        What `run_pair` follows.

    Raises:
        ShapeError: sizes clash.
    """
    (lx, ly), output = parse_equation(equation, (len(x_shape), len(y_shape)))
    sizes = label_sizes(equation, (lx, ly), (x_shape, y_shape))
    wanted = tuple([sizes[c] or 0 for c in output]) if shape is None else shape  # all are known
    long = [c for c, n in zip(output, wanted, strict=True) if n != 1]
    nx, ny = ("".join([c for c, n in zip(t, s, strict=True) if n != 1]) for t, s in ((lx, x_shape), (ly, y_shape)))
    kept = [c for c in long if c in nx or c in ny]
    sx, sy = ("".join([c for c in t if c in kept or c in u]) for t, u in ((nx, ny), (ny, nx)))
    batch = [c for c in kept if c in sx and c in sy]
    over = [c for c in (sx if len(sx) >= len(sy) else sy) if c in sx and c in sy and c not in kept]
    free_x, free_y = [c for c in kept if c not in sy], [c for c in kept if c not in sx]
    product = [*batch, *free_x, *free_y]

    def n(labels: Sequence[str]) -> tuple[int, ...]:
        return tuple([sizes[c] or 0 for c in labels])

    def operand(term: str, summed: str, order: list[str], matrix: tuple[int, ...]) -> Any:
        return n(term), tuple([i for i, c in enumerate(term) if c not in summed]), places(order, summed), matrix

    if not over:
        by, middle, product = "multiply", n(kept), kept
        shape_x, shape_y = (tuple([sizes[c] or 0 if c in s else 1 for c in kept]) for s in (sx, sy))
        order_x, order_y = ([c for c in kept if c in s] for s in (sx, sy))
    else:
        b, i, k, j = (prod(n(part)) for part in (batch, free_x, over, free_y))
        order_x, order_y = [*batch, *free_x, *over], [*batch, *over, *free_y]
        shape_x, shape_y, middle = (*n(batch), i, k), (*n(batch), k, j), n(product)
        by = "matmul" if batch else "dot"
        if batch and not free_x and not free_y:
            by, shape_x, shape_y = "inner", (b, k), (b, k)
    x, y = operand(nx, sx, order_x, shape_x), operand(ny, sy, order_y, shape_y)
    unsqueezed = tuple([m if c in kept else 1 for c, m in zip(output, wanted, strict=True)])
    return Pair(x, y, by, middle, places(kept, product), unsqueezed, wanted)


def places(labels: Sequence[str], among: Sequence[str]) -> tuple[int, ...]:
    """Where the labels stand among others."""
    return tuple([list(among).index(c) for c in labels])


def run_pair(xp: Any, plan: Pair, x: Any, y: Any) -> Any:
    """Contracts two arrays.

    Args:
        xp: their array library.
        plan: what `plan_pair` has made for their shapes.
        x: the first operand.
        y: the second operand.

    Returns:
        The contraction in the shape that the plan wants; perhaps a view.
    """
    x, y = _as_matrix(x, plan.x), _as_matrix(y, plan.y)
    if plan.by == "inner":
        product = xp.einsum("bk,bk->b", x, y)
    elif plan.by == "dot":
        product = x.dot(y)
    else:
        product = xp.matmul(x, y) if plan.by == "matmul" else x * y
    product = product.reshape(plan.middle)
    if plan.order != tuple(range(len(plan.order))):
        product = product.transpose(plan.order)
    product = product.reshape(plan.shape)
    return product if plan.shape == plan.wanted else xp.broadcast_to(product, plan.wanted)


def _as_matrix(x: Any, plan: Any) -> Any:
    squeezed, summed, order, matrix = plan
    if x.shape != squeezed:
        x = x.reshape(squeezed)
    if summed:
        x = x.sum(summed, dtype=x.dtype)
    if order != tuple(range(len(order))):
        x = x.transpose(order)
    return x if x.shape == matrix else x.reshape(matrix)

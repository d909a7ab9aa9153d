"""Products of matrices, sums of products, triangles and norms."""

from __future__ import annotations

import math
from typing import Any

from limelight.core import shapes
from limelight.export.to_onnx.arrays import (
    INT64,
    arange,
    cast,
    concat,
    einsum,
    equal,
    expand,
    full,
    gather,
    like,
    matmul,
    move,
    pick,
    reduce,
    reshape,
    size,
    sizes,
    squeeze,
    stack,
    times,
    total,
    transpose,
    unary,
    unsqueeze,
    where,
)
from limelight.export.to_onnx.builder import Var
from limelight.export.to_onnx.lowerings.index import put
from limelight.export.to_onnx.lowerings.reduce import extreme
from limelight.export.to_onnx.registry import Site, lowers


@lowers("matmul")
def _matmul(site: Site, x: Var, y: Var) -> Var:
    return matmul(x, y)


@lowers("vecdot")
def _vecdot(site: Site, x: Var, y: Var, axis: int) -> Var:
    return total(x * y, axis)


@lowers("tensordot")
def _tensordot(site: Site, x: Var, y: Var, axes: Any) -> Var:
    over_x, over_y = ([a % z.ndim for a in part] for z, part in zip((x, y), axes, strict=True))
    free_x = [a for a in range(x.ndim) if a not in over_x]
    free_y = [a for a in range(y.ndim) if a not in over_y]
    x_sizes, y_sizes = sizes(x), sizes(y)
    left = _matrix(transpose(x, free_x + over_x), len(free_x))
    right = _matrix(transpose(y, over_y + free_y), len(over_y))
    return reshape(matmul(left, right), [x_sizes[a] for a in free_x] + [y_sizes[a] for a in free_y])


def _matrix(x: Var, n: int) -> Var:
    """The first n axes as rows, the others as columns."""
    whole = sizes(x)
    return reshape(x, [times(*whole[:n]), times(*whole[n:])])


@lowers("cross")
def _cross(site: Site, x: Var, y: Var, axis: int) -> Var:
    axis_x = axis if axis < 0 else axis - site.out.rank
    (a, b, c), (d, e, f) = ([pick(z, axis_x % z.ndim, i) for i in range(3)] for z in (x, y))
    return stack([b * f - c * e, c * d - a * f, a * e - b * d], axis_x % site.out.rank)


# --- einsum


def summed(equation: str, xs: list[Var], shape: Any = None) -> Var:
    """A sum of products, by multiplying and summing where the labels of an operand repeat or broadcast.

    Args:
        equation: terms and output, of single letters.
        xs: the operands.
        shape: the sizes of the result, where labels are in no operand or have size 1 there.

    Returns:
        The result.
    """
    left, output = equation.split("->")
    terms = left.split(",")
    xs = list(xs)
    for i, term in enumerate(terms):
        terms[i], xs[i] = _diagonal_of(term, xs[i])
    labels = list(dict.fromkeys("".join(terms)))
    targets = list(dict.fromkeys(output))
    wanted = dict(zip(output, shape, strict=True)) if shape is not None else {}
    fits = all(
        n is not None and n == _size_of(label, terms, xs) for t, x in zip(terms, xs, strict=True)
        for label, n in zip(t, x.shape, strict=True)
    )  # fmt: skip
    plain = fits and all(label in labels for label in targets) and xs[0].floating and len(xs) == 2
    if plain:
        result = einsum(f"{','.join(terms)}->{''.join(targets)}", *xs)
    else:
        result = _by_products(terms, xs, labels, targets)
    if shape is not None:
        for i, label in enumerate(targets):
            if wanted[label] == 1 and result.shape[i] != 1:
                result = total(result, (i,), True)
        result = expand(result, [wanted[label] for label in targets])
    if len(targets) == len(output):
        return result
    return _on_diagonal(result, targets, output, wanted)


def _size_of(label: str, terms: list[str], xs: list[Var]) -> int | None:
    known = [x.shape[t.index(label)] for t, x in zip(terms, xs, strict=True) if label in t]
    return None if None in known else max(known)  # type: ignore[type-var]  # no None is left


def _by_products(terms: list[str], xs: list[Var], labels: list[str], targets: list[str]) -> Var:
    """Operands aligned to all labels, multiplied and summed over those that the output has not."""
    order = [*targets, *[label for label in labels if label not in targets]]
    product: Any = None
    for term, x in zip(terms, xs, strict=True):
        aligned = transpose(x, [term.index(label) for label in order if label in term])
        aligned = unsqueeze(aligned, [i for i, label in enumerate(order) if label not in term])
        product = aligned if product is None else product * aligned
    return total(product, tuple(range(len(targets), len(order)))) if len(order) > len(targets) else product


def _diagonal_of(term: str, x: Var) -> tuple[str, Var]:
    """An operand whose repeated labels are taken along their diagonal."""
    for label in dict.fromkeys(term):
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            x = move(move(x, second, -1), first, -2)
            rest = "".join(c for i, c in enumerate(term) if i not in (first, second))
            x, term = diagonal(x, 0), rest + label
    return term, x


def _on_diagonal(x: Var, targets: list[str], output: str, wanted: dict[str, Any]) -> Var:
    """Zeros with `x` where the places of equal labels are equal."""
    x = unsqueeze(x, ())
    aligned = x
    labels = list(targets)
    for label in targets:
        for _ in range(output.count(label) - 1):
            aligned = unsqueeze(aligned, (aligned.ndim,))
            labels.append(label)
            n = wanted[label]
            b = x.builder
            eye = equal(unsqueeze(arange(b, n), (1,)), unsqueeze(arange(b, n), (0,)))
            place = labels.index(label)
            mask = reshape(eye, [n if i in (place, len(labels) - 1) else 1 for i in range(len(labels))])
            aligned = where(mask, aligned, like(x, 0))
    left = list(range(len(labels)))
    order = []
    for label in output:
        at = next(i for i in left if labels[i] == label)
        left.remove(at)
        order.append(at)
    return transpose(aligned, order)


@lowers("einsum_pair", "einsum_one")
def _einsum(site: Site, *arguments: Any) -> Var:
    return summed(arguments[-1], list(arguments[:-1]))


@lowers("einsum_pair_to", "einsum_one_to")
def _einsum_to(site: Site, *arguments: Any) -> Var:
    *xs, equation, shape = arguments
    return summed(equation, xs, list(shape))


@lowers("einsum_pair_to_dynamic", "einsum_one_to_dynamic")
def _einsum_dynamic(site: Site, *arguments: Any) -> Var:
    *xs, given, equation, _ = arguments
    shape = [pick(cast(given, INT64), 0, i) if n is None else n for i, n in enumerate(site.out.shape)]
    return summed(equation, xs, shape)


# --- diagonals and triangles


def diagonal(x: Var, offset: int) -> Var:
    """The diagonal of the last two axes."""
    b = x.builder
    rows, columns = size(x, -2), size(x, -1)
    up, right = max(0, -offset), max(0, offset)
    if isinstance(rows, int) and isinstance(columns, int):
        n: Any = max(0, min(rows - up, columns - right))
    else:
        n = reduce("Min", stack([_scalar(b, rows - up), _scalar(b, columns - right)]), (0,))
    places = arange(b, n)
    flat = reshape(x, [*sizes(x)[:-2], rows * columns])
    where_at = (places + up) * columns + places + right
    return gather(flat, where_at, x.ndim - 2)


def _scalar(b: Any, n: Any) -> Var:
    return n if isinstance(n, Var) else b.constant(n, INT64)


@lowers("diagonal")
def _diagonal(site: Site, x: Var, offset: int) -> Var:
    return diagonal(x, offset)


@lowers("from_diagonal", "from_diagonal_dynamic")
def _from_diagonal(site: Site, x: Var, *rest: Any) -> Var:
    b = site.builder
    if site.node.op.name == "from_diagonal":
        offset, shape = rest[0], list(rest[1])
    else:
        given, offset = rest[0], rest[1]
        shape = [pick(cast(given, INT64), 0, i) if n is None else n for i, n in enumerate(site.out.shape)]
    numbers = reshape(arange(b, times(*shape)), shape)
    zeros = full(b, [times(*shape)], 0, x.dtype)
    return reshape(put(zeros, diagonal(numbers, offset), x, "add"), shape)


@lowers("tril", "triu")
def _triangle(site: Site, x: Var, offset: int) -> Var:
    b = site.builder
    rows = unsqueeze(arange(b, size(x, -2)), (1,))
    columns = unsqueeze(arange(b, size(x, -1)), (0,))
    kept = (columns <= rows + offset) if site.node.op.name == "tril" else (columns >= rows + offset)
    return where(kept, x, like(x, 0))


@lowers("beside")
def _beside(site: Site, x: Var, y: Var) -> Var:
    return concat([x, y], -1)


@lowers("vector_norm")
def _vector_norm(site: Site, x: Var, axis: Any, keepdims: bool, order: float) -> Var:
    if order == 2:
        return unary("Sqrt", total(x * x, axis, keepdims))
    length = unary("Abs", x)
    if order == 1:
        return total(length, axis, keepdims)
    if order in (math.inf, -math.inf):
        return extreme(length, axis, keepdims, largest=order > 0)
    if order == 0:
        return total(cast(~equal(x, 0), x.dtype), axis, keepdims)
    most = extreme(length, axis, True, largest=order > 0)
    unit = where((most > 0) & (most < math.inf), most, like(most, 1))
    powers = site.builder.binary("Pow", length / unit, like(x, order))
    norms = site.builder.binary("Pow", total(powers, axis, True), like(x, 1 / order)) * unit
    return norms if keepdims else squeeze(norms, shapes.axes("vector_norm", x.ndim, axis))

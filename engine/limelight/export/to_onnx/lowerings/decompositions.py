"""Equations, determinants and decompositions, which ONNX does not have: written out column by column, in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from limelight.core.dtypes import float64
from limelight.export.to_onnx.arrays import (
    INT64,
    arange,
    arg,
    cast,
    concat,
    cut,
    equal,
    expand,
    gather,
    gather_elements,
    like,
    matmul,
    maximum,
    pick,
    reduce,
    reshape,
    shape_of,
    size,
    sizes,
    squeeze,
    swap,
    top_k,
    total,
    unary,
    unsqueeze,
    where,
    zeros_like,
)
from limelight.export.to_onnx.builder import Var
from limelight.export.to_onnx.registry import COMPLEX, Refused, Site, lowers, refuses
from limelight.ops.linalg.matrix_functions import _PADE, _RADIUS

_MOST: Final = 64
_MOST_MINORS: Final = 8
_SWEEPS: Final = 12


def _order(x: Var, most: int = _MOST) -> int:
    """The size of a square matrix. Raises Refused where it is not known, or too large to be written out."""
    n = x.shape[-1] if x.shape[-1] is not None else x.shape[-2]
    if n is None:
        raise Refused("the size of the matrix is not known; give it in the signature, only the batch as None")
    if n > most:
        raise Refused(f"it is written out column by column, for matrices of up to {most} columns, and this has {n}")
    return n


def _row(x: Var, k: int) -> Var:
    return cut(x, -2, k, k + 1)


def _column(x: Var, k: int) -> Var:
    return cut(x, -1, k, k + 1)


def _eliminated(x: Var, n: int) -> tuple[Var, list[Var], Any]:
    """Gauss and Jordan on the first n columns, with pivots by rows.

    Args:
        x: (..., n, n + k).
        n: the number of columns to eliminate.

    Returns:
        The other columns, the pivots (..., 1, 1), the sign of the permutation (..., 1, 1).
    """
    b = x.builder
    rows = arange(b, n)
    pivots, sign = [], None
    for k in range(n):
        below = squeeze(unary("Abs", cut(_column(x, k), -2, k, None)), (-1,))
        chosen = arg(below, -1, True, largest=True) + k  # (..., 1)
        order = where(equal(rows, k), chosen, where(equal(rows, chosen), b.constant(k, INT64), rows))
        x = gather_elements(x, expand(unsqueeze(order, (-1,)), shape_of(x)), -2)
        turn = unsqueeze(where(equal(chosen, k), like(x, 1.0), like(x, -1.0)), (-1,))
        sign = turn if sign is None else sign * turn
        pivot = _column(_row(x, k), k)
        pivots.append(pivot)
        scaled = _row(x, k) / where(equal(pivot, 0), like(x, 1.0), pivot)
        mine = reshape(equal(rows, k), (n, 1))
        x = where(mine, scaled, x - _column(x, k) * scaled)
    return cut(x, -1, n, None), pivots, sign


def solved(a: Var, b: Var) -> Var:
    """The x with a x = b, both matrices; infinite where `a` is singular."""
    n = _order(a)
    if n == 0:
        return b
    lead = shape_of(total(a, (-2, -1)) + total(b, (-2, -1)))
    rank = lead.shape[0] or 0
    if a.ndim > 2 or b.ndim > 2:
        front = [pick(lead, 0, i) for i in range(rank)]
        a = expand(a, [*front, *sizes(a)[-2:]])
        b = expand(b, [*front, *sizes(b)[-2:]])
    found, pivots, _ = _eliminated(concat([a, b], -1), n)
    smallest = pivots[0]
    for pivot in pivots[1:]:
        smallest = smallest * where(equal(pivot, 0), pivot, like(pivot, 1.0))
    return where(equal(smallest, 0) if n > 1 else equal(pivots[0], 0), like(b, math.nan), found)


def determinant(x: Var) -> tuple[Any, list[Var], Any]:
    n = _order(x)
    _, pivots, sign = _eliminated(concat([x, _column(x, 0)], -1), n)
    return sign, pivots, n


def det(x: Var) -> Var:
    """(..., n, n) to (...)."""
    if _order(x) == 0:
        return reduce("Prod", x, (-2, -1))
    sign, pivots, _ = determinant(x)
    for pivot in pivots:
        sign = sign * pivot
    return squeeze(sign, (-2, -1))


@lowers("solve")
def _solve(site: Site, a: Var, b: Var) -> Var:
    a, b = cast(a, float64), cast(b, float64)
    if b.ndim == 1:
        return squeeze(solved(a, unsqueeze(b, (-1,))), (-1,))
    return solved(a, b)


@lowers("inv")
def _inv(site: Site, x: Var) -> Var:
    return solved(cast(x, float64), site.builder.constant(np.eye(_order(x))))


@lowers("det")
def _det(site: Site, x: Var) -> Var:
    return det(cast(x, float64))


@lowers("slogdet")
def _slogdet(site: Site, x: Var) -> list[Var]:
    x = cast(x, float64)
    if _order(x) == 0:
        one = reduce("Prod", x, (-2, -1))
        return [one, unary("Log", one)]
    sign, pivots, _ = determinant(x)
    length = like(x, 0.0)
    for pivot in pivots:
        sign = sign * unary("Sign", pivot)
        length = length + unary("Log", unary("Abs", pivot))
    return [squeeze(sign, (-2, -1)), squeeze(length, (-2, -1))]


@lowers("triangular_solve")
def _triangular(site: Site, a: Var, b: Var, upper: bool, adjoint: bool, unit_diagonal: bool) -> Var:
    a, b = cast(a, float64), cast(b, float64)
    if adjoint:
        a, upper = swap(a, -1, -2), not upper
    n = _order(a)
    if b.ndim == 1:
        b = unsqueeze(b, (-1,))
    rows: dict[int, Var] = {}
    for k in range(n - 1, -1, -1) if upper else range(n):
        value = _row(b, k)
        rows[k] = value if unit_diagonal else value / _column(_row(a, k), k)
        b = b - _column(a, k) * rows[k]  # from all rows at once, of which the ones before are done
    if not rows:
        return b
    shape = shape_of(sum(rows.values(), start=like(b, 0.0)))
    return concat([expand(rows[k], shape) for k in range(n)], -2)


@lowers("cholesky")
def _cholesky(site: Site, x: Var, upper: bool) -> Var:
    x = cast(x, float64)
    n = _order(x)
    if n == 0:
        return x
    x = swap(x, -1, -2) if upper else x
    columns: list[Var] = []
    for k in range(n):
        column = _column(x, k) / unary("Sqrt", _column(_row(x, k), k))
        below = reshape(site.builder.constant(np.arange(n) >= k), (n, 1))
        columns.append(where(below, column, like(x, 0.0)))
        x = x - columns[-1] * swap(columns[-1], -1, -2)  # from all columns at once, of which the ones before are done
    factor = concat(columns, -1)
    return swap(factor, -1, -2) if upper else factor


@lowers("qr")
def _qr(site: Site, x: Var, mode: str) -> list[Var]:
    """Householder's reflections, with the signs that LAPACK gives them."""
    x = cast(x, float64)
    if None in x.shape[-2:]:
        raise Refused("the size of the matrix is not known; give it in the signature, only the batch as None")
    m, n = size(x, -2), _order(x)
    b = site.builder
    lead = sizes(x)[:-2]
    q = expand(b.constant(np.eye(m)), [*lead, m, m])
    for k in range(min(m - 1, n)):
        below = b.constant(np.arange(m).reshape(m, 1) >= k)
        column = where(below, _column(x, k), like(x, 0.0))
        length = unary("Sqrt", total(column * column, (-2,), True))
        head = _row(_column(x, k), k)
        tail = total(where(b.constant(np.arange(m).reshape(m, 1) > k), column * column, like(x, 0.0)), (-2,), True)
        first = where(head < 0, like(x, 1.0), like(x, -1.0)) * length
        unit = b.constant(np.eye(m)[:, k : k + 1])
        v = column - first * unit
        size_2 = total(v * v, (-2,), True)
        idle = equal(tail, 0)  # LAPACK leaves such a column as it is
        v = where(idle, like(x, 0.0), v)
        scale = like(x, 2.0) / where(idle | equal(size_2, 0), like(x, 1.0), size_2)
        x = x - scale * matmul(v, matmul(swap(v, -1, -2), x))
        q = q - scale * matmul(matmul(q, v), swap(v, -1, -2))
    inner = m if mode == "complete" else min(m, n)
    upper = b.constant(np.triu(np.ones((inner, n), bool)))
    return [cut(q, -1, 0, inner), where(upper, cut(x, -2, 0, inner), like(x, 0.0))]


# --- singular values, by Hestenes: rotations from the right until all columns are orthogonal


def _orthogonal(x: Var, n: int) -> tuple[Var, Var]:
    """(u s, v) with orthogonal columns u s = x v; as many sweeps as any matrix needs."""
    b = x.builder
    v = expand(b.constant(np.eye(n)), [*sizes(x)[:-2], n, n])
    counter, flag = Var(b, b.fresh("step"), INT64, ()), Var(b, b.fresh("on"), np.dtype(bool), ())
    inner = [Var(b, b.fresh("loop"), float64, x.shape), Var(b, b.fresh("loop"), float64, v.shape)]
    with b.inner() as nodes:
        columns = [[_column(y, k) for k in range(n)] for y in inner]
        for p in range(n):
            for q in range(p + 1, n):
                _rotate(columns, p, q)
        moved = [b.unary("Identity", concat(c, -1)) for c in columns]
        body = b.graph(nodes, [counter, flag, *inner], [b.unary("Identity", flag), *moved])
    names = b.emit("Loop", [b.constant(_SWEEPS, INT64), b.constant(True), x, v], 2, body=body)
    return Var(b, names[0], float64, x.shape), Var(b, names[1], float64, v.shape)


def _rotate(columns: list[list[Var]], p: int, q: int) -> None:
    """Makes two columns orthogonal."""
    x, y = columns[0][p], columns[0][q]
    alpha, beta, gamma = (total(s, (-2,), True) for s in (x * x, y * y, x * y))
    idle = equal(gamma, 0)
    zeta = (beta - alpha) / (where(idle, like(x, 1.0), gamma) * 2.0)
    root = unary("Abs", zeta) + unary("Sqrt", zeta * zeta + 1.0)
    t = where(zeta < 0, like(x, -1.0), like(x, 1.0)) / root
    t = where(idle, like(x, 0.0), t)
    c = like(x, 1.0) / unary("Sqrt", t * t + 1.0)
    s = c * t
    for parts in columns:
        parts[p], parts[q] = parts[p] * c - parts[q] * s, parts[p] * s + parts[q] * c


def _narrow(x: Var) -> tuple[Var, bool]:
    """`x` or its transpose, with at least as many rows as columns. Raises Refused."""
    if None in x.shape[-2:]:
        raise Refused("the size of the matrix is not known; give it in the signature, only the batch as None")
    wide = x.shape[-1] > x.shape[-2]  # type: ignore[operator]  # sizes are known here
    return (swap(x, -1, -2) if wide else x), wide


@lowers("svdvals")
def _svdvals(site: Site, x: Var) -> Var:
    x, _ = _narrow(cast(x, float64))
    n = _order(x, 24)
    if n == 0:
        return total(x, (-2,))
    scaled, _ = _orthogonal(x, n)
    values = unary("Sqrt", total(scaled * scaled, (-2,)))
    return top_k(values, n, values.ndim - 1)[0]


@lowers("eigvalsh")
def _eigvalsh(site: Site, x: Var) -> Var:
    """Singular values of the matrix moved up until none is negative; of the lower triangle, as LAPACK reads it."""
    x = cast(x, float64)
    n = _order(x, 24)
    if n == 0:
        return total(x, (-2,))
    b = site.builder
    lower = where(b.constant(np.tril(np.ones((n, n), bool))), x, like(x, 0.0))
    strict = where(b.constant(np.tril(np.ones((n, n), bool), -1)), x, like(x, 0.0))
    x = lower + swap(strict, -1, -2)
    shift = reduce("Max", total(unary("Abs", x), (-1,), True), (-2,), True)
    moved, _ = _orthogonal(x + shift * b.constant(np.eye(n)), n)
    values = unary("Sqrt", total(moved * moved, (-2,))) - squeeze(shift, (-1,))
    return top_k(values, n, values.ndim - 1, largest=False)[0]


@lowers("pinv")
def _pinv(site: Site, x: Var, rtol: Var, hermitian: bool) -> Var:
    narrow, wide = _narrow(cast(x, float64))
    n = _order(narrow, 24)
    if n == 0:
        return swap(x, -1, -2)
    us, v = _orthogonal(narrow, n)
    squares = total(us * us, (-2,), True)
    largest = reduce("Max", squares, (-1,), True)
    bound = unsqueeze(cast(rtol, float64), (-1, -2))
    kept = squares > bound * bound * largest
    inverse = where(kept, like(us, 1.0) / where(kept, squares, like(us, 1.0)), like(us, 0.0))
    result = matmul(v * inverse, swap(us, -1, -2))
    return swap(result, -1, -2) if wide else result


# --- cofactors, by minors


def _without(n: int) -> Any:
    """(n, n - 1, n): the i-th of these leaves out row i."""
    return np.stack([np.delete(np.eye(n), i, 0) for i in range(n)])


def cofactors(x: Var) -> Var:
    """(..., n, n) to the same shape, n at least 1."""
    n = _order(x, _MOST_MINORS)
    b = x.builder
    if n == 1:
        return zeros_like(x) + 1.0
    signs = b.constant((-1.0) ** np.add.outer(np.arange(n), np.arange(n)))
    return det(_minors(x, n)) * signs


def _minors(x: Var, n: int) -> Var:
    """(..., n, n, n - 1, n - 1): by row and by column that are left out."""
    b = x.builder
    others = b.constant(np.stack([np.delete(np.arange(n), i) for i in range(n)]))
    x = gather(x, others, x.ndim - 2)  # (..., i, n - 1, n)
    x = gather(x, others, x.ndim - 1)  # (..., i, n - 1, j, n - 1)
    return swap(x, -2, -3)


@lowers("cofactor")
def _cofactor(site: Site, x: Var) -> Var:
    return cofactors(cast(x, float64)) if _order(x) else x


@lowers("cofactor_slope")
def _cofactor_slope(site: Site, w: Var, x: Var) -> Var:
    """Each cofactor is a determinant, whose slope is made of the cofactors of its minor."""
    w, x = cast(w, float64), cast(x, float64)
    n = _order(x, _MOST_MINORS - 2)
    b = site.builder
    if n == 0:
        return w + x
    if n == 1:
        return (w + x) * 0.0
    inner = cofactors(_minors(x, n))  # (..., i, j, n - 1, n - 1)
    rows = b.constant(_without(n).swapaxes(-1, -2)[:, None])  # (i, 1, n, n - 1)
    columns = b.constant(_without(n)[None])  # (1, j, n - 1, n)
    spread = matmul(matmul(rows, inner), columns)
    weight = w * b.constant((-1.0) ** np.add.outer(np.arange(n), np.arange(n)))
    return total(unsqueeze(weight, (-1, -2)) * spread, (-4, -3))


# --- the matrix exponential


@lowers("expm")
def _expm(site: Site, x: Var) -> Var:
    x = cast(x, float64)
    n = _order(x, 24)
    if n == 0:
        return x
    b = site.builder
    length = reduce("Max", total(unary("Abs", x), (-2,), True), (-1,), True)
    ratio = maximum(length / _RADIUS, like(x, 1.0))
    halvings = unary("Ceil", unary("Log", ratio) * (1 / math.log(2)))
    result = _pade(x / b.binary("Pow", like(x, 2.0), halvings), n)
    most = reduce("Max", reshape(halvings, (-1,)), (0,))
    counter, flag = Var(b, b.fresh("step"), INT64, ()), Var(b, b.fresh("on"), np.dtype(bool), ())
    inner = Var(b, b.fresh("loop"), float64, result.shape)
    with b.inner() as nodes:
        squared = where(halvings > cast(counter, float64), matmul(inner, inner), inner)
        body = b.graph(
            nodes, [counter, flag, inner], [b.unary("Identity", flag), b.unary("Identity", squared)]
        )  # fmt: skip
    (name,) = b.emit("Loop", [cast(most, INT64), b.constant(True), result], body=body)
    return Var(b, name, float64, result.shape)


def _pade(x: Var, n: int) -> Var:
    unit = x.builder.constant(np.eye(n))
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    odd = matmul(x6, _sum([(13, x6), (11, x4), (9, x2)])) + _sum([(7, x6), (5, x4), (3, x2), (1, unit)])
    odd = matmul(x, odd)
    even = matmul(x6, _sum([(12, x6), (10, x4), (8, x2)])) + _sum([(6, x6), (4, x4), (2, x2), (0, unit)])
    return solved(even - odd, even + odd)


def _sum(terms: Sequence[tuple[int, Var]]) -> Var:
    parts = [x * _PADE[k] for k, x in terms]
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


_SIGNS = "its vectors are known up to signs, and those of LAPACK cannot be had in ONNX; "
refuses(_SIGNS + "for values alone write ll.linalg.svdvals", "svd")
refuses(_SIGNS + "for values alone write ll.linalg.eigvalsh", "eigh")
refuses(COMPLEX, "eig", "eigvals")

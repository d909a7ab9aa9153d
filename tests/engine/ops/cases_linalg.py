"""Cases of decompositions.

What is unique only up to phases and bases is compared, and differentiated, by what does not depend on them.
"""

from __future__ import annotations

import numpy as np
from opcase import Case, Input

import limelight as ll
from limelight import linalg
from limelight.core.op import accepted

WIDE = accepted("wide")
REAL = accepted("wide") & accepted("floating")


def case(op, call, reference, *inputs, **more):
    return Case(op, call, reference, inputs, **{"dtypes": WIDE, **more})


def h(x):
    return np.conj(np.swapaxes(x, -1, -2))


def th(x):
    return ll.conj(x).mT


def like(values, x):
    """A constant beside a tensor, or beside an array."""
    return values if isinstance(x, np.ndarray) else ll.constant(np.asarray(values, float)).astype(x.dtype)


def shifted(x, n=2):
    """Matrices made regular."""
    return x + like(4 * np.eye(n), x)


def hermitian(x):
    return (x + (h(x) if isinstance(x, np.ndarray) else th(x))) / 2


def definite(x, n=2):
    """A Hermitian matrix with eigenvalues above 2, from any n x n one."""
    return x @ (h(x) if isinstance(x, np.ndarray) else th(x)) + like(2 * np.eye(n), x)


def spread(x, rows=2, columns=2):
    """Adds 4, 7, 10, ... to the diagonal, which sets singular values apart."""
    return x + like(np.eye(rows, columns) * (3 * np.arange(columns) + 4), x)


def weighted(q, n):
    """Q diag(1, 2, ...) Qᴴ: what remains of a basis of n vectors when phases do not count."""
    return (q * like(np.arange(1, n + 1), q)) @ (h(q) if isinstance(q, np.ndarray) else th(q))


# --- decompositions


def after(prepare, function):
    return lambda x: function(prepare(x))


def svd_parts(svd, full_matrices, left, right):
    """S in the matrix's dtype, and U and V without phases. Of the last columns of full ones only the space counts."""

    def parts(x):
        u, s, vh = svd(x, full_matrices=full_matrices)
        v = h(vh) if isinstance(x, np.ndarray) else th(vh)
        return s.astype(x.dtype), with_space(u, left), with_space(v, right)

    def with_space(q, sizes):
        k, n = sizes
        return weighted(q[..., :k], k) + 5 * weighted_alike(q[..., k:]) if n > k else weighted(q, k)

    return parts


def weighted_alike(q):
    return q @ (h(q) if isinstance(q, np.ndarray) else th(q))


def eigh_parts(eigh, n):
    def parts(x):
        w, v = eigh(x)
        return w.astype(x.dtype), weighted(v, n)

    return parts


def eig_parts(eig):
    """Of eigenvalues and vectors what depends neither on their order nor on phases; real parts, to have the dtype."""

    def parts(x):
        w, v = eig(x)
        conj, real = (np.conj, np.real) if isinstance(x, np.ndarray) else (ll.conj, ll.real)
        return real((w * w * 1j).sum(-1) - w.sum(-1)), real((v * conj(v) * w[..., None, :] * w[..., None, :]).sum(-1))

    return parts


def eigval_sum(eigvals):
    def total(x):
        w = eigvals(x)
        real, imag = (np.real, np.imag) if isinstance(x, np.ndarray) else (ll.real, ll.imag)
        return (real(w) * real(w) * real(w) + imag(w) * imag(w)).sum(-1)

    return total


def qr_parts(qr, mode, k):
    def parts(x):
        q, r = qr(x, mode=mode)
        rest = weighted_alike(q[..., k:])
        return q[..., :k], r[..., :k, :], rest

    return parts


DECOMPOSITIONS = [
    *[
        case(
            "cholesky",
            lambda x, n=n, u=u: linalg.cholesky(definite(x, n), upper=u),
            lambda x, n=n, u=u: np.linalg.cholesky(definite(x, n), upper=u),
            Input((*lead, n, n)),
            note="upper" if u else "",
        )
        for lead, n, u in (((), 3, False), ((2,), 2, True), ((), 1, False), ((), 0, False), ((0,), 2, True))
    ],
    *[
        case(
            "qr",
            after(lambda x, m=m, n=n: spread(x, m, n), qr_parts(linalg.qr, mode, min(m, n))),
            after(lambda x, m=m, n=n: spread(x, m, n), qr_parts(np.linalg.qr, mode, min(m, n))),
            Input((*lead, m, n)),
            note=mode,
        )
        for lead, m, n, mode in (
            ((), 2, 2, "reduced"),
            ((2,), 3, 2, "reduced"),
            ((), 2, 3, "reduced"),
            ((), 4, 2, "complete"),
            ((), 2, 3, "complete"),
            ((), 0, 2, "reduced"),
            ((2,), 2, 0, "complete"),
        )
    ],
    case("qr", lambda x: linalg.qr(spread(x, 3, 2)).R, lambda x: np.linalg.qr(spread(x, 3, 2)).R, Input((3, 2))),
    *[
        case(
            "svd",
            after(lambda x, m=m, n=n: spread(x, m, n), svd_parts(linalg.svd, f, *sides)),
            after(lambda x, m=m, n=n: spread(x, m, n), svd_parts(np.linalg.svd, f, *sides)),
            Input((*lead, m, n)),
            note="full" if f else "",
        )
        for lead, m, n, f in (
            ((), 2, 2, True),
            ((2,), 3, 2, False),
            ((), 2, 3, False),
            ((), 4, 2, True),
            ((), 2, 3, True),
            ((), 0, 2, True),
            ((2,), 2, 0, False),
        )
        for k in (min(m, n),)
        for sides in ([((k, m), (k, n))] if f else [((k, k), (k, k))])
    ],
    case("svd", lambda x: linalg.svd(x).S.astype(x.dtype), lambda x: np.linalg.svd(x).S, Input((3, 2)), note="S"),
    *[
        case("svdvals", linalg.svdvals, lambda x: np.linalg.svd(x, compute_uv=False), Input(shape), out="real")
        for shape in ((3, 2), (2, 2, 3), (1, 1), (0, 2))
    ],
    *[
        case(
            "eigh",
            after(lambda x, n=n: spread(hermitian(x), n, n), eigh_parts(linalg.eigh, n)),
            after(lambda x, n=n: spread(hermitian(x), n, n), eigh_parts(np.linalg.eigh, n)),
            Input((*lead, n, n)),
        )
        for lead, n in (((), 3), ((2,), 2), ((), 1), ((), 0))
    ],
    *[
        case(
            "eigvalsh",
            lambda x: linalg.eigvalsh(hermitian(x)),
            lambda x: np.linalg.eigvalsh(hermitian(x)),
            Input(shape),
            out="real",
        )
        for shape in ((3, 3), (2, 2, 2), (0, 0))
    ],
    *[
        case(
            "eig",
            after(lambda x, n=n: spread(x, n, n), eig_parts(linalg.eig)),
            after(lambda x, n=n: spread(x, n, n), eig_parts(np.linalg.eig)),
            Input((*lead, n, n)),
            out="real",
        )
        for lead, n in (((), 3), ((2,), 2), ((), 1), ((), 0))
    ],
    case(
        "eig",
        lambda x: eig_parts(linalg.eig)(x * 0 + like([[1.0, 2.0], [-2.0, 1.0]], x) + x * x),
        lambda x: eig_parts(np.linalg.eig)(like([[1.0, 2.0], [-2.0, 1.0]], x) + x * x),
        Input((2, 2), "unit"),
        out="real",
        note="turning",
    ),
    *[
        case("eigvals", eigval_sum(linalg.eigvals), eigval_sum(np.linalg.eigvals), Input(shape), out="real")
        for shape in ((3, 3), (2, 2, 2), (0, 0))
    ],
]

CASES = DECOMPOSITIONS

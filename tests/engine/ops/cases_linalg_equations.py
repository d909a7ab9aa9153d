"""Cases of linear equations, determinants, norms, products of vectors, and functions of matrices."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from cases_linalg import REAL, WIDE, case, definite, h, hermitian, like, shifted
from opcase import Case, Input, raw

import limelight as ll
from limelight import linalg
from limelight.core.op import accepted

DOUBLE = frozenset([ll.float64, ll.complex128])

# --- equations and determinants


def triangular(a, b, upper, adjoint, unit):
    """By the general solver, from the triangle alone."""
    a = np.triu(a) if upper else np.tril(a)
    if unit:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    a = h(a) if adjoint else a
    return np.linalg.solve(a, b) if b.ndim != 1 else np.linalg.solve(a, b[:, None])[..., 0]


def of_rank(x, r=2):
    """A 3 x 3 matrix of rank r, from a 3 x r one."""
    return x @ like(np.arange(3 * r).reshape(r, 3) % 4 - 1, x)


def minors(x):
    """The cofactors of a 3 x 3 matrix by its 2 x 2 determinants."""
    found = np.empty_like(x)
    for i, j in np.ndindex(3, 3):
        found[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
    return found


MATRIX = np.array([[1.0, 2.0, 0.0], [-1.0, 0.5, 3.0], [2.0, 1.0, 1.0]])


def cofactor_slope(g):
    """The derivative of the cofactors of MATRIX, which is regular, by its inverse."""
    inverse, size = np.linalg.inv(MATRIX), np.linalg.det(MATRIX)
    along = np.trace(g @ inverse, axis1=-2, axis2=-1)[..., None, None]
    return size * (along * inverse.T - inverse.T @ g.swapaxes(-1, -2) @ inverse.T)


EQUATIONS = [
    case("cofactor_slope", lambda g: raw("cofactor_slope")(g, like(MATRIX, g)), cofactor_slope, Input((2, 3, 3))),
    *[
        case(
            "triangular_solve",
            lambda a, b, n=n, o=o: linalg.triangular_solve(
                shifted(a, n), b, upper=o[0], adjoint=o[1], unit_diagonal=o[2]
            ),
            lambda a, b, n=n, o=o: triangular(shifted(a, n), b, *o),
            Input((*lead, n, n)),
            Input(b),
            note=" ".join(w for w, on in zip(("upper", "adjoint", "unit"), o, strict=True) if on),
        )
        for lead, n, b, o in (
            ((), 3, (3, 2), (False, False, False)),
            ((2,), 2, (2,), (True, False, False)),
            ((2, 1), 2, (3, 2, 1), (False, True, False)),
            ((), 3, (2, 3, 1), (True, True, False)),
            ((), 2, (2, 2), (True, False, True)),
            ((), 2, (2, 2), (False, True, True)),
            ((), 0, (0, 2), (False, False, False)),
            ((), 2, (2, 0), (True, True, False)),
            ((2,), 9, (9, 1), (True, True, False)),
        )
    ],
    case("beside", raw("beside"), lambda x, y: np.concatenate([x, y], -1), Input((2, 3)), Input((2, 1)), dtypes=None),
    *[
        case(
            "solve",
            lambda a, b, n=n: linalg.solve(shifted(a, n), b),
            lambda a, b, n=n: np.linalg.solve(shifted(a, n), b),
            Input((*lead, n, n)),
            Input(b),
        )
        for lead, n, b in (
            ((), 3, (3, 2)),
            ((2,), 2, (2,)),
            ((2, 1), 2, (3, 2, 1)),
            ((), 2, (2, 2, 2)),
            ((), 0, (0, 2)),
            ((0,), 2, (2, 1)),
        )
    ],
    *[
        case(
            "inv",
            lambda x, n=s[-1]: linalg.inv(shifted(x, n)),
            lambda x, n=s[-1]: np.linalg.inv(shifted(x, n)),
            Input(s),
        )
        for s in ((3, 3), (2, 2, 2), (0, 0), (1, 1))
    ],
    case(
        "triangular_solve",
        lambda a, b: linalg.cholesky_solve(linalg.cholesky(definite(a), upper=True), b, upper=True),
        lambda a, b: np.linalg.solve(definite(a), b),
        Input((2, 2, 2)),
        Input((2,)),
        note="of a Cholesky factor",
    ),
    *[case("det", linalg.det, np.linalg.det, Input(shape)) for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 0))],
    *[
        case(
            "det",
            lambda x, r=r: linalg.det(of_rank(x, r)),
            lambda x, r=r: np.linalg.det(of_rank(x, r)),
            Input((3, r)),
            note=f"of rank {r}",
        )
        for r in (1, 2)
    ],
    case(
        "cofactor",
        raw("cofactor"),
        lambda x: np.linalg.det(x)[..., None, None] * h(np.linalg.inv(x)).conj(),
        Input((2, 3, 3)),
    ),
    case(
        "cofactor",
        lambda x: raw("cofactor")(of_rank(x)),
        lambda x: minors(of_rank(x)),
        Input((3, 2)),
        note="singular",
        smooth=False,
    ),
    *[
        case("slogdet", linalg.slogdet, np.linalg.slogdet, Input(shape), dtypes=REAL)
        for shape in ((3, 3), (2, 1, 1), (0, 0))
    ],
    case(
        "slogdet",
        lambda x: (linalg.slogdet(x)[0], linalg.slogdet(x)[1].astype(x.dtype)),
        np.linalg.slogdet,
        Input((2, 2, 2)),
        note="with its phase",
    ),
    case(
        "slogdet",
        lambda x: linalg.logdet(definite(x)),
        lambda x: np.log(np.linalg.det(definite(x))),
        Input((2, 2)),
        dtypes=REAL,
    ),
    *[
        case("pinv", lambda x, r=r: linalg.pinv(x, rtol=r), lambda x, r=r: np.linalg.pinv(x, rtol=r), Input(shape))
        for shape, r in (((3, 2), None), ((2, 2, 3), 1e-6), ((0, 2), None), ((2, 2), None))
    ],
    case(
        "pinv",
        lambda x: linalg.pinv(x @ x.mT, rtol=ll.constant(1e-4)),
        lambda x: np.linalg.pinv(x @ h(x).conj(), rtol=1e-4),
        Input((3, 1)),
        note="of rank 1",
    ),
    case(
        "pinv",
        lambda x: linalg.pinv(hermitian(x), hermitian=True),
        lambda x: np.linalg.pinv(hermitian(x)),
        Input((2, 2)),
        note="hermitian",
    ),
    case(
        "pinv",
        lambda a, b: linalg.lstsq(a, b)[:2][0],
        lambda a, b: np.linalg.lstsq(a, b)[0],
        Input((3, 2)),
        Input((3, 2)),
    ),
    case(
        "pinv",
        lambda a, b: linalg.lstsq(a, b).residuals.astype(a.dtype),
        lambda a, b: np.linalg.lstsq(a, b)[1],
        Input((3, 2)),
        Input((3, 2)),
        note="residuals",
    ),
]

# --- norms, products of vectors, functions of matrices


def norms(op, call, reference, shapes_and_options, **more):
    """Cases of one norm, which is real."""
    return [
        Case(
            op,
            lambda x, o=o: call(x, **o),
            lambda x, o=o: reference(x, **o),
            (Input(shape, "nonzero"),),
            note=" ".join(f"{k}={v}" for k, v in o.items()),
            **{"out": "real", "dtypes": accepted("inexact"), **more},
        )
        for shape, o in shapes_and_options
    ]


NORMS = [
    *norms(
        "vector_norm",
        linalg.vector_norm,
        np.linalg.vector_norm,
        [
            ((3,), {}),
            ((2, 3), {"axis": 0, "keepdims": True}),
            ((2, 3, 2), {"axis": (-1, 0), "ord": 1}),
            ((2, 3), {"axis": -1, "ord": 3}),
            ((3,), {"ord": -1.5}),
            ((3,), {"ord": 0.5}),
            ((), {}),
            ((2, 0), {"axis": 1}),
        ],
    ),
    *norms("max", linalg.vector_norm, np.linalg.vector_norm, [((2, 3), {"axis": 1, "ord": math.inf})]),
    *norms("min", linalg.vector_norm, np.linalg.vector_norm, [((2, 3), {"axis": 1, "ord": -math.inf})]),
    *norms("sum", linalg.vector_norm, np.linalg.vector_norm, [((2, 3), {"axis": 1, "ord": 0})], differentiable=False),
    *norms(
        "vector_norm", linalg.norm, np.linalg.norm, [((2, 3), {}), ((2, 3, 2), {"axis": (0, 2)}), ((3,), {"ord": 1})]
    ),
    *norms("vector_norm", linalg.matrix_norm, np.linalg.matrix_norm, [((2, 3, 2), {"keepdims": True})]),
    *norms(
        "svdvals",
        linalg.matrix_norm,
        np.linalg.matrix_norm,
        [((2, 3), {"ord": "nuc"}), ((2, 2, 3), {"ord": 2, "keepdims": True}), ((2, 2), {"ord": -2})],
        dtypes=WIDE,
    ),
    *norms(
        "max",
        linalg.matrix_norm,
        np.linalg.matrix_norm,
        [((2, 2, 3), {"ord": 1, "keepdims": True}), ((3, 2), {"ord": math.inf})],
        dtypes=WIDE,
    ),
    *norms(
        "min",
        linalg.matrix_norm,
        np.linalg.matrix_norm,
        [((2, 2, 3), {"ord": -1}), ((3, 2), {"ord": -math.inf, "keepdims": True})],
        dtypes=WIDE,
    ),
    *norms("svdvals", linalg.norm, np.linalg.norm, [((2, 3, 2), {"ord": 2, "axis": (2, 0)})], dtypes=WIDE),
]

VECTORS = [
    *[
        Case(
            "vecdot",
            lambda x, y, a=a: ll.vecdot(x, y, axis=a),
            lambda x, y, a=a: np.vecdot(np.moveaxis(x, a, -1), np.moveaxis(y, a, -1)),
            (Input(m), Input(n)),
            note=f"axis={a}",
        )
        for m, n, a in (((3,), (3,), -1), ((2, 3), (3,), -1), ((3, 2), (3, 1), 0), ((2, 0), (0,), -1))
    ],
    *[
        Case(
            "cross",
            lambda x, y, a=a: linalg.cross(x, y, axis=a),
            lambda x, y, a=a: np.cross(x, y, axis=a),
            (Input(m), Input(n)),
            note=f"axis={a}",
        )
        for m, n, a in (((3,), (3,), -1), ((2, 3), (1, 3), -1), ((3, 2), (3, 2), -2), ((0, 3), (3,), -1))
    ],
]

FUNCTIONS = [
    *[case("expm", linalg.expm, scipy.linalg.expm, Input(shape)) for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 0))],
    case(
        "expm", lambda x: linalg.expm(8 * x), lambda x: scipy.linalg.expm(8 * x), Input((2, 2), "unit"), dtypes=DOUBLE
    ),
    *[
        case(
            "matmul",
            lambda x, n=n: linalg.matrix_power(shifted(x), n),
            lambda x, n=n: np.linalg.matrix_power(shifted(x), n),
            Input((2, 2, 2)),
            note=f"power {n}",
        )
        for n in (3, 4, -2)
    ],
    case(
        "where",
        lambda x: linalg.matrix_power(x, 0),
        lambda x: np.linalg.matrix_power(x, 0),
        Input((2, 2, 2)),
        note="power 0",
        differentiable=False,
    ),
    case(
        "matmul",
        lambda a, b, c: linalg.multi_dot([a, b, c]),
        lambda a, b, c: np.linalg.multi_dot([a, b, c]),
        Input((2, 3)),
        Input((3, 2)),
        Input((2,)),
        note="of three",
    ),
]

CASES = [*EQUATIONS, *NORMS, *VECTORS, *FUNCTIONS]

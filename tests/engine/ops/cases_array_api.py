"""Cases of what the Python Array API adds: sorting, sets, searches, triangles, floats and further functions."""

from __future__ import annotations

import numpy as np
from opcase import Case, Input, binary, raw, unary

import limelight as ll
from limelight.core import dtypes
from limelight.core.op import accepted

FLOATING, REAL, NUMERIC = (accepted(word) for word in ("floating", "real", "numeric"))
B, I32, I64 = dtypes.bool_, dtypes.int32, dtypes.int64

FUNCTIONS = [
    *unary("asinh", ll.asinh, np.arcsinh),
    *unary("acosh", lambda x: ll.acosh(x + 1.0), lambda x: np.arccosh(x + 1), "positive"),
    *unary("atanh", ll.atanh, np.arctanh, "unit"),
    *unary("expm1_of_complex", ll.expm1, np.expm1),
    *unary("tanh_of_complex", ll.tanh, np.tanh, "unit"),
    *unary("log2", ll.log2, np.log2, "positive"),
    *unary("log10", ll.log10, np.log10, "positive"),
    *unary("signbit", ll.signbit, np.signbit, "special", out=B),
    *binary("logaddexp", ll.logaddexp, np.logaddexp, scalars=(0.5,)),
    *binary("hypot", ll.hypot, np.hypot, "positive", scalars=(0.5,)),
    *binary("copysign", ll.copysign, np.copysign, "nonzero"),
    *unary("copysign", lambda x: ll.copysign(x, -0.5), lambda x: np.copysign(x, -0.5), "nonzero", note="of -0.5"),
    *binary("nextafter", ll.nextafter, np.nextafter, "nonzero", smooth=False),
    *binary("isin", ll.isin, np.isin, out=B),
    *binary(
        "isin", lambda x, y: ll.isin(x, y, invert=True), lambda x, y: np.isin(x, y, invert=True), out=B, note="not"
    ),
]

TRIANGLES = [
    Case(
        name,
        lambda x, f=f, k=k: f(x, k=k),
        lambda x, g=g, k=k: g(x, k),
        (Input(shape),),
        note=f"k={k}",
    )
    for name, f, g in (("tril", ll.tril, np.tril), ("triu", ll.triu, np.triu))
    for shape, k in (((3, 3), 0), ((2, 3), 1), ((2, 3, 2), -1), ((0, 2), 0), ((1, 1), 0))
]


def _descending(x, axis):
    """Stable, by sorting the negated ranks of the values."""
    _, ranks = np.unique(x, return_inverse=True)
    return np.argsort(-ranks.reshape(x.shape), axis=axis, stable=True)


SORTS = [
    case
    for shape, axis in (((4,), -1), ((2, 3), 0), ((2, 3), -1), ((0, 2), 1), ((1,), 0))
    for case in (
        Case(
            "argsort",
            lambda x, a=axis: ll.argsort(x, axis=a),
            lambda x, a=axis: np.argsort(x, axis=a, stable=True),
            (Input(shape, "zeros"),),
            note=f"axis={axis}",
            out=I64,
        ),
        Case(
            "argsort",
            lambda x, a=axis: ll.argsort(x, axis=a, descending=True),
            lambda x, a=axis: _descending(x, a),
            (Input(shape, "zeros"),),
            note=f"descending axis={axis}",
            out=I64,
        ),
        Case(
            "sort",
            lambda x, a=axis: ll.sort(x, axis=a),
            lambda x, a=axis: np.sort(x, axis=a),
            (Input(shape, "distinct"),),
            note=f"axis={axis}",
        ),
        Case(
            "sort",
            lambda x, a=axis: ll.sort(x, axis=a, descending=True),
            lambda x, a=axis: np.flip(np.sort(x, axis=a), a),
            (Input(shape, "distinct"),),
            note=f"descending axis={axis}",
        ),
    )
] + [
    Case(
        "sort",
        lambda x: ll.sort(x) * ll.arange(4).astype(x.dtype),
        lambda x: np.sort(x) * np.arange(4),
        (Input((2, 4), "distinct"),),
        note="weighed",
    ),
    Case("reorder", raw("reorder", 0), lambda x, i: x[i], (Input((4,)), Input((4,), "distinct", I32))),
]

SEARCHES = [
    Case(
        "searchsorted",
        lambda x, v, side=side: ll.searchsorted(ll.sort(x), v, side=side),
        lambda x, v, side=side: np.searchsorted(np.sort(x), v, side=side),
        (Input((4,)), Input(shape)),
        note=side,
        out=I64,
    )
    for shape in ((3,), (2, 2), (), (0,))
    for side in ("left", "right")
] + [
    Case(
        "searchsorted",
        lambda x, v: ll.searchsorted(x, v, sorter=ll.argsort(x)),
        lambda x, v: np.searchsorted(np.sort(x), v),
        (Input((4,)), Input((3,))),
        note="with a sorter",
        out=I64,
    )
]


def _distinct(x):
    return np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)[1:]


SETS = [
    Case(
        "bincount",
        lambda x: ll.bincount(x, 5),
        lambda x: np.bincount(x, minlength=5),
        (Input((6,), "class", I32, 4),),
        out=I64,
    ),
    Case(
        "histogram",
        lambda x: ll.histogram(x, 3, (-1.0, 1.0))[0],
        lambda x: np.histogram(x, 3, (-1.0, 1.0))[0],
        (Input((2, 5)),),
        out=I64,
    ),
    Case("distinct", lambda x: tuple(ll.unique_all(x)[1:]), _distinct, (Input((20,), "special"),), out=I64, note="NaN"),
    *unary("distinct", lambda x: tuple(ll.unique_all(x)[1:]), _distinct, out=I64),
    *unary("distinct", ll.unique_values, np.unique, "distinct", differentiable=True, note="values", dtypes=REAL),
    *unary("distinct", lambda x: ll.unique_counts(x).counts, lambda x: _distinct(x)[2], out=I64, note="counts"),
    *unary("distinct", lambda x: ll.unique_inverse(x)[1], lambda x: _distinct(x)[1], out=I64, note="inverse"),
]


def _scattered(shape, axis):
    def reference(x, i):
        out = np.zeros(shape, x.dtype)
        places = list(np.indices(np.broadcast_shapes(x.shape, i.shape), sparse=True))
        places[axis] = i
        np.add.at(out, tuple(places), x)
        return out

    return reference


ALONG = [
    Case(
        "take_along_axis",
        lambda x, i, a=axis: ll.take_along_axis(x, i, axis=a),
        lambda x, i, a=axis: np.take_along_axis(x, i, a),
        (Input(shape), Input(indices, "index", dtype, shape[axis])),
        note=f"axis={axis}",
    )
    for shape, indices, axis, dtype in (
        ((3,), (4,), 0, I64),
        ((2, 3), (2, 5), -1, I32),
        ((2, 3), (4, 3), 0, I64),
        ((2, 3), (1, 2), 1, I64),
        ((1, 3), (2, 2), 1, I64),
        ((2, 3), (2, 0), 1, I64),
    )
] + [
    Case(
        "scatter_along_axis",
        raw("scatter_along_axis", 1, (2, 3)),
        _scattered((2, 3), 1),
        (Input((2, 4), "positive"), Input((2, 4), "index", I64, 3)),
        dtypes=NUMERIC,
    ),
    Case(
        "scatter_along_axis_dynamic",
        lambda x, i: raw("scatter_along_axis_dynamic", 0, 1)(x, i, ll.constant(np.array([3]))),
        _scattered((3,), 0),
        (Input((4,), "positive"), Input((4,), "index", I64, 3)),
        dtypes=NUMERIC,
    ),
]

SHAPES = (
    [
        Case(
            "broadcast_sizes",
            lambda x, y: tuple(ll.broadcast_arrays(x, y)),
            lambda x, y: tuple(np.broadcast_arrays(x, y)),
            (Input(a), Input(b)),
            dtypes=accepted("any"),
            differentiable=True,
        )
        for a, b in (((3,), (2, 1)), ((), (2,)), ((0, 1), (3,)))
    ]
    + [
        Case(
            "broadcast_sizes",
            lambda x, y, indexing=indexing: tuple(ll.meshgrid(x, y, indexing=indexing)),
            lambda x, y, indexing=indexing: tuple(np.meshgrid(x, y, indexing=indexing)),
            (Input((3,)), Input((2,))),
            note=indexing,
            dtypes=NUMERIC,
            differentiable=True,
        )
        for indexing in ("xy", "ij")
    ]
    + [
        Case(
            "repeat_places",
            raw("repeat_places"),
            lambda r: np.repeat(np.arange(3), r.astype(int)),
            (Input((3,), "positive"),),
            out=I64,
            dtypes=accepted("integer"),
        ),
        *[
            Case(
                "repeat_places",
                lambda x, r, a=axis: ll.repeat(x, r, axis=a),
                lambda x, r, a=axis: np.repeat(x, r, a),
                (Input((2, 3)), Input(counts, "class", I64, 3)),
                note=f"axis={axis}",
                dtypes=NUMERIC,
                differentiable=True,
            )
            for counts, axis in (((3,), 1), ((2,), 0), ((6,), None), ((1,), 0), ((), 1))
        ],
    ]
)


def _running_sum(x, axis, include_initial):
    shape = list(x.shape)
    shape[axis] = int(include_initial)
    return np.concatenate([np.zeros(shape, x.dtype), np.cumsum(x, axis)], axis)


SUMS = (
    [
        Case(
            "cumsum",
            lambda x, a=axis, i=initial: ll.cumulative_sum(x, axis=a, include_initial=i),
            lambda x, a=axis, i=initial: _running_sum(x, a or 0, i),
            (Input(shape),),
            note=f"cumulative, axis={axis}",
            out="total",
        )
        for shape, axis, initial in (((3,), None, False), ((2, 3), 0, True), ((2, 3), -1, True), ((0,), 0, True))
    ]
    + [
        Case(
            "subtract",
            lambda x, a=axis, n=n: ll.diff(x, axis=a, n=n),
            lambda x, a=axis, n=n: np.diff(x, n, a),
            (Input(shape, "distinct"),),
            note=f"diff, n={n}",
            dtypes=frozenset([dtypes.int64, *accepted("inexact")]),
        )
        for shape, axis, n in (((4,), -1, 1), ((3, 2), 0, 2), ((2,), 0, 3), ((3,), 0, 0))
    ]
    + [
        Case(
            "count_nonzero",
            lambda x, a=axis, k=keepdims: ll.count_nonzero(x, axis=a, keepdims=k),
            lambda x, a=axis, k=keepdims: np.count_nonzero(x, axis=a, keepdims=k),
            (Input((3, 2), "zeros"),),
            note=f"axis={axis}",
            out=I64,
        )
        for axis, keepdims in ((0, False), (None, False), ((0, 1), True), (-1, False))
    ]
    + [
        Case(
            "sum",
            lambda x: ll.sum(x, dtype="float64", axis=0),
            lambda x: np.sum(x, axis=0),
            (Input((3, 2), "positive"),),
            note="in float64",
            out=dtypes.float64,
            dtypes=REAL - FLOATING | {dtypes.float64},
        ),
    ]
)

CASES = [*FUNCTIONS, *TRIANGLES, *SORTS, *SEARCHES, *SETS, *ALONG, *SHAPES, *SUMS]

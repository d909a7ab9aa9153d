"""Cases of reductions, statistics and searches."""

from __future__ import annotations

import numpy as np
from opcase import Case, Input, raw

import limelight as ll
from limelight.core import dtypes

AXES = (
    ((2, 3), None, False),
    ((2, 3), 0, False),
    ((2, 3), -1, True),
    ((2, 3, 2), (0, -1), False),
    ((2, 3, 2), (2, 0), True),
    ((2, 1), 1, False),
    ((), None, False),
    ((3,), (), False),
    ((2, 3), None, True),
)
EMPTY = (((0, 3), 0, False), ((2, 0), 1, True), ((0,), None, False))


def _reduce(op, call, reference, values="any", empty=True, **more):
    """The cases of a reduction, over axes of all sorts."""
    found = []
    for shape, axis, keepdims in AXES + (EMPTY if empty else ()):

        def run(x, axis=axis, keepdims=keepdims):
            return call(x, axis=axis, keepdims=keepdims)

        def wanted(x, axis=axis, keepdims=keepdims):
            return reference(x, axis=axis, keepdims=keepdims)

        note = f"axis={axis}{' keepdims' if keepdims else ''}"
        found.append(Case(op, run, wanted, (Input(shape, values),), note=note, **more))
    return found


def _logsumexp(x, axis, keepdims):
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


_INDEX_AXES = (((2, 3), None, False), ((2, 3), 0, False), ((2, 3), -1, True), ((4,), 0, False), ((), None, False))
INDICES = [
    Case(
        name,
        lambda x, f=f, axis=axis, keepdims=keepdims: f(x, axis=axis, keepdims=keepdims),
        lambda x, g=g, axis=axis, keepdims=keepdims: g(x, axis=axis, keepdims=keepdims),
        (Input(shape, "distinct"),),
        note=f"axis={axis}",
        out=dtypes.int64,
    )
    for name, f, g in (("argmax", ll.argmax, np.argmax), ("argmin", ll.argmin, np.argmin))
    for shape, axis, keepdims in _INDEX_AXES
]


def _sample_var(x, axis, keepdims):
    with np.errstate(all="ignore"):
        n = x.size if axis is None else int(np.prod([x.shape[a] for a in np.atleast_1d(axis)]))
        apart = x - np.sum(x, axis=axis, keepdims=True) / n
        return np.asarray(np.sum((apart * np.conj(apart)).real, axis=axis, keepdims=keepdims)) / max(n - 1, 0)


_SPREAD = [axes for axes in AXES if axes[0] not in ((), (2, 1)) and axes[1] != ()]
VARIANCE = [
    Case(
        "var",
        lambda x, a=axis, k=keepdims: ll.var(x, axis=a, keepdims=k),
        lambda x, a=axis, k=keepdims: np.var(x, axis=a, keepdims=k),
        (Input(shape),),
        note=f"axis={axis}",
        out="real",
    )
    for shape, axis, keepdims in AXES
] + [
    Case(
        "var",
        lambda x, a=axis, k=keepdims: ll.std(x, axis=a, keepdims=k, correction=1),
        lambda x, a=axis, k=keepdims: np.sqrt(_sample_var(x, a, k)),
        (Input(shape),),
        note=f"of a sample, its root, axis={axis}",
        out="real",
    )
    for shape, axis, keepdims in _SPREAD
]


def _shares(x, axis):
    e = np.exp(x)
    return e / np.sum(e, axis=axis, keepdims=True)


SHARES = [
    Case("logsumexp_shares", raw("logsumexp_shares", axis), lambda x, axis=axis: _shares(x, axis), (Input(shape),))
    for shape, axis in (((3,), (0,)), ((2, 3), (1,)), ((2, 3, 2), (0, 2)), ((2, 3), (0, 1)), ((0, 3), (1,)), ((), ()))
]

PARTS = [
    Case("quantile_parts", raw("quantile_parts", "quantile", 4), lambda q: q / 4, (Input(shape, "positive"),))
    for shape in ((3,), (0,))
]

CASES = [
    *SHARES,
    *PARTS,
    *_reduce("sum", ll.sum, np.sum, out="total"),
    *_reduce("prod", ll.prod, np.prod, "positive", out="total"),
    *_reduce("prod", ll.prod, np.prod, "zeros", out="total"),
    *_reduce("mean", ll.mean, np.mean, empty=False),
    *_reduce("max", ll.max, np.max, "distinct", empty=False, smooth=False),
    *_reduce("min", ll.min, np.min, "distinct", empty=False, smooth=False),
    *_reduce("any", ll.any, np.any, out=dtypes.bool_),
    *_reduce("all", ll.all, np.all, out=dtypes.bool_),
    *_reduce("logsumexp", ll.logsumexp, _logsumexp),
    *VARIANCE,
    *INDICES,
]

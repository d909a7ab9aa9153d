"""Cases of updates at an index, of segments, and of elements put at places of their own."""

from __future__ import annotations

import numpy as np
from opcase import Case, Input, raw

import limelight as ll
from limelight.core import dtypes
from limelight.core.op import accepted

I64 = dtypes.int64
NUMERIC = accepted("numeric")


def _integers(values):
    return ll.constant(np.array(values, np.int64))


UFUNCS = {"multiply": np.multiply, "add": np.add, "min": np.minimum, "max": np.maximum}


def _reference(how, index):
    """The same by NumPy, on a copy."""

    def reference(x, updates):
        x = np.array(x)
        if how == "set":
            x[index] = updates
        else:
            UFUNCS[how].at(x, index, updates)
        return x

    return reference


PARTS = {
    "row": ((3, 2), 1, (2,)),
    "slices": ((3, 4), (slice(None, None, 2), slice(1, -1)), (2, 1)),
    "everything": ((2, 2), (Ellipsis, None), ()),
    "repeated": ((3,), [1, -2, 1, 0], (4,)),
    "rows repeated": ((3, 2), [2, 0, 2], (3, 2)),
    "two arrays": ((2, 3, 1), ([1, 0, 1], slice(None), [0, 0, 0]), (3, 3)),
    "nothing": ((0, 2), slice(None), (2,)),
    "no rows": ((2, 2), [], (0, 2)),
}


def _index(index):
    """As NumPy takes it: an empty list would be floating."""
    return np.zeros(0, np.int64) if index == [] else index


def _updates(how, accepts, values):
    name = {"set": "index_update"}.get(how, f"index_{how}")
    return [
        Case(
            name,
            lambda x, u, i=index: getattr(x.at[i], how)(u),
            _reference(how, _index(index)),
            (Input(shape, values), Input(update, values)),
            note=note,
            dtypes=accepts,
        )
        for note, (shape, index, update) in PARTS.items()
    ]


def _extremes(how):
    """On numbers that are all different, so that no gradient is shared: updates are the end of one vector."""
    found = []
    for note in ("slices", "repeated", "rows repeated", "two arrays", "nothing"):
        shape, index, update = PARTS[note]
        n, m = int(np.prod(shape)), int(np.prod(update))

        def call(z, n=n, shape=shape, index=index, update=update):
            return getattr(z[:n].reshape(shape).at[index], how)(z[n:].reshape(update))

        def reference(z, n=n, shape=shape, index=index, update=update):
            return _reference(how, index)(z[:n].reshape(shape), z[n:].reshape(update))

        found.append(Case(f"index_{how}", call, reference, (Input((n + m,), "distinct"),), note=note))
    return found


def _with_ids(ids, reduce, neutral, num):
    """A segment reduction, one segment after another."""
    ids = np.asarray(ids)

    def reference(data):
        rows = data.reshape(-1, *data.shape[ids.ndim :])
        parts = [rows[ids.reshape(-1) == i] for i in range(num)]
        found = [reduce(p, axis=0) if len(p) else np.full(rows.shape[1:], neutral, data.dtype) for p in parts]
        return np.array(found, data.dtype).reshape(num, *rows.shape[1:])

    return reference


FULL = (([1, 0, 1, 2], (4,), 3), ([1, 0, 1], (3, 2), 2), ([[0, 1], [1, 1]], (2, 2, 1), 2))
SPARSE = (([1, 0, 1, 3], (4,), 4), ([], (0, 2), 1))


def _segments(name, call, reduce, values="any", neutral=None):
    """Reductions; with empty segments too where these have a finite result."""
    return [
        Case(
            name,
            lambda x, ids=ids, num=num: call(x, _integers(ids), num),
            _with_ids(ids, reduce, neutral, num),
            (Input(shape, values),),
        )
        for ids, shape, num in (FULL if neutral is None else FULL + SPARSE)
    ]


def _scatter(indices, shape):
    def reference(updates):
        out = np.zeros(shape, updates.dtype)
        np.add.at(out, tuple(np.moveaxis(np.array(indices), -1, 0)), updates)
        return out

    return reference


def _put(indices, axis):
    def reference(x, values):
        x = np.array(x)
        np.put_along_axis(x, np.array(indices), values, axis)
        return x

    return reference


ROWS = [[0, 1], [1, -1], [0, 1]]
FLOATS = frozenset([dtypes.float32, dtypes.float64])

CASES = [
    *_updates("set", None, "any"),
    *_updates("add", NUMERIC, "any"),
    *_updates("multiply", NUMERIC, "zeros"),
    *_extremes("min"),
    *_extremes("max"),
    Case(
        "index_update",
        lambda x, u: ll.index_update(x, x > 0, u),
        lambda x, u: np.where(x > 0, u, x),
        (Input((2, 3), "distinct"), Input(())),
        note="mask",
        dtypes=FLOATS,
    ),
    Case(
        "element_place",
        lambda i: raw("element_place")(i, ll.astype(ll.constant(3), i.dtype)),
        lambda i: i,
        (Input((2, 3), "class", high=3),),
        dtypes=accepted("integer"),
    ),
    Case(
        "index_wins",
        lambda x: raw("index_wins", ("i",))(x, _integers([1, 0, 1])),
        lambda x: np.array([False, True, True]),
        (Input((2,)),),
        out=dtypes.bool_,
    ),
    Case(
        "index_places",
        lambda x: raw("index_places", (1, "i"))(x, _integers([1, 0, -1])),
        lambda x: np.array([4, 3, 5]),
        (Input((2, 3)),),
        out=I64,
    ),
    *_segments("segment_sum", ll.segment_sum, np.sum, neutral=0),
    *_segments("segment_prod", ll.segment_prod, np.prod, "zeros", neutral=1),
    *_segments("segment_max", ll.segment_max, np.max, "distinct"),
    *_segments("segment_min", ll.segment_min, np.min, "distinct"),
    Case(
        "segment_sum",
        lambda x: ll.segment_mean(x, _integers([1, 0, 1]), 3),
        lambda x: np.array([x[1], (x[0] + x[2]) / 2, 0 * x[0]]),
        (Input((3, 2)),),
        note="mean",
        dtypes=accepted("inexact"),
    ),
    Case(
        "segment_sum",
        lambda x: ll.segment_sum(x, _integers([1, 0, 1])),
        lambda x: np.array([x[1], x[0] + x[2]]),
        (Input((3,)),),
        note="as many as there are",
    ),
    Case(
        "segment_count",
        raw("segment_count", 4),
        lambda ids: np.maximum(np.bincount(ids.astype(int), minlength=4), 1),
        (Input((5,), "class", high=3),),
        out=I64,
    ),
    Case(
        "segment_neighbour",
        raw("segment_neighbour", -1),
        lambda ids: np.array([max([j for j in range(i) if ids[j] == ids[i]], default=-1) for i in range(len(ids))]),
        (Input((6,), "class", high=3),),
        out=I64,
    ),
    Case(
        "segment_places",
        lambda x: raw("segment_places")(x, _integers([[1, 0]])),
        lambda x: np.array([3, 4, 5, 0, 1, 2]),
        (Input((1, 2, 3)),),
        out=I64,
    ),
    Case("gather_nd", lambda x: ll.gather_nd(x, _integers(ROWS)), lambda x: x[[0, 1, 0], [1, -1, 1]], (Input((2, 3)),)),
    Case("gather_nd", lambda x: ll.gather_nd(x, _integers([[[1]]])), lambda x: x[[[1]]], (Input((2, 3)),)),
    *[
        Case(
            f"scatter{'_dynamic' * dynamic}",
            lambda u, i=i, shape=shape, dynamic=dynamic: ll.scatter(
                _integers(i), u, _integers(shape) if dynamic else shape
            ),
            _scatter(i, shape),
            (Input(updates),),
        )
        for i, updates, shape in ((ROWS, (3,), (2, 3)), ([[2], [0]], (2, 2), (3, 2)))
        for dynamic in (False, True)
    ],
    *[
        Case(
            "put_along_axis",
            lambda x, v, i=i, axis=axis: ll.put_along_axis(x, _integers(i), v, axis=axis),
            _put(i, axis),
            (Input(shape), Input(values)),
            note=f"{axis}",
        )
        for i, axis, shape, values in (
            ([[1, 0, 1], [0, 0, 2]], -1, (2, 3), (2, 3)),
            ([[1, 0, 1]], 0, (2, 3), ()),
        )
    ],
    Case(
        "put_wins",
        lambda x: raw("put_wins", 1)(x, _integers([[1, 0, 1], [0, 0, 2]])),
        lambda x: np.array([[False, True, True], [False, True, True]]),
        (Input((2, 3)),),
        out=dtypes.bool_,
    ),
]

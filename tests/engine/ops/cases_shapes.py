"""Cases of ops that move elements: shapes, joining, repeating, indexing."""

from __future__ import annotations

import numpy as np
from opcase import Case, Input, raw

import limelight as ll
from limelight.core import dtypes
from limelight.core.op import accepted

I64 = dtypes.int64
NUMERIC = accepted("numeric")


def vector(*sizes):
    """A shape as a tensor, which is how a trace with unknown sizes gives it."""
    return ll.constant(np.array(sizes, np.int64))


def _pair(op, call, reference, shape, *wanted, **more):
    """An op that takes a shape, given as a tuple and as a vector."""
    return [
        Case(op, lambda x: call(x, wanted), lambda x: reference(x, wanted), (Input(shape),), **more),
        Case(
            f"{op}_dynamic", lambda x: call(x, vector(*wanted)), lambda x: reference(x, wanted), (Input(shape),), **more
        ),
    ]


def _sum_to(x, shape):
    lead = x.ndim - len(shape)
    over = tuple(i for i in range(x.ndim) if i < lead or (shape[i - lead] == 1 and x.shape[i] != 1))
    return np.sum(x, axis=over, dtype=x.dtype).reshape(shape)


SHAPING = [
    Case("shape_of", ll.shape_of, lambda x: np.array(x.shape), (Input((2, 3)),), out=I64, dtypes=accepted("any")),
    Case("ensure_shape", raw("ensure_shape", (None, 3)), lambda x: x, (Input((2, 3)),)),
    *_pair("reshape", ll.reshape, np.reshape, (2, 3), 3, 2),
    *_pair("reshape", ll.reshape, np.reshape, (2, 3), 6),
    *_pair("reshape", ll.reshape, np.reshape, (0, 3), 3, 0),
    *_pair("reshape", ll.reshape, np.reshape, (1, 1)),
    *_pair("reshape", ll.reshape, np.reshape, (), 1, 1),
    Case("reshape", lambda x: x.reshape((-1, 2)), lambda x: x.reshape((-1, 2)), (Input((2, 3)),), note="-1"),
    *_pair("broadcast_to", ll.broadcast_to, np.broadcast_to, (3,), 2, 3),
    *_pair("broadcast_to", ll.broadcast_to, np.broadcast_to, (2, 1), 2, 3),
    *_pair("broadcast_to", ll.broadcast_to, np.broadcast_to, (), 2, 2),
    *_pair("broadcast_to", ll.broadcast_to, np.broadcast_to, (1, 3), 0, 3),
    *_pair("sum_to", ll.sum_to, _sum_to, (2, 3), 3),
    *_pair("sum_to", ll.sum_to, _sum_to, (2, 3), 2, 1),
    *_pair("sum_to", ll.sum_to, _sum_to, (2, 3)),
    *_pair("sum_to", ll.sum_to, _sum_to, (0, 3), 1, 3),
    *[
        Case(
            "expand_dims",
            lambda x, a=a: ll.expand_dims(x, axis=a),
            lambda x, a=a: np.expand_dims(x, a),
            (Input((2, 3)),),
            note=f"{a}",
        )
        for a in (0, -1, 1, (0, -1), (1, 3))
    ],
    *[
        Case(
            "squeeze",
            lambda x, a=a: ll.squeeze(x, axis=a),
            lambda x, a=a: np.squeeze(x, a),
            (Input((1, 2, 1)),),
            note=f"{a}",
        )
        for a in (0, -1, (0, 2), ())
    ],
    *[
        Case(
            "transpose",
            lambda x, a=a: ll.transpose(x, a),
            lambda x, a=a: np.transpose(x, a),
            (Input((2, 3, 4)),),
            note=f"{a}",
        )
        for a in (None, (1, 2, 0), (0, -1, 1))
    ],
    Case("transpose", ll.transpose, np.transpose, (Input(()),)),
    Case(
        "transpose",
        lambda x: ll.moveaxis(x, (0, 1), (-1, 0)),
        lambda x: np.moveaxis(x, (0, 1), (-1, 0)),
        (Input((2, 3, 4)),),
        note="moveaxis",
    ),
    Case(
        "transpose",
        lambda x: ll.swapaxes(x, 0, -1),
        lambda x: np.swapaxes(x, 0, -1),
        (Input((2, 3, 4)),),
        note="swapaxes",
    ),
    Case("matrix_transpose", lambda x: x.T, lambda x: x.T, (Input((2, 3)),)),
    Case("matrix_transpose", lambda x: x.mT, lambda x: np.swapaxes(x, -1, -2), (Input((4, 2, 3)),)),
]


def _concat(axis):
    return (lambda *xs: ll.concat(xs, axis=axis)), (lambda *xs: np.concatenate(xs, axis=axis))


def _stack(axis):
    return (lambda *xs: ll.stack(xs, axis=axis)), (lambda *xs: np.stack(xs, axis=axis))


def _pieces(x, parts, axis):
    edges = parts if isinstance(parts, int) else np.cumsum(parts)[:-1]
    return tuple(np.split(x, edges, axis))


JOINING = [
    Case("concat", *_concat(0), (Input((2, 3)), Input((1, 3)), Input((0, 3)))),
    Case("concat", *_concat(-1), (Input((2, 1)), Input((2, 2)))),
    Case("concat", *_concat(None), (Input((2, 1)), Input((3,)))),
    Case("concat", lambda x: ll.concat([x, x]), lambda x: np.concatenate([x, x]), (Input((2,)),), note="with itself"),
    Case("stack", *_stack(0), (Input((2, 3)), Input((2, 3)))),
    Case("stack", *_stack(-1), (Input((2,)), Input((2,)), Input((2,)))),
    Case("stack", *_stack(0), (Input(()), Input(()))),
    Case(
        "unstack",
        lambda x: ll.unstack(x, axis=1),
        lambda x: tuple(np.moveaxis(x, 1, 0)),
        (Input((2, 3)),),
        needs_sizes=True,
    ),
    Case("unstack", ll.unstack, tuple, (Input((2,)),), needs_sizes=True),
    Case(
        "unstack",
        lambda x: ll.unstack(x)[1],
        lambda x: x[1],
        (Input((3, 2)),),
        note="one of the parts",
        needs_sizes=True,
    ),
    Case("split", lambda x: ll.split(x, 2, axis=-1), lambda x: _pieces(x, 2, -1), (Input((2, 4)),), needs_sizes=True),
    Case("split", lambda x: ll.split(x, (1, 0, 2)), lambda x: _pieces(x, (1, 0, 2), 0), (Input((3, 2)),)),
    Case("split", lambda x: ll.split(x, (1, 2))[1], lambda x: x[1:], (Input((3, 2)),), note="one of the parts"),
]

REPEATING = [
    *[
        Case("tile", lambda x, r=r: ll.tile(x, r), lambda x, r=r: np.tile(x, r), (Input(shape),), note=f"{r}")
        for shape, r in (((2, 3), (2, 1)), ((3,), (2, 2)), ((2, 2), (3,)), ((2,), (0,)), ((), (2,)))
    ],
    *[
        Case(
            "repeat",
            lambda x, a=a: ll.repeat(x, 2, axis=a),
            lambda x, a=a: np.repeat(x, 2, a),
            (Input((2, 3)),),
            note=f"{a}",
        )
        for a in (None, 0, -1)
    ],
    *[
        Case("flip", lambda x, a=a: ll.flip(x, axis=a), lambda x, a=a: np.flip(x, a), (Input((2, 3)),), note=f"{a}")
        for a in (None, 0, -1, (0, 1))
    ],
    *[
        Case(
            "roll",
            lambda x, s=s, a=a: ll.roll(x, s, axis=a),
            lambda x, s=s, a=a: np.roll(x, s, a),
            (Input((2, 3)),),
            note=f"{s} {a}",
        )
        for s, a in ((1, None), (-2, 1), ((1, 2), (0, -1)), (1, (0, 1)))
    ],
]

_KEYS = (
    (1,),
    (-1, 0),
    (slice(None, None, -1),),
    (slice(-1, None, -2), slice(1, 2)),
    (..., 0),
    (None, ..., slice(0, 0)),
    (0, ..., None),
    (slice(5, 1), None, 1),
    (),
)


def _at(key):
    key = key if len(key) != 1 else key[0]
    return (lambda x: x[key]), (lambda x: np.asarray(x[key]))


_PICKS = (
    ([0, 2, 2],),
    (slice(None), [1, 0]),
    ([0, 1], [2, 0]),
    ([[0], [2]], [0, 1]),
    (0, slice(None), [1, 1]),
    ([1, 0], slice(None), [1, 1]),
    (..., [0, -1]),
    (None, [2]),
    (slice(None, None, 2), [[1, 1], [0, 2]]),
)


def _pick(key):
    arrays = tuple(np.array(part) if isinstance(part, list) else part for part in key)
    return (lambda x: x[key]), (lambda x: x[arrays])


MASK = np.array([[True, False, True], [False, False, True], [True, True, True]])


def _dynamic(x, start, stop):
    """What `x[start:stop, 1]` does in a trace where the bounds are symbolic."""
    positions = raw("pack_indices")(start, stop)
    return raw("dynamic_slice", (("t", "t", None), 1))(x, positions)


def _scatter(shape, key, add=False):
    def reference(x, *given):
        out = np.zeros(shape, x.dtype)
        at = tuple(key(*given)) if callable(key) else key
        if add:
            np.add.at(out, at, x)
        else:
            out[at] = x
        return out

    return reference


_SCATTERED = ((None, None, -2), 1)
INDEXING = [
    *[Case("slice", *_at(key), (Input((3, 2, 3)),), note=str(key)) for key in _KEYS],
    Case("slice", lambda x: x[()], lambda x: x, (Input(()),)),
    Case("slice", lambda x: x[...], lambda x: x, (Input((2,)),), note="..."),
    *[Case("index", *_pick(key), (Input((3, 2, 3) if len(key) == 3 else (3, 3)),), note=str(key)) for key in _PICKS],
    Case("index", lambda x: x[MASK], lambda x: x[MASK], (Input((3, 3, 2)),), note="mask"),
    Case("index", lambda x: x[:, MASK[0]], lambda x: x[:, MASK[0]], (Input((2, 3)),), note="mask of an axis"),
    Case(
        "index",
        lambda x, i: x[i],
        lambda x, i: x[i],
        (Input((3, 2)), Input((2, 2), "index", I64, 3)),
        note="of a tensor",
    ),
    Case(
        "index", lambda x, i: x[i], lambda x, i: x[i], (Input((3, 2)), Input((0,), "index", I64, 3)), note="of nothing"
    ),
    Case(
        "slice_scatter",
        raw("slice_scatter", _SCATTERED, (3, 2)),
        _scatter((3, 2), (slice(None, None, -2), 1)),
        (Input((2,)),),
    ),
    Case(
        "slice_scatter_dynamic",
        lambda x: raw("slice_scatter_dynamic", _SCATTERED, 2)(x, vector(3, 2)),
        _scatter((3, 2), (slice(None, None, -2), 1)),
        (Input((2,)),),
    ),
    Case("dynamic_slice", lambda x: _dynamic(x, ll.constant(1), ll.constant(3)), lambda x: x[1:3, 1], (Input((4, 2)),)),
    Case(
        "dynamic_slice",
        lambda x: _dynamic(x, ll.constant(-2), ll.constant(9)),
        lambda x: x[-2:9, 1],
        (Input((4, 2)),),
        note="beyond",
    ),
    Case(
        "dynamic_slice_scatter",
        lambda x: raw("dynamic_slice_scatter", (("t", "t", None), 1), (4, 2))(x, vector(1, 3)),
        _scatter((4, 2), (slice(1, 3), 1)),
        (Input((2,)),),
    ),
    Case(
        "dynamic_slice_scatter_dynamic",
        lambda x: raw("dynamic_slice_scatter_dynamic", (("t", "t", None), 1), 2)(x, vector(1, 3), vector(4, 2)),
        _scatter((4, 2), (slice(1, 3), 1)),
        (Input((2,)),),
    ),
    Case(
        "index_scatter",
        raw("index_scatter", ("i",), (3,)),
        _scatter((3,), lambda i: (i,), add=True),
        (Input((6,), "positive"), Input((6,), "index", I64, 3)),
        dtypes=NUMERIC,
    ),
    Case(
        "index_scatter_dynamic",
        lambda x, i: raw("index_scatter_dynamic", ((None, None, None), "i"), 2)(x, i, vector(2, 3)),
        _scatter((2, 3), lambda i: (slice(None), i), add=True),
        (Input((2, 5), "positive"), Input((5,), "index", I64, 3)),
        dtypes=NUMERIC,
    ),
    Case(
        "pack_indices",
        raw("pack_indices"),
        lambda *xs: np.stack(np.broadcast_arrays(*xs)),
        (Input((2, 1)), Input((3,))),
    ),
    Case("nonzero", ll.nonzero, np.nonzero, (Input((2, 3)),), out=I64),
    *[
        Case(
            "take",
            lambda x, i, a=a: ll.take(x, i, axis=a),
            lambda x, i, a=a: np.take(x, i, a),
            (Input((3, 3)), Input(shape, "index", dtypes.int32, 3)),
            note=f"{a}",
        )
        for a, shape in ((0, (4,)), (-1, (2, 2)), (1, ()), (0, (0,)))
    ],
    Case(
        "take_scatter",
        raw("take_scatter", 1, (2, 3)),
        _scatter((2, 3), lambda i: (slice(None), i), add=True),
        (Input((2, 5), "positive"), Input((5,), "index", I64, 3)),
        dtypes=NUMERIC,
    ),
    Case(
        "take_scatter_dynamic",
        lambda x, i: raw("take_scatter_dynamic", 0, 1)(x, i, vector(3)),
        _scatter((3,), lambda i: (i,), add=True),
        (Input((5,), "positive"), Input((5,), "index", I64, 3)),
        dtypes=NUMERIC,
    ),
    Case(
        "one_hot",
        lambda i: ll.one_hot(i, 3),
        lambda i: np.eye(3)[i],
        (Input((2, 2), "class", high=3),),
        out=dtypes.float32,
    ),
    *[
        Case(
            "one_hot",
            lambda i, axis=axis: ll.one_hot(i, 3, axis=axis, dtype=ll.int8),
            lambda i, axis=axis: np.moveaxis(np.eye(3)[i], -1, axis),
            (Input((2, 2), "class", high=3),),
            note=f"axis {axis}",
            out=dtypes.int8,
        )
        for axis in (0, -2)
    ],
]

CASES = [*SHAPING, *JOINING, *REPEATING, *INDEXING]

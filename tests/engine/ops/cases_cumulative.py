"""Cases of running sums, products and extremes."""

from __future__ import annotations

import numpy as np
from opcase import Case, Input, raw

import limelight as ll
from limelight.core import dtypes
from limelight.core.op import accepted


def _reference(scan, neutral):
    """What a scan should give, by way of NumPy's own."""

    def reference(x, axis, reverse, exclusive):
        x = np.flip(x, axis) if reverse else x
        found = scan(x, axis)
        if exclusive:
            found = np.insert(np.delete(found, slice(-1, None), axis), 0, neutral, axis) if found.size else found
        return np.flip(found, axis) if reverse else found

    return reference


WAYS = (((3,), 0, False, False), ((2, 3), -2, True, False), ((2, 3, 1), 1, False, True), ((2, 2), 1, True, True))


def _scans(op, call, scan, neutral, values, **more):
    reference = _reference(scan, neutral)
    return [
        Case(
            op,
            lambda x, axis=axis, r=r, e=e: call(x, axis=axis, reverse=r, exclusive=e),
            lambda x, axis=axis, r=r, e=e: reference(x, axis, r, e),
            (Input(shape, values),),
            note=f"{call.__name__} {axis} {'reverse' * r} {'exclusive' * e}",
            differentiable=None if np.isfinite(neutral) or not e else False,  # differences of infinities say nothing
            **more,
        )
        for shape, axis, r, e in WAYS
    ] + [
        Case(op, call, lambda x: scan(x, 0), (Input((0,), values),), note=call.__name__, **more),
        Case(
            op,
            lambda x: call(x, axis=1),
            lambda x: scan(x, 1),
            (Input((0, 2), values),),
            note=call.__name__,
            **more,
        ),
    ]


def _recurrence(a, b, axis, reverse):
    a, b = (np.moveaxis(z, axis, 0)[:: -1 if reverse else 1] for z in (a, b))
    out = np.array(b)
    for i in range(1, len(b)):
        out[i] = b[i] + a[i - 1 if reverse else i] * out[i - 1]
    return np.moveaxis(out[:: -1 if reverse else 1], 0, axis)


CASES = [
    *_scans("cumsum", ll.cumsum, np.cumsum, 0, "any", out="total"),
    *_scans("cumprod", ll.cumprod, np.cumprod, 1, "zeros", out="total"),
    *_scans("cumextreme", ll.cummax, np.maximum.accumulate, -np.inf, "distinct", dtypes=accepted("floating")),
    *_scans("cumextreme", ll.cummin, np.minimum.accumulate, np.inf, "distinct", dtypes=accepted("floating")),
    Case("cumextreme", ll.cummax, np.maximum.accumulate, (Input((4,), "distinct"),), note="of any kind"),
    Case(
        "cumprod",
        lambda x: ll.cumulative_prod(x, axis=-1, include_initial=True),
        lambda x: np.cumulative_prod(x, axis=-1, include_initial=True),
        (Input((2, 3), "zeros"),),
        note="with the product of nothing",
        out="total",
    ),
    Case(
        "cumextreme_places",
        raw("cumextreme_places", 0, True),
        lambda x: np.array([int(np.argmax(x[: i + 1])) for i in range(4)]),
        (Input((4,), "distinct"),),
        dtypes=frozenset([dtypes.float32]),
        out=dtypes.int64,
    ),
    *[
        Case(
            "delay",
            raw("delay", axis, 7),
            lambda x, axis=axis: _reference(lambda x, axis: x, 7)(x, axis, False, True),
            (Input(shape),),
            note=f"{axis}",
        )
        for shape, axis in (((2, 3), 1), ((3, 1), 0), ((0, 2), 0))
    ],
    Case("lead", raw("lead", 1, 1), lambda x: np.insert(x, 0, 1, 1), (Input((2, 3)),)),
    *[
        Case(
            "recurrence",
            raw("recurrence", axis, reverse),
            lambda a, b, axis=axis, r=reverse: _recurrence(a, b, axis, r),
            (Input(shape), Input(shape)),
            note=f"{axis} {reverse}",
        )
        for shape, axis, reverse in (((4,), 0, False), ((2, 3), 1, True), ((1, 2), 0, True))
    ],
]


def _top(x, k, axis):
    places = np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis=axis, stable=True), axis)
    return np.take(places, range(k), axis)


CASES += [
    *[
        Case(
            "top_k_places",
            lambda x, k=k, axis=axis: ll.top_k(x, k, axis=axis)[1],
            lambda x, k=k, axis=axis: _top(x, k, axis),
            (Input(shape),),
            note=f"{k} {axis}",
            out=dtypes.int64,
        )
        for shape, k, axis in (((5,), 2, 0), ((2, 3), 3, -1), ((100, 2), 3, 0), ((2, 0), 0, 1))
    ],
    Case(
        "take_along_axis",
        lambda x: ll.top_k(x, 2)[0],
        lambda x: np.sort(x, -1)[..., ::-1][..., :2],
        (Input((2, 4), "distinct"),),
        note="top_k",
        dtypes=accepted("floating"),
    ),
]

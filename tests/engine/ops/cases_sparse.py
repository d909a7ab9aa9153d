"""Cases of the ops behind sparse gradients."""

from __future__ import annotations

import numpy as np
from opcase import Case, Input, raw

import limelight as ll
from limelight.core import dtypes


def _added_up(values, indices):
    rows, places = np.unique(indices, return_inverse=True)
    sums = np.zeros((len(rows), *values.shape[1:]), values.dtype)
    np.add.at(sums, places, values)
    return sums, rows, places


CASES: list[Case] = [
    *[
        Case(
            "embedding",
            lambda t, i, s=sparse: ll.nn.embedding(t, i, sparse=s),
            lambda t, i: t[i],
            (Input(table, "any"), Input(shape, "index", dtypes.int32, table[0])),
            note="sparse" if sparse else "dense",
        )
        for sparse, table, shape in (
            (True, (3, 2), (4,)),
            (True, (3,), (2, 2)),
            (True, (2, 3), ()),
            (True, (2, 0), (2, 1)),
            (True, (3, 2), (0,)),
            (False, (3, 2), (2, 2)),
        )
    ],
    *[
        Case(
            "add_up_rows",
            lambda v, i: raw("add_up_rows")(v, i)[0],
            lambda v, i: _added_up(v, i)[0],
            (Input((n, *rest)), Input((n,), "class", dtypes.int32, 3)),
        )
        for n, rest in ((5, (2,)), (1, ()), (0, (2,)), (4, (1, 2)))
    ],
]

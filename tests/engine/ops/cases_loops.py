"""Ops that loops put into the graphs of their gradients."""

from __future__ import annotations

import numpy as np
from cases_shapes import NUMERIC
from opcase import Case, Input, raw

import limelight as ll

B = Input((), dtype=ll.bool)

CASES = [
    Case("uneven", raw("uneven"), lambda x: x, (Input((2, 3)),)),
    Case("hollow", raw("hollow", (2, 3)), lambda x: x, (Input((2, 3)),)),
    *[
        Case("kept_if", raw("kept_if"), lambda c, x: x if c else np.zeros_like(x), (B, Input(shape)))
        for shape in ((), (2, 0), (3,))
    ],
    Case("either", raw("either"), lambda c, x, y: x if c else y, (B, Input((2, 3)), Input((2, 3)))),
    Case(
        "either",
        lambda c, x: raw("either")(~c, x, x * x),
        lambda c, x: x * x if c else x,
        (B, Input((3,))),
        note="not",
        dtypes=NUMERIC,
    ),
]

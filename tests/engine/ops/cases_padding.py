"""Cases of margins."""

from __future__ import annotations

import numpy as np
from opcase import Case, Input, raw

import limelight as ll
from limelight.core.op import accepted

MODES = ("edge", "reflect", "symmetric", "wrap")


def _folded(margins, mode):
    """The transpose of NumPy's padding as a matrix."""

    def reference(x):
        shape = [n - a - b for n, (a, b) in zip(x.shape, margins, strict=True)]
        places = np.pad(np.arange(int(np.prod(shape))).reshape(shape), margins, mode)
        out = np.zeros(int(np.prod(shape)), x.dtype)
        np.add.at(out, places.reshape(-1), x.reshape(-1))
        return out.reshape(shape)

    return reference


CASES = [
    *[
        Case(
            "pad",
            lambda x, w=w: ll.pad(x, w, value=1),
            lambda x, w=w: np.pad(x, w, constant_values=1),
            (Input(shape),),
            note=f"{w}",
            dtypes=accepted("numeric"),
        )
        for shape, w in (((2, 3), 1), ((2, 3), (0, 2)), ((3,), [(1, 0)]), ((0, 2), ((2, 1), (0, 0))), ((), 3))
    ],
    Case(
        "pad",
        lambda x, value: ll.pad(x, ((1, 0), (2, 1)), value=value),
        lambda x, value: np.pad(x, ((1, 0), (2, 1)), constant_values=value),
        (Input((2, 3)), Input(())),
        note="with a tensor",
        dtypes=accepted("numeric"),
    ),
    Case("pad", lambda x: ll.pad(x, 1), lambda x: np.pad(x, 1), (Input((2,)),), note="with zeros"),
    *[
        Case(
            "pad_continued",
            lambda x, w=w, mode=mode: ll.pad(x, w, mode=mode),
            lambda x, w=w, mode=mode: np.pad(x, w, mode),
            (Input(shape),),
            note=f"{mode} {w}",
            dtypes=accepted("any" if mode == "edge" else "inexact"),
        )
        for mode in MODES
        for shape, w in (((2, 3), ((1, 0), (2, 1))), ((2,), (5, 3)), ((1, 2), ((2, 2), (0, 0))))
    ],
    *[
        Case("pad_folded", raw("pad_folded", w, mode), _folded(w, mode), (Input(shape),), note=mode)
        for mode in MODES
        for shape, w in (((4, 5), ((1, 1), (2, 1))),)
    ],
]

"""Cases of einsum, and of the ops that it is made of."""

from __future__ import annotations

import numpy as np
from opcase import Case, Input, raw

import limelight as ll

PAIRS = (
    ("ij,jk->ik", (2, 3), (3, 2)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 1)),
    ("ij,kj", (2, 3), (2, 3)),
    ("ij,jk->ki", (2, 3), (3, 2)),
    ("i,j->ij", (2,), (3,)),
    ("bi,bi->b", (2, 3), (2, 3)),
    ("ijk,kl->jl", (2, 2, 3), (3, 2)),
    ("...i,...i", (2, 3), (3,)),
    ("a...,...b->b...a", (2, 3), (3, 2)),
    ("ij,jk->ik", (2, 1), (3, 2)),
    ("i,ij->j", (0,), (0, 2)),
    (",i->i", (), (3,)),
)
ONES = (("ii", (3, 3)), ("ii->i", (2, 2)), ("ij->ji", (2, 3)), ("iji->j", (2, 3, 2)), ("...i->...", (2, 2)), ("", ()))


CASES = [
    *[
        Case(
            "einsum_pair",
            lambda x, y, e=equation: ll.einsum(e, x, y),
            lambda x, y, e=equation: np.einsum(e, x, y),
            (Input(x), Input(y)),
            note=equation,
        )
        for equation, x, y in PAIRS
    ],
    *[
        Case(
            "einsum_pair",
            lambda *xs, e=equation: ll.einsum(e, *xs),
            lambda *xs, e=equation: np.einsum(e, *xs),
            tuple(map(Input, sizes)),
            note=equation,
        )
        for equation, sizes in (
            ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 2))),
            ("ab,bc,ca,a->", ((2, 2), (2, 3), (3, 2), (2,))),
            ("i,i,i->i", ((3,), (3,), (1,))),
        )
    ],
    Case(
        "einsum_pair",
        lambda x: ll.einsum("ij,ij->", x, x),
        lambda x: np.sum(x * x, dtype=x.dtype),
        (Input((2, 3)),),
        note="of itself",
    ),
    *[
        Case(
            "einsum_one",
            lambda x, e=equation: ll.einsum(e, x),
            lambda x, e=equation: np.einsum(e, x),
            (Input(shape),),
            note=equation,
        )
        for equation, shape in ONES
    ],
    *[
        Case(
            f"einsum_pair_to{'_dynamic' * dynamic}",
            lambda x, y, e=equation, shape=shape, d=dynamic: _raw_to("einsum_pair_to", d, (x, y), shape, e),
            reference,
            (Input(x), Input(y)),
            note=equation,
        )
        for equation, x, y, shape, reference in (
            ("ik,jk->ij", (2, 3), (4, 3), (2, 4), lambda x, y: x @ y.T),
            ("ik,jk->ij", (2, 3), (1, 3), (2, 2), lambda x, y: np.repeat(x @ y.T, 2, 1)),
            ("ik,jk->ij", (2, 3), (4, 3), (2, 1), lambda x, y: (x @ y.T).sum(1, keepdims=True)),
        )
        for dynamic in (False, True)
    ],
    *[
        Case(
            f"einsum_one_to{'_dynamic' * dynamic}",
            lambda x, e=equation, shape=shape, d=dynamic: _raw_to("einsum_one_to", d, (x,), shape, e),
            reference,
            (Input(x),),
            note=equation,
        )
        for equation, x, shape, reference in (
            ("i->ii", (3,), (3, 3), np.diag),
            ("->ij", (), (2, 2), lambda x: np.broadcast_to(x, (2, 2))),
            ("ij->iki", (2, 1), (2, 3, 2), lambda x: np.einsum("i,ij,k->ikj", x[:, 0], np.eye(2), np.ones(3))),
        )
        for dynamic in (False, True)
    ],
]


def _raw_to(name, dynamic, operands, shape, equation):
    if dynamic:
        return raw(f"{name}_dynamic", equation, len(shape))(*operands, ll.constant(np.array(shape, np.int64)))
    return raw(name, equation, shape)(*operands)

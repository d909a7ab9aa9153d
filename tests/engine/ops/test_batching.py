"""Every case vectorised, with each choice of operands that differ between examples: the same as a loop."""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES
from opcase import Case, each, op_of, thinned
from test_cases import tuple_of

import limelight as ll
from limelight.core import dtypes, op

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every case is staged anew

COUNT = 3
PREFERRED = [dtypes.float64, dtypes.complex128, dtypes.int32, dtypes.bool_]


def runs():
    """Deterministic cases with inputs, each with one dtype."""
    cases = [x for x in CASES if x.inputs and op.get(x.op).effect is None and x.reference is not None]
    for case in thinned(cases, op_of):
        dtype = next((d for d in PREFERRED if d in case.accepted), None) or case.accepted[0]
        yield case, dtype


def choices(n):
    """Which operands have a value for each example: all, or one, the others being shared."""
    return {tuple([True] * n), *[tuple(i == j for j in range(n)) for i in range(n)]}


def examples(case: Case, dtype):
    """Operands for each example."""
    return [[x.draw(dtype, 100 * i + seed) for seed, x in enumerate(case.inputs)] for i in range(COUNT)]


@each(list(runs()))
def test_vectorised_as_a_loop(case: Case, dtype):
    drawn = examples(case, dtype)
    for choice in choices(len(case.inputs)):
        given = [
            np.stack(column) if many else column[0]
            for column, many in zip(zip(*drawn, strict=True), choice, strict=True)
        ]
        rows = [[row[j] if many else drawn[0][j] for j, many in enumerate(choice)] for row in drawn]
        try:
            wanted = [tuple_of(case.call(*map(ll.constant, row))) for row in rows]
        except ll.errors.LimelightError:
            continue  # drawn values that this op refuses
        F = ll.vectorize(case.call, in_axes=tuple(0 if many else None for many in choice))
        if any(len({x.shape for x in column}) > 1 for column in zip(*wanted, strict=True)):
            with pytest.raises(ll.errors.ShapeError, match=r"for one example and .* for another"):
                F(*map(ll.constant, given))
            continue
        found = tuple_of(F(*map(ll.constant, given)))
        assert len(found) == len(wanted[0])
        for part, column in zip(found, zip(*wanted, strict=True), strict=True):
            assert part.dtype is column[0].dtype
            value = np.stack([x.numpy() for x in column])
            np.testing.assert_allclose(part.numpy(), value, rtol=1e-10, atol=1e-12, err_msg=f"{choice} {F.looped}")


@each(list(runs()))
def test_of_an_unknown_number_of_examples(case: Case, dtype):
    """In a trace that knows one example's sizes, and in one that knows none; what would be a loop says so."""
    drawn = examples(case, dtype)
    given = [ll.constant(np.stack(column)) for column in zip(*drawn, strict=True)]
    try:
        wanted = [tuple_of(case.call(*map(ll.constant, row))) for row in drawn]
    except ll.errors.LimelightError:
        return  # drawn values that this op refuses
    if any(len({x.shape for x in column}) > 1 for column in zip(*wanted, strict=True)):
        return
    for known in (True, False) if case.hides_sizes else (True,):
        sizes = [(None, *(x.shape[1:] if known else (None,) * (x.ndim - 1))) for x in given]
        signature = [ll.TensorSpec(s, x.dtype) for s, x in zip(sizes, given, strict=True)]
        F = ll.function(ll.vectorize(case.call), input_signature=signature)
        try:
            found = tuple_of(F(*given))
        except ll.errors.ShapeError as error:
            assert "has no batching rule" in str(error)  # noqa: PT017  # either this, or the result
            continue
        for part, column in zip(found, zip(*wanted, strict=True), strict=True):
            value = np.stack([x.numpy() for x in column])
            np.testing.assert_allclose(part.numpy(), value, rtol=1e-10, atol=1e-12, err_msg=f"{known}")

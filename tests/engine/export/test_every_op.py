"""Every case of every op, out of a file: the same bits, and the same gradients."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from cases import CASES
from opcase import thinned

import limelight as ll
from limelight.core import dtypes
from limelight.errors import ExportError

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
PYTHON = {"py_func"}
"""Ops that run the user's Python, which no file can hold."""
ONE_A_OP = {case.op: case for case in thinned(CASES, lambda case: case.op)}


def bits(result):
    results = result if isinstance(result, tuple) else (result,)
    return [(y.dtype, y.shape, np.where(y.numpy() != y.numpy(), 0, y.numpy()).tobytes()) for y in results]


def slopes(f, tensors):
    with ll.GradientTape() as tape:
        tape.watch([x for x in tensors if dtypes.is_inexact(x.dtype)])
        results = f(*tensors)
        results = results if isinstance(results, tuple) else (results,)
        targets = [y for y in results if dtypes.is_inexact(y.dtype)]
    return tape.gradient(targets, [x for x in tensors if dtypes.is_inexact(x.dtype)])


@pytest.mark.parametrize("op", [op for op in ONE_A_OP if op not in PYTHON])
def test_it_does_the_same(op, tmp_path):
    case = ONE_A_OP[op]
    tensors = [ll.constant(array) for array in case.arrays(case.tried[0])]
    f = ll.function(lambda *xs: case.call(*xs))  # noqa: PLW0108  # a call may be a ufunc
    ll.random.seed(5)
    expected = f(*tensors)
    again = ll.load(ll.save(f, tmp_path / "op.ll"))
    ll.random.seed(5)
    assert bits(again(*tensors)) == bits(expected)
    if case.has_gradient:
        for mine, theirs in zip(slopes(again, tensors), slopes(f, tensors), strict=True):
            assert (mine is None) == (theirs is None)
            assert mine is None or bits(mine) == bits(theirs)


def test_python_is_refused_with_its_line(tmp_path):
    f = ll.function(lambda x: ll.py_func(lambda v: v + 1, [x], ll.TensorSpec((2,))))
    f(ll.ones((2,)))
    with pytest.raises(ExportError, match=r"py_func calls Python .* at test_every_op.py:\d+"):
        ll.save(f, tmp_path / "f.ll")
    assert list(tmp_path.iterdir()) == []

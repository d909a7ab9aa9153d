"""Cases of every op, run by onnxruntime: the numbers of the plan; and docs/onnx_ops.md, the table of all ops."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'limelight[onnx]'")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'limelight[onnx]'")

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from cases import CASES
from opcase import call_of, one_of_each, thinned

import limelight as ll
import onnx_ops
from limelight.core import dtypes
from limelight.errors import ExportError
from limelight.export.to_onnx import check, model
from limelight.export.to_onnx.registry import COMPLEX_LOWERINGS, LOWERINGS, REFUSED

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
FULL = os.environ.get("LIMELIGHT_TESTS") == "full"
"""Whether to run every case with unknown sizes, too, and every call with every dtype; else one case of each op."""
OTHERWISE = {"distinct NaN 20": "onnxruntime counts all NaN as one value"}
"""Cases with other results, and why."""
CHOSEN = [case for case in (CASES if FULL else thinned(CASES, lambda case: case.op)) if case.op in LOWERINGS]
WITH_EACH_DTYPE = set(map(id, one_of_each(CHOSEN, call_of)))
"""Of the cases that call an op in one way the largest."""
SIZE = 16


def exported(runs):
    """One model of these cases, each with a dtype, and with sizes known or hidden, checked against the plan."""
    tensors = [[ll.constant(array) for array in case.arrays(dtype)] for case, dtype, _ in runs]
    ends = list(itertools.accumulate(map(len, tensors), initial=0))
    calls = [case.call for case, _, _ in runs]
    f = ll.function(lambda *xs: [call(*xs[i:j]) for call, (i, j) in zip(calls, itertools.pairwise(ends), strict=True)])
    like = [
        ll.TensorSpec((None,) * x.ndim, x.dtype) if hide else x
        for xs, (_, _, hide) in zip(tensors, runs, strict=True)
        for x in xs
    ]
    trace = f.get_concrete_function(*like)
    check.check(trace, model.serialised("f", model.model_of(trace)), list(itertools.chain(*tensors)))


def runs_of(case):
    """Every dtype with known sizes, and one of them with unknown ones: no lowering asks for both at once."""
    real = [dtype for dtype in case.tried if dtypes.kind(dtype) != "complex"]
    for dtype in real if FULL and id(case) in WITH_EACH_DTYPE else real[:1]:
        yield case, dtype, False
    if FULL and case.hides_sizes and real:
        yield case, real[0], True


def check_alone(case, dtype, hide):
    try:
        exported([(case, dtype, hide)])
    except ExportError as error:
        refused = "cannot be exported to ONNX:" in str(error) and (
            hide or any(word in str(error) for word in ("complex", "uint64"))
        )
        if not refused and case.name not in OTHERWISE:
            error.add_note(f"the case: {case.name}, {dtype.name}, {'unknown' if hide else 'known'} sizes")
            raise


@pytest.mark.parametrize(
    "part", [CHOSEN[i : i + SIZE] for i in range(0, len(CHOSEN), SIZE)], ids=lambda part: part[0].op
)
def test_onnxruntime_gives_the_same_numbers(part):
    """One model for each dtype of all cases: most of the time goes into making one. What it refuses is tried alone."""
    groups = {}
    for case, dtype, hide in itertools.chain(*map(runs_of, part)):
        groups.setdefault((dtype, hide), []).append((case, dtype, hide))
    for runs in groups.values():
        try:
            exported(runs)
        except ExportError:
            for run in runs:
                check_alone(*run)


def test_every_op_has_a_lowering_or_a_reason():
    names = {op.name for op in onnx_ops.ops()}
    assert {*LOWERINGS, *REFUSED, *COMPLEX_LOWERINGS} == names
    assert not set(LOWERINGS) & set(REFUSED)


def test_nine_in_ten_differentiable_ops_are_exported():
    smooth = [op for op in onnx_ops.ops() if op.vjp is not None]
    assert sum(op.name in LOWERINGS for op in smooth) >= 0.9 * len(smooth)


def test_the_page_is_what_the_table_says():
    assert onnx_ops.PAGE.read_text(encoding="utf-8") == onnx_ops.page(), "run `python scripts/onnx_ops.py`"

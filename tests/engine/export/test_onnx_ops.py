"""Cases of every op, run by onnxruntime: the numbers of the plan; and docs/onnx_ops.md, the table of all ops."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'limelight[onnx]'")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'limelight[onnx]'")

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from cases import CASES
from opcase import thinned

import limelight as ll
import onnx_ops
from limelight.core import dtypes
from limelight.errors import ExportError
from limelight.export.to_onnx import check, model
from limelight.export.to_onnx.registry import COMPLEX_LOWERINGS, LOWERINGS, REFUSED

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
FULL = os.environ.get("LIMELIGHT_TESTS") == "full"
"""Whether to run every case with every dtype and with unknown sizes; else one case of each op."""
OTHERWISE = {"distinct NaN 20": "onnxruntime counts all NaN as one value"}
"""Cases with other results, and why."""
CHOSEN = [case for case in (CASES if FULL else thinned(CASES, lambda case: case.op)) if case.op in LOWERINGS]
SIZE = 16


def exported(case, dtype, hide):
    arrays = case.arrays(dtype)
    tensors = [ll.constant(array) for array in arrays]
    f = ll.function(lambda *xs: case.call(*xs))  # noqa: PLW0108  # a call may be a ufunc
    like = [ll.TensorSpec((None,) * x.ndim, x.dtype) for x in tensors] if hide else tensors
    trace = f.get_concrete_function(*like)
    check.check(trace, model.serialised("f", model.model_of(trace)), tensors)


def runs_of(case):
    """Every dtype with known sizes, and one of them with unknown ones: no lowering asks for both at once."""
    real = [dtype for dtype in case.tried if dtypes.kind(dtype) != "complex"]
    for dtype in real if FULL else real[:1]:
        yield dtype, False
    if FULL and case.hides_sizes and real:
        yield real[0], True


@pytest.mark.parametrize(
    "part", [CHOSEN[i : i + SIZE] for i in range(0, len(CHOSEN), SIZE)], ids=lambda part: part[0].op
)
def test_onnxruntime_gives_the_same_numbers(part):
    for case in part:
        for dtype, hide in runs_of(case):
            try:
                exported(case, dtype, hide)
            except ExportError as error:
                refused = "cannot be exported to ONNX:" in str(error) and (
                    hide or any(word in str(error) for word in ("complex", "uint64"))
                )
                if not refused and case.name not in OTHERWISE:
                    error.add_note(f"the case: {case.name}, {dtype.name}, {'unknown' if hide else 'known'} sizes")
                    raise


def test_every_op_has_a_lowering_or_a_reason():
    names = {op.name for op in onnx_ops.ops()}
    assert {*LOWERINGS, *REFUSED, *COMPLEX_LOWERINGS} == names
    assert not set(LOWERINGS) & set(REFUSED)


def test_nine_in_ten_differentiable_ops_are_exported():
    smooth = [op for op in onnx_ops.ops() if op.vjp is not None]
    assert sum(op.name in LOWERINGS for op in smooth) >= 0.9 * len(smooth)


def test_the_page_is_what_the_table_says():
    assert onnx_ops.PAGE.read_text(encoding="utf-8") == onnx_ops.page(), "run `python scripts/onnx_ops.py`"

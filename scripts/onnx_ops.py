"""Write docs/onnx_ops.md from the table of lowerings: `python scripts/onnx_ops.py`.

A test holds the page to what this writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from limelight.core import op as registry
from limelight.core.op import Op
from limelight.export.to_onnx import lowerings
from limelight.export.to_onnx.registry import COMPLEX_LOWERINGS, LOWERINGS, REFUSED, SAME

PAGE = Path(__file__).resolve().parent.parent / "docs" / "onnx_ops.md"
_HEAD = """\
# Ops in ONNX

What `ll.export.onnx` makes of each op, written from the table of lowerings by `scripts/onnx_ops.py`. An op is
*exported* where ONNX has it, *composed* where it is written with several ops of ONNX, or *refused*, before anything is
written, with the line that uses it. onnxruntime has no kernels for complex numbers: they are written as pairs of real
ones, for the ops of spectra, and may not be arguments and results.

Of {differentiable} differentiable ops {exported} are exported or composed ({share:.1%}); of all {all}, {all_exported}.

Where onnxruntime has no kernel for a dtype, an op is computed in a wider one: 16-bit floats in float32, 16-bit integers
in 32 bits. Whole numbers are exact, but for powers of 64 bits whose exponent is a tensor and products along an axis of
unknown size, which have 53 bits. Special functions and decompositions are computed in float64. A few ops need known
sizes: windows of convolutions and pooling (the batch may be None), matrices that are decomposed (up to 64 columns; 24
for singular values and eigenvalues; 8 for cofactors), the axis of cumulative products and extremes. A singular matrix
gives NaN where limelight raises an error, indices out of bounds are errors of onnxruntime, and `distinct` counts all
NaN as one value.

| op | differentiable | in ONNX |
|---|---|---|
"""


def ops() -> list[Op]:
    """The engine's own ops, in alphabetical order."""
    lowerings.load()
    found = [op for op in registry.all_ops().values() if registry.home_of(op.name).startswith("limelight.")]
    return sorted(found, key=lambda op: op.name)


def page() -> str:
    """The page as it should be."""
    every = ops()
    smooth = [op for op in every if op.vjp is not None]
    exported = [op for op in smooth if is_exported(op)]
    head = _HEAD.format(
        differentiable=len(smooth),
        exported=len(exported),
        share=len(exported) / len(smooth),
        all=len(every),
        all_exported=sum(map(is_exported, every)),
    )
    return head + "\n".join(_rows(every)) + "\n"


def is_exported(op: Op) -> bool:
    """Whether ONNX has it, or it is written with several ops of ONNX."""
    return op.name in LOWERINGS or (op.name in COMPLEX_LOWERINGS and op.name not in REFUSED)


def _rows(every: list[Op]) -> Iterator[str]:
    for op in every:
        if op.name in SAME:
            what = f"exported: {SAME[op.name]}"
        elif is_exported(op):
            what = "composed"
        else:
            what = f"refused: {REFUSED[op.name]}"
        yield f"| {op.name} | {'yes' if op.vjp is not None else ''} | {what} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

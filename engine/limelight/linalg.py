"""Linear algebra: the names of the Array API's `linalg` extension that exist so far."""

from __future__ import annotations

from limelight.ops.diagonals import diagonal, trace
from limelight.ops.permuting import matrix_transpose
from limelight.ops.products import matmul, outer, tensordot

__all__ = ["diagonal", "matmul", "matrix_transpose", "outer", "tensordot", "trace"]

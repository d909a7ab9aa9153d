"""Linear algebra: the Array API's `linalg` extension, and beyond it norms, triangular systems, least squares, `expm`.

Matrices are the last two axes; what stands before them are stacks. Decompositions and solvers take floating or complex
dtypes of 32 bits or more: LAPACK has nothing for 16-bit floats, so cast those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight.ops.linalg.decompositions import cholesky, qr, svd, svdvals
from limelight.ops.linalg.determinants import det, logdet, slogdet
from limelight.ops.linalg.diagonals import diagonal, trace
from limelight.ops.linalg.eigen import eig, eigh, eigvals, eigvalsh
from limelight.ops.linalg.matmul import matmul, multi_dot, outer, tensordot
from limelight.ops.linalg.matrix_functions import expm, matrix_power
from limelight.ops.linalg.norms import matrix_norm, norm, vector_norm
from limelight.ops.linalg.pseudoinverses import lstsq, matrix_rank, pinv
from limelight.ops.linalg.solve import cholesky_solve, inv, solve, triangular_solve
from limelight.ops.linalg.vector_products import cross, vecdot
from limelight.ops.shape.transpose import matrix_transpose
from limelight.user_code import hints

__all__ = [
    "cholesky", "cholesky_solve", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "expm", "inv",
    "logdet", "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm",
    "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "triangular_solve", "vecdot",
    "vector_norm",
]  # fmt: skip

if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("linalg")
__dir__ = hints.listing(__all__)

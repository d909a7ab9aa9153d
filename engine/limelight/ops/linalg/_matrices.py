"""What the families of linear algebra share: shape rules, and kernels that say which matrix LAPACK objects to.

All but norms and products take floats of 32 bits or more (`accepts="wide"`), as LAPACK does. A matrix without an
inverse or a Cholesky factor raises LinAlgError (which is NumPy's, too) and says where in a stack it is. Backends that
cannot look at values give NaN instead.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import numpy as np

from limelight.core import backends, dtypes, shapes, value_checks
from limelight.core.backends import is_cupy
from limelight.core.dtypes import DType
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor
from limelight.errors import LinAlgError, ShapeError
from limelight.ops._gradient_terms import zeros
from limelight.ops._kernel_parts import add_reduce

Kernel = Callable[..., Any]
_REAL: Final = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}


def H(x: Tensor) -> Tensor:
    """The conjugate transpose of the last two axes."""
    return x.conj().mT


def identity_like(x: Tensor) -> Tensor:
    """The identity in the shape and dtype of square matrices, whose sizes may be unknown while tracing."""
    ones = zeros(x.dtype, x.sizes()) + 1
    identity: Tensor = ones._tril()._triu()
    return identity


def reciprocal(x: Tensor) -> Tensor:
    """1 / x, but 0 where x is 0, and so are its derivatives."""
    zero = x == 0
    return zero.where(0, 1 / zero.where(1, x))


def sum_of_terms(terms: Sequence[Tensor]) -> Tensor:
    """The sum of one or more tensors."""
    return functools.reduce(operator.add, terms)


def real_dtype(dtype: DType) -> DType:
    """The dtype of magnitudes."""
    return _REAL.get(dtype, dtype)


def check_matrix(name: str, x: TensorSpec) -> None:
    """Raises ShapeError unless `x` has two axes at least; `name` is the op's."""
    if x.rank < 2:
        raise ShapeError(f"{name}: {x} is no matrix: it needs two axes at least; use reshape or expand_dims")


def check_square(name: str, x: TensorSpec) -> None:
    """Raises ShapeError unless the last two axes of `x` have one size."""
    check_matrix(name, x)
    if None not in x.shape[-2:] and x.shape[-2] != x.shape[-1]:
        raise ShapeError(f"{name}: {x} is not square: its last two axes have sizes {x.shape[-2]} and {x.shape[-1]}")


def side_length(x: TensorSpec) -> int | None:
    """The size of a square matrix, known if one of its axes is."""
    return x.shape[-1] if x.shape[-2] is None else x.shape[-2]


def square_to_square(name: str) -> Callable[..., TensorSpec]:
    """A square matrix gives one of the same shape."""

    def infer(x: TensorSpec, *attrs: Any) -> TensorSpec:
        check_square(name, x)
        return known(x.shape, x.dtype)

    return infer


def smaller(shape: Shape) -> int | None:
    """The smaller one of the last two sizes; None where that is unknown."""
    rows, columns = shape[-2:]
    if 0 in (rows, columns):
        return 0
    return None if rows is None or columns is None else min(rows, columns)


def right_side(name: str, a: TensorSpec, b: TensorSpec) -> TensorSpec:
    """The shape of X in A X = B: `a` is (..., M, M), `b` (..., M, K) or, as a single column, (M,)."""
    check_square(name, a)
    if not b.rank:
        raise ShapeError(f"{name}: {a} and {b}: the right side must be a vector or a matrix, not a scalar")
    m, rows = side_length(a), b.shape[-2] if b.rank > 1 else b.shape[-1]
    if None not in (m, rows) and m != rows:
        raise ShapeError(
            f"{name}: {a} and {b}: the matrix has {m} rows, the right side {rows}; they must be equal "
            "(transpose one of them, or reshape; a stack of vectors needs a last axis of size 1)"
        )
    if b.rank == 1:
        return known((*a.shape[:-2], rows if m is None else m), b.dtype)
    lead = shapes.broadcast(name, a.shape[:-2], b.shape[:-2])
    return known((*lead, rows if m is None else m, b.shape[-1]), b.dtype)


def lapack(infer: Callable[..., Any], name: str, complaint: str) -> Callable[[Kernel], Kernel]:
    """Makes a kernel quiet about overflow, and turns what NumPy raises for the values into LinAlgError.

    `complaint` goes on from "the matrix": what is wrong with it, then what to do. `infer` is the op's shape rule, which
    has the first word where shapes are to blame.
    """

    def wrap(kernel: Kernel) -> Kernel:
        @functools.wraps(kernel)
        def run(xp: Any, *arguments: Any) -> Any:
            with np.errstate(all="ignore"), _raising(xp):
                try:
                    return _checked_results(kernel(xp, *arguments), arguments)
                except np.linalg.LinAlgError as error:
                    specs = [x if isinstance(x, (bool, str)) else _spec_of(x) for x in arguments]
                    infer(*specs)
                    place = _first_failing(lambda x: kernel(xp, x, *arguments[1:]), arguments[0])
                    raise LinAlgError(_failure_message(name, arguments[0], specs, place, complaint)) from error

        return run

    return wrap


def _raising(xp: Any) -> AbstractContextManager[Any]:
    """A block in which the library says that it has failed: CuPy has to be asked to, and then waits for the device."""
    if not is_cupy(xp):
        return nullcontext()
    gpu: Any = backends.load("cupy")
    return gpu.raising()  # type: ignore[no-any-return]


def _checked_results(results: Any, arguments: Sequence[Any]) -> Any:
    """`results`; of JAX, which gives NaN or infinity instead of an error, an error unless the operands have these."""
    parts = results if isinstance(results, tuple) else (results,)
    if not hasattr(parts[0], "at"):
        return results
    given = [x for x in arguments if hasattr(x, "at") and x.dtype.kind in "fc"]
    for part in parts:
        if part.dtype.kind not in "fc" or not value_checks.any_wrong(part, functools.partial(_not_finite, part)):
            continue
        if not any(bool(_not_finite(x).any()) for x in given):
            raise np.linalg.LinAlgError("no result")
    return results


def _not_finite(x: Any) -> Any:
    return ~(abs(x) < np.inf)


def check_finite(x: Any) -> Any:
    """`x`; raises NumPy's LinAlgError where it holds NaN or infinity, on which iterations of LAPACK may never end."""
    if isinstance(x, np.ndarray):
        total = add_reduce(x, None)
        if not total - total == 0 and not np.isfinite(x).all():  # a sum of finite numbers may be infinite
            raise np.linalg.LinAlgError("NaN or infinity")
    return x


def _first_failing(run: Kernel, x: Any) -> tuple[int, ...] | None:
    """Where in a stack of matrices the first one is that `run` fails on."""
    for place in np.ndindex(x.shape[:-2]):
        try:
            run(x[place])
        except np.linalg.LinAlgError:
            return place
    return None


def _spec_of(x: Any) -> TensorSpec:
    return known(x.shape, dtypes.dtype(x.dtype)) if hasattr(x, "shape") else known((), dtypes.default_for(x))


def _failure_message(name: str, x: Any, specs: list[Any], place: tuple[int, ...] | None, complaint: str) -> str:
    operands = " and ".join(str(spec) for spec in specs if isinstance(spec, TensorSpec) and spec.rank > 1)
    which = f"the matrix at {list(place)}" if place else "the matrix"
    bad = x[place] if place else x
    if not (abs(bad) < np.inf).all():
        return f"{name}: {operands}: {which} holds NaN or infinity; look for where they come from, or mask them"
    return f"{name}: {operands}: {which} {complaint}"

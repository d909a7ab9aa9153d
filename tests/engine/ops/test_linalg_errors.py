"""What linear algebra refuses, and in which words: the same eagerly and staged."""

from __future__ import annotations

import re

import numpy as np
import pytest

import limelight as ll
from limelight import linalg
from limelight.errors import ArgumentError, DTypeError, LinAlgError, ShapeError

WIDE, SQUARE = ll.ones((2, 3)), ll.eye(2)
SHAPES = {
    "cholesky": (linalg.cholesky, (WIDE,), r"cholesky: f32\[2,3\] is not square"),
    "inv": (linalg.inv, (ll.ones(3),), r"inv: f32\[3\] is no matrix"),
    "det": (linalg.det, (WIDE,), r"det: f32\[2,3\] is not square: its last two axes have sizes 2 and 3"),
    "slogdet": (linalg.slogdet, (WIDE,), "slogdet: .* is not square"),
    "eigh": (linalg.eigh, (WIDE,), "eigh: .* is not square"),
    "eig": (linalg.eig, (WIDE,), "eig: .* is not square"),
    "eigvals": (linalg.eigvals, (WIDE,), "eigvals: .* is not square"),
    "expm": (linalg.expm, (WIDE,), "expm: .* is not square"),
    "qr": (linalg.qr, (ll.ones(3),), "qr: .* is no matrix"),
    "svd": (linalg.svd, (ll.ones(3),), "svd: .* is no matrix"),
    "svdvals": (linalg.svdvals, (ll.ones(3),), "svdvals: .* is no matrix"),
    "pinv": (linalg.pinv, (ll.ones(3),), "pinv: .* is no matrix"),
    "matrix_power": (lambda x: linalg.matrix_power(x, 2), (WIDE,), "matrix_power: .* is not square"),
    "matrix_norm": (linalg.matrix_norm, (ll.ones(3),), "matrix_norm: .* is no matrix"),
    "norm": (lambda x: linalg.norm(x, ord=1), (ll.ones((2, 2, 2)),), "norm: .*neither a vector nor a matrix"),
    "solve": (linalg.solve, (SQUARE, ll.ones(3)), r"solve: f32\[2,2\] and f32\[3\]: the matrix has 2 rows, the right"),
    "solve stack": (linalg.solve, (ll.ones((3, 2, 2)), ll.ones((2, 2, 1))), "solve: .*do not broadcast: axis -1 has"),
    "solve scalar": (linalg.solve, (SQUARE, ll.constant(1.0)), "solve: .*not a scalar"),
    "triangular": (linalg.triangular_solve, (SQUARE, ll.ones((3, 1))), "triangular_solve: .* 2 rows, the right side 3"),
    "lstsq": (linalg.lstsq, (WIDE, ll.ones(3)), "lstsq: .*the matrix has 2 rows, the right side 3"),
    "vecdot": (ll.vecdot, (ll.ones(3), ll.ones(1)), r"vecdot: axis -1 of f32\[3\] has size 3, that of f32\[1\] has 1"),
    "cross": (linalg.cross, (ll.ones(2), ll.ones(2)), r"cross: axis -1 of f32\[2\] and f32\[2\] must have size 3"),
    "multi_dot": (lambda *x: linalg.multi_dot(x), (ll.ones((2, 2, 2)), SQUARE), "multi_dot: matrix 0 is"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_refused_in_the_same_words_eagerly_and_staged(name):
    function, given, message = SHAPES[name]
    with pytest.raises(ShapeError, match=message) as eager:
        function(*given)
    with pytest.raises(ShapeError, match=message) as staged:
        ll.function(function)(*given)
    assert staged.value.bare.startswith(eager.value.bare)
    signature = [ll.TensorSpec((None,) * x.ndim) for x in given]
    with pytest.raises(ShapeError):  # when it runs, from the op in question, or one that it is made of
        ll.function(function, input_signature=signature)(*given)


SINGULAR = ll.constant(np.stack([np.eye(2), np.ones((2, 2))]))
VALUES = {
    "inv": (linalg.inv, (SINGULAR,), r"inv: f64\[2,2,2\]: the matrix at \[1\] is singular: .* linalg.pinv"),
    "solve": (linalg.solve, (SINGULAR, ll.constant(np.ones(2))), r"solve: .*: the matrix at \[1\] is singular"),
    "cholesky": (linalg.cholesky, (-SINGULAR,), r"cholesky: .*the matrix at \[0\] is not positive definite.*use eigh"),
    "svd": (linalg.svd, (SINGULAR * float("nan"),), r"svd: .*the matrix at \[0\] holds NaN or infinity"),
    "pinv": (linalg.pinv, (SINGULAR * float("inf"),), r"pinv: .*the matrix at \[0\] holds NaN or infinity"),
    "eig": (linalg.eig, (SINGULAR[0] * float("nan"),), r"eig: f64\[2,2\]: the matrix holds NaN or infinity"),
    "power": (lambda x: linalg.matrix_power(x, -1), (SINGULAR,), "(inv|matrix_power): .*is singular"),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_refused_with_the_matrix_that_is_to_blame(name):
    function, given, message = VALUES[name]
    with pytest.raises(LinAlgError, match=message) as eager:
        function(*given)
    with pytest.raises(LinAlgError, match=message) as staged:
        ll.function(function)(*given)
    said = [error.value.bare.partition(":")[2] for error in (staged, eager)]  # a graph knows ops, not what they are of
    assert said[0] == said[1]
    assert re.search(r"; in \w+\(.*\) of .*line \d+", str(staged.value)), (
        "and which op of which function, at which line"
    )
    assert isinstance(eager.value, np.linalg.LinAlgError)
    with pytest.raises(LinAlgError, match=message), ll.GradientTape() as tape:
        tape.watch(given[0])
        function(*given)


EVERY = [
    *(linalg.cholesky, linalg.qr, linalg.svd, linalg.svdvals, linalg.eigh, linalg.eigvalsh, linalg.eig, linalg.eigvals),
    *(linalg.inv, linalg.det, linalg.slogdet, linalg.logdet, linalg.pinv, linalg.matrix_rank, linalg.expm),
    *(lambda x: linalg.solve(x, x), lambda x: linalg.triangular_solve(x, x), lambda x: linalg.lstsq(x, x)),
]


@pytest.mark.parametrize("function", EVERY)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "bool"])
def test_lapack_has_nothing_for_short_floats_and_integers(function, dtype):
    x = ll.eye(2).astype(dtype)
    with pytest.raises(DTypeError, match=r"needs floating .*got \w+; write ll.astype\(x, ll.float32\) first") as eager:
        function(x)
    with pytest.raises(DTypeError) as staged:
        ll.function(function)(x)
    assert staged.value.bare == eager.value.bare
    function(x.astype(ll.float32))


@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_norms_are_of_floating_numbers(dtype):
    for function in (linalg.vector_norm, linalg.matrix_norm, linalg.norm):
        with pytest.raises(DTypeError, match=f"needs floating or complex operands, got {dtype}"):
            function(ll.eye(2).astype(dtype))


def test_arguments_are_refused():
    with pytest.raises(ArgumentError, match="qr: mode 'r' is not known"):
        linalg.qr(SQUARE, mode="r")
    with pytest.raises(ArgumentError, match="matrix_norm: ord 3 is not known; write one of 'fro', 'nuc', 1"):
        linalg.matrix_norm(SQUARE, ord=3)
    with pytest.raises(ArgumentError, match="vector_norm: ord must be a number, got 'fro'"):
        linalg.vector_norm(SQUARE, ord="fro")
    with pytest.raises(ArgumentError, match=r"norm: axis \(0, 1, 2\) must be one axis"):
        linalg.norm(ll.ones((2, 2, 2)), axis=(0, 1, 2))
    with pytest.raises(ArgumentError, match="twice"):
        linalg.norm(SQUARE, axis=(0, -2))
    with pytest.raises(ArgumentError, match=r"the power must be an int, got 0\.5"):
        linalg.matrix_power(SQUARE, 0.5)
    with pytest.raises(ArgumentError, match="multi_dot: needs at least two matrices, got 1"):
        linalg.multi_dot([SQUARE])
    with pytest.raises(ArgumentError, match=r"vecdot: axis 0 of .*count it from the end, down to -1"):
        ll.vecdot(SQUARE, ll.ones(2), axis=0)
    with pytest.raises(ArgumentError, match=r"cross: .*scalars are no vectors"):
        linalg.cross(ll.constant(1.0), ll.constant(1.0))
    with pytest.raises(DTypeError, match=r"logdet needs floating operands, got complex64; write linalg.slogdet"):
        linalg.logdet(SQUARE.astype("complex64"))


ITERATIVE = [
    *(linalg.svd, linalg.svdvals, linalg.eigh, linalg.eigvalsh, linalg.eig, linalg.eigvals, linalg.pinv),
    *(linalg.matrix_rank, lambda x: linalg.pinv(x, hermitian=True), lambda x: linalg.matrix_norm(x, ord="nuc")),
]


@pytest.mark.parametrize("function", ITERATIVE)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_iterations_end_for_nan_and_infinity(function, bad):
    """LAPACK's own, given infinity, may not: NumPy's svd of such a matrix hangs."""
    x = np.array([[1.0, bad, 0.0], [bad, 2.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(LinAlgError, match="the matrix holds NaN or infinity"):
        function(x)
    assert function(np.full((3, 3), 1e308)) is not None, "a sum that overflows is none"

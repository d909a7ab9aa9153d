"""Linear algebra beyond the cases: what factors must satisfy, kinks and degenerate values, options, sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_kinks import slope

import limelight as ll
from limelight import linalg

DTYPES = ["float32", "float64", "complex64", "complex128"]
CLOSE = {"float32": 2e-5, "complex64": 4e-5, "float64": 1e-12, "complex128": 1e-12}


def drawn(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    found = rng.standard_normal(shape)
    return (found + 1j * rng.standard_normal(shape) if dtype.startswith("c") else found).astype(dtype)


def h(x):
    return ll.conj(x).mT


def near(found, wanted, dtype, factor=10):
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=0, atol=factor * CLOSE[dtype])


# --- what factors must satisfy

MATRICES = st.tuples(
    st.lists(st.integers(0, 2), max_size=2), st.integers(0, 4), st.integers(0, 4), st.sampled_from(DTYPES)
)


@settings(max_examples=30, deadline=None)
@given(MATRICES, st.booleans())
def test_factors_make_up_the_matrix_and_bases_are_orthonormal(given_shape, full):
    lead, m, n, dtype = given_shape
    x = ll.constant(drawn((*lead, m, n), dtype))
    k = min(m, n)
    q, r = linalg.qr(x, mode="complete" if full else "reduced")
    u, s, vh = linalg.svd(x, full_matrices=full)
    near(q @ r, x, dtype)
    near((u[..., :k] * s.astype(x.dtype)[..., None, :]) @ vh[..., :k, :], x, dtype)
    near(h(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*lead, *q.shape[-1:] * 2)), dtype)
    near(h(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*lead, *u.shape[-1:] * 2)), dtype)
    near(r, ll.triu(r), dtype, 0)
    near(linalg.svdvals(x), s, dtype)


@settings(max_examples=20, deadline=None)
@given(MATRICES)
def test_pseudo_inverses_satisfy_penroses_conditions(given_shape):
    lead, m, n, dtype = given_shape
    x = ll.constant(drawn((*lead, m, n), dtype, 5))
    p = linalg.pinv(x)
    across, along = x @ p, p @ x
    size = 1 + float(np.max(np.abs(p.numpy()), initial=0)) ** 2
    for found, wanted in ((across @ x, x), (along @ p, p), (h(across), across), (h(along), along)):
        near(found / size, wanted.numpy() / size, dtype, 100)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors_are_multiplied_by_their_eigenvalues(dtype):
    x = ll.constant(drawn((2, 4, 4), dtype))
    w, v = linalg.eig(x)
    assert w.dtype is v.dtype is ll.constant(np.zeros((), dtype)).astype(v.dtype).dtype
    near(x.astype(v.dtype) @ v, v * w[..., None, :], dtype)
    w, v = linalg.eigh(x + h(x))
    near((x + h(x)) @ v, v * w.astype(v.dtype)[..., None, :], dtype)
    assert bool((w[..., 1:] >= w[..., :-1]).all())


def test_results_carry_the_standards_names():
    x = ll.eye(2)
    assert linalg.qr(x)._fields == ("Q", "R")
    assert linalg.svd(x)._fields == ("U", "S", "Vh")
    assert linalg.eigh(x)._fields == linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")
    staged = ll.function(linalg.svd)(x)
    assert staged._fields == ("U", "S", "Vh")
    assert linalg.svd(ll.ones((3, 2))).U.shape == (3, 3), "full is the standard's default"


# --- triangular systems


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_blas_and_substitution_agree_whatever_the_layout(dtype, adjoint, upper):
    """BLAS solves as many as a matrix has rows; it reads one triangle alone."""
    a = drawn((2, 12, 12), dtype) + 6 * np.eye(12, dtype=dtype)
    b = drawn((12, 3), dtype, 1)
    triangle = np.triu(a) if upper else np.tril(a)
    wanted = np.linalg.solve(np.conj(triangle.swapaxes(1, 2)) if adjoint else triangle, b)
    for layout in (np.array, np.asfortranarray):
        found = linalg.triangular_solve(layout(a), layout(b), upper=upper, adjoint=adjoint)
        near(found, wanted, dtype)
    found = linalg.triangular_solve(a[:, ::-1, ::-1].copy()[:, ::-1, ::-1], b, upper=upper, adjoint=adjoint)
    near(found, wanted, dtype)
    many = linalg.triangular_solve(np.broadcast_to(a[:1], (13, 12, 12)), b, upper=upper, adjoint=adjoint)
    near(many, np.broadcast_to(wanted[:1], (13, 12, 3)), dtype)


@pytest.mark.parametrize("stack", [1, 9])
def test_a_zero_on_the_diagonal_gives_infinity_and_no_error(stack):
    n = 4
    a = np.eye(n)
    a[-1, -1] = 0
    found = linalg.triangular_solve(np.broadcast_to(a, (stack, n, n)), np.ones(n)).numpy()[-1]
    assert found[:-1].tolist() == [1.0] * (n - 1)
    assert found[-1] == np.inf
    assert np.isfinite(linalg.triangular_solve(a, np.ones(n), unit_diagonal=True).numpy()).all()


# --- determinants of singular matrices


def derivatives(function, array, orders):
    """The sums of the gradients of the sums of the gradients ... of function(x), each by a tape around the others."""
    x = ll.constant(array)

    def order(n):
        if n == 0:
            return function(x)
        with ll.GradientTape() as tape:
            tape.watch(x)
            below = order(n - 1).sum()
        return tape.gradient(below, x)

    return [order(n).numpy() for n in orders]


def permanent_like(x):
    """The determinant of 3 x 3 matrices by Sarrus' rule: a polynomial, so all its derivatives are exact."""
    a, b, c = x[0], x[1], x[2]
    cross = ll.stack([b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]])
    return (a * cross).sum()


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_first_and_second_derivatives_of_det_are_exact_at_any_rank(rank):
    array = drawn((3, rank), "float64", 2) @ drawn((rank, 3), "float64", 3)
    found, wanted = (derivatives(f, array, (1, 2)) for f in (linalg.det, permanent_like))
    for mine, exact in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, exact, atol=1e-12)


def test_the_gradient_of_a_determinant_of_nan_is_nan():
    assert np.isnan(slope(linalg.det, [[1.0, float("nan")], [0.0, 1.0]])).all()
    g = np.array(slope(linalg.det, [[[2.0, 0.0], [0.0, 3.0]], [[1.0, float("nan")], [0.0, 1.0]]]))
    np.testing.assert_allclose(g[0], [[3.0, 0.0], [0.0, 2.0]])


def test_third_derivatives_of_det_are_exact_or_nan():
    regular, singular = np.diag([1.0, 2.0, 3.0]), np.diag([1.0, 2.0, 0.0])
    (found,), (wanted,) = (derivatives(f, regular, (3,)) for f in (linalg.det, permanent_like))
    np.testing.assert_allclose(found, wanted, atol=1e-11)
    assert np.isnan(derivatives(linalg.det, singular, (3,))[0]).any()


def test_determinants_that_overflow_are_infinite_and_silent(recwarn):
    assert linalg.det(1e30 * ll.eye(3)).item() == math.inf
    assert linalg.slogdet(1e30 * ll.eye(3)).logabsdet.item() == pytest.approx(3 * math.log(1e30))
    assert not recwarn.list


def test_a_singular_matrix_has_logarithm_minus_infinity_and_gradient_nan():
    stack = ll.constant(np.stack([np.eye(2), np.ones((2, 2))]))
    with ll.GradientTape() as tape:
        tape.watch(stack)
        sign, size = linalg.slogdet(stack)
    assert (sign.tolist(), size.tolist()) == ([1.0, 0.0], [0.0, -math.inf])
    g = tape.gradient(size, stack).numpy()
    np.testing.assert_array_equal(g[0], np.eye(2))
    assert np.isnan(g[1]).all(), "and the regular one beside it is not touched"
    assert math.isnan(linalg.logdet(ll.constant([[0.0, 1.0], [1.0, 0.0]])).item())


# --- equal singular values and eigenvalues


def test_equal_values_leave_gradients_finite():
    identity = np.eye(3)
    assert slope(lambda x: linalg.svdvals(x).sum(), identity.tolist()) == identity.tolist()
    assert slope(lambda x: linalg.eigvalsh(x).sum(), identity.tolist()) == identity.tolist()
    projector = slope(lambda x: linalg.eigh(x).eigenvectors @ linalg.eigh(x).eigenvectors.mT, identity.tolist())
    np.testing.assert_allclose(projector, np.zeros((3, 3)), atol=1e-15)


def test_a_svd_put_together_again_is_the_identity_to_gradients():
    def together(x):
        u, s, vh = linalg.svd(x)
        return ((u * s) @ vh * ll.constant(weights)).sum()

    x, weights = drawn((3, 3), "float64"), drawn((3, 3), "float64", 1)
    np.testing.assert_allclose(slope(together, x.tolist()), weights, atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        linalg.cholesky,
        lambda x: linalg.eigh(x).eigenvalues,
        lambda x: linalg.eigh(x).eigenvectors ** 2 * ll.constant([[0.0, 1.0, 2.0], [5.0, 0.0, 1.0], [0.0, 0.0, 0.0]]),
        lambda x: linalg.pinv(x, hermitian=True) * ll.constant([[0.0, 1.0, 2.0], [5.0, 0.0, 1.0], [0.0, 0.0, 0.0]]),
    ],
    ids=["cholesky", "eigenvalues", "eigenvectors", "pinv"],
)
def test_the_gradient_of_a_hermitian_matrix_is_hermitian_though_one_triangle_is_read(function):
    x = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]])
    g = np.array(slope(function, x.tolist()))
    np.testing.assert_allclose(g, g.T, atol=1e-14)
    np.testing.assert_array_equal(function(ll.constant(np.tril(x))), function(ll.constant(x)))


def test_nuclear_norm_at_zero_and_at_low_rank():
    assert np.isfinite(slope(lambda x: linalg.matrix_norm(x, ord="nuc"), np.zeros((2, 3)).tolist())).all()
    x = np.outer([1.0, 2.0], [2.0, 0.0, 1.0])
    g = np.array(slope(lambda x: linalg.matrix_norm(x, ord="nuc"), x.tolist()))
    assert np.sum(g * x) == pytest.approx(np.linalg.norm(x, "nuc")), "a subgradient of a norm gives the norm back"


# --- norms at zero


@pytest.mark.parametrize("order", [2, 1, 3, 0.5, -1, math.inf, -math.inf, 1.5])
def test_vector_norms_have_finite_gradients_at_zero(order):
    assert np.isfinite(slope(lambda x: linalg.vector_norm(x, ord=order), [0.0, 0.0])).all()
    assert np.isfinite(slope(lambda x: linalg.vector_norm(x, ord=order), [0.0, 2.0])).all()


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
def test_matrix_norms_have_finite_gradients_at_zero(order):
    assert np.isfinite(slope(lambda x: linalg.matrix_norm(x, ord=order), np.zeros((2, 2)).tolist())).all()


def test_the_gradient_of_a_euclidean_norm_is_zero_at_zero():
    assert slope(linalg.vector_norm, [0.0, 0.0]) == [0.0, 0.0]
    rows = slope(lambda x: linalg.vector_norm(x, axis=1), [[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(rows, [[0.0, 0.0], [0.6, 0.8]])
    assert slope(lambda x: linalg.vector_norm(x, ord=0), [1.0, 0.0]) is None


def test_norms_overflow_to_infinity_silently():
    """A warning from NumPy's own modules would be an error here."""
    huge = ll.constant(np.full((3, 3), 1.7e308))
    for order in (1, 2, 3, -1):
        assert linalg.vector_norm(huge, ord=order).item() == (math.inf if order > 0 else pytest.approx(1.7e308 / 9))
    assert linalg.matrix_norm(huge, ord=1).item() == linalg.vector_norm(huge, axis=0).max().item() == math.inf


def test_norms_of_nothing():
    assert linalg.vector_norm(ll.zeros((0,)), ord=math.inf).item() == 0.0
    assert linalg.norm(ll.zeros((2, 0)), axis=1).tolist() == [0.0, 0.0]
    assert linalg.matrix_norm(ll.zeros((0, 3)), ord=2).item() == 0.0
    with pytest.raises(ll.errors.ShapeError, match="no elements"):
        linalg.vector_norm(ll.zeros((0,)), ord=-math.inf)


def test_short_floats_have_norms_summed_in_float32():
    x = ll.full((4096,), 1.0, dtype="float16")
    found = linalg.vector_norm(x, ord=1)
    assert (found.item(), found.dtype.name) == (4096.0, "float16")


# --- functions of matrices


def test_exponentials_of_a_stack_are_scaled_one_by_one():
    stack = np.stack([np.eye(2), 40 * np.array([[0.0, 1.0], [-1.0, 0.0]]), np.full((2, 2), np.nan)])
    found = linalg.expm(stack).numpy()
    np.testing.assert_allclose(found[0], np.e * np.eye(2))
    turned = [[math.cos(40), math.sin(40)], [-math.sin(40), math.cos(40)]]
    np.testing.assert_allclose(found[1], turned, atol=1e-13)
    assert np.isnan(found[2]).all()
    np.testing.assert_allclose(linalg.expm(np.diag([700.0, -700.0])), np.diag(np.exp([700.0, -700.0])), rtol=1e-11)


def test_matrix_powers_take_few_products():
    graph = ll.function(lambda x: linalg.matrix_power(x, 100)).get_concrete_function(ll.TensorSpec((2, 2))).graph
    assert sum(node.op == "matmul" for node in graph.nodes) == 8
    unknown = ll.function(lambda x: linalg.matrix_power(x, 0), input_signature=[ll.TensorSpec((None, None))])
    assert unknown(ll.zeros((2, 2))).tolist() == np.eye(2).tolist()


def test_long_products_take_the_cheapest_order():
    sizes = [(30, 35), (35, 15), (15, 5), (5, 10), (10, 20), (20, 25)]  # the textbook's: 15,125 multiplications
    matrices = [ll.constant(drawn(size, "float64", i)) for i, size in enumerate(sizes)]
    np.testing.assert_allclose(linalg.multi_dot(matrices), np.linalg.multi_dot([m.numpy() for m in matrices]))
    graph = ll.function(lambda *xs: linalg.multi_dot(xs)).get_concrete_function(*[m.spec for m in matrices]).graph
    products = [node for node in graph.nodes if node.op == "matmul"]
    assert sum(node.inputs[0].spec.size * node.inputs[1].spec.shape[1] for node in products) == 15125
    unknown = ll.function(lambda *xs: linalg.multi_dot(xs), input_signature=[ll.TensorSpec((None, None))] * 3)
    assert unknown(ll.ones((1, 2)), ll.ones((2, 3)), ll.ones((3, 1))).tolist() == [[6.0]]


# --- ranks and least squares


def test_ranks_by_tolerance():
    stack = ll.constant(np.stack([np.diag([1.0, 1e-3]), np.zeros((2, 2)), np.eye(2)]))
    assert linalg.matrix_rank(stack).tolist() == [2, 0, 2]
    assert linalg.matrix_rank(stack, rtol=1e-2).tolist() == [1, 0, 2]
    assert linalg.matrix_rank(stack, rtol=np.array([1e-2, 0.0, 2.0])).tolist() == [1, 0, 0]
    assert linalg.matrix_rank(-stack, hermitian=True).tolist() == [2, 0, 2]
    assert linalg.matrix_rank(ll.zeros((2, 0, 3))).tolist() == [0, 0]
    np.testing.assert_allclose(linalg.pinv(stack, rtol=np.array([1e-2, 0.0, 0.0]))[0], np.diag([1.0, 0.0]))


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
def test_least_squares_as_numpy_has_them(shape):
    a, b = drawn(shape, "float64"), drawn((shape[0], 2), "float64", 1)
    found, wanted = linalg.lstsq(a, b), np.linalg.lstsq(a, b)
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs if np.size(theirs) else 0, atol=1e-12)
    np.testing.assert_allclose(linalg.lstsq(a, b[:, 0]).solution, wanted[0][:, 0])

"""Quantiles, histograms, Kronecker products, closeness and choices are those of NumPy, staged and of unknown sizes."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype("float32")
pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every way is staged anew


def ways(function, x):
    """The function eagerly, staged, and staged for tensors of unknown sizes."""
    staged = ll.function(function, input_signature=[ll.TensorSpec((None,) * x.ndim, x.dtype)])
    return [f(ll.constant(x)).numpy() for f in (function, ll.function(function), staged)]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("q", [0.5, 0.0, 1.0, [0.1, 0.25, 0.9]])
def test_quantiles_are_those_of_numpy(q, axis, keepdims):
    wanted = np.quantile(X, q, axis=axis, keepdims=keepdims)
    for found in ways(lambda x: ll.quantile(x, q, axis=axis, keepdims=keepdims), X):
        assert found.shape == wanted.shape
        assert np.allclose(found, wanted, atol=1e-6)
    if q == 0.5:
        assert np.allclose(ll.median(X, axis=axis, keepdims=keepdims).numpy(), wanted)


def test_quantiles_of_what_is_not_finite():
    assert ll.median([1.0, 2.0, np.inf]).item() == 2.0
    assert ll.quantile([-np.inf, 0.0, 5.0], [0.5, 1.0]).tolist() == [0.0, 5.0]
    assert np.isnan(ll.median([[1.0, np.nan, 2.0], [1.0, 2.0, 3.0]], axis=1).numpy()).tolist() == [True, False]
    assert ll.median(ll.constant([1.0, 3.0], "bfloat16")).dtype == ll.bfloat16


def test_quantiles_have_gradients_of_both_orders():
    x = ll.constant([0.3, 2.0, 1.1, -0.7])
    assert ll.gradcheck(lambda x: ll.quantile(x * x, [0.3, 0.8]), x).ok
    assert ll.grad(ll.median)(x).tolist() == [0.5, 0.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ll.quantile(X, 1.5), "quantile: q must be a number from 0 to 1, or a vector of such, got 1.5"),
        (lambda: ll.quantile(X, "half"), "quantile: q must be a number from 0 to 1, or several, got 'half'"),
        (lambda: ll.median(X[:0], axis=0), r"median: f32\[0,4,5\] has no elements along axis 0"),
        (lambda: ll.median([1j, 2]), "median needs real operands"),
        (lambda: ll.bincount([[1]]), r"bincount: i32\[1,1\] must be a vector"),
        (lambda: ll.bincount([1, -1]), "-1 is below 0"),
        (lambda: ll.bincount([1], -1), "bincount: minlength must be at least 0"),
        (lambda: ll.histogram(X, 0), "histogram: bins must be at least 1, got 0"),
        (lambda: ll.histogram(X, [2.0, 1.0]), "histogram: bins must be at least two edges in ascending order"),
        (lambda: ll.histogram(X, 3, (1.0, 0.0)), r"histogram: range must be \(least, largest\)"),
        (lambda: ll.random.choice(0), "choice: needs a positive int or a tensor with a first axis, got 0"),
        (lambda: ll.random.choice(3, (4,), replace=False), r"\(4,\) is more than the 3 there are, and replace=False"),
        (lambda: ll.random.choice(3, p=[0.5, 0.5]), "choice: p must have a probability for each of 3, got"),
    ],
)
def test_what_has_no_meaning_is_refused(call, said):
    with pytest.raises(ll.errors.LimelightError, match=said):
        call()


def test_counts_are_those_of_numpy():
    ids = np.array([3, 0, 3, 1], "int64")
    for found in ways(ll.bincount, ids):
        assert found.tolist() == [1, 1, 0, 2]
    for bins, limits in ((4, None), (3, (-1.0, 0.5)), ([-1.0, 0.0, 2.0], None)):
        wanted = np.histogram(X, bins, limits)
        for i in (0, 1):
            for found in ways(lambda x, i=i, bins=bins, limits=limits: ll.histogram(x, bins, limits)[i], X):
                assert np.allclose(found, wanted[i])


@pytest.mark.parametrize(
    ("m", "n"), [((2, 3), (4, 2)), ((3,), (2, 2)), ((), (3,)), ((0, 2), (2, 2)), ((2, 1, 2), (3, 2))]
)
def test_kronecker_products_are_those_of_numpy(m, n):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=m), rng.normal(size=n)
    for found in ways(lambda x: ll.kron(x, b), a):
        assert np.array_equal(found, np.kron(a, b))
    if a.size:
        assert ll.gradcheck(ll.kron, ll.constant(a), ll.constant(b)).ok


def test_closeness_is_that_of_numpy():
    inf, nan = np.inf, np.nan
    pairs = [
        ([1.0, 2.0], [1.0, 2.000001]),
        ([1.0], [1.1]),
        ([inf], [inf]),
        ([1.0], [inf]),
        ([inf], [1.0]),
        ([nan], [nan]),
    ]
    for a, b in pairs:
        for options in ({}, {"equal_nan": True}, {"rtol": 0.5}):
            found = ll.allclose(ll.constant(a), ll.constant(b), **options)
            assert bool(found) == np.allclose(a, b, **options)
            assert bool(ll.function(lambda x, b=b, o=options: ll.allclose(x, ll.constant(b), **o))(a)) == bool(found)
    assert bool(ll.allclose(ll.constant([1, 2], "uint8"), ll.constant([1, 2], "uint8")))
    assert not bool(ll.allclose(ll.constant([1], "uint8"), ll.constant([255], "uint8")))
    assert bool(ll.allclose(ll.constant([True]), ll.constant([True])))


def test_choices():
    g = ll.random.Generator(3)
    rows = ll.constant(X)
    assert g.choice(rows, (2, 2)).shape == (2, 2, 4, 5)
    assert g.choice(7).shape == ()
    assert set(g.choice(3, (200,)).tolist()) == {0, 1, 2}
    assert sorted(g.choice(5, (5,), replace=False).tolist()) == [0, 1, 2, 3, 4]
    shares = np.bincount(g.choice(3, (20_000,), p=[0.2, 0.0, 0.6]).numpy(), minlength=3) / 20_000
    assert np.abs(shares - [0.25, 0.0, 0.75]).max() < 0.02
    firsts = [g.choice(3, (2,), replace=False, p=[0.1, 0.0, 0.9]).tolist() for _ in range(50)]
    assert all(sorted(chosen) == [0, 2] for chosen in firsts)
    assert sum(chosen[0] == 2 for chosen in firsts) > 35
    assert ll.function(lambda x: ll.random.choice(x, (4,), p=[0.0, 1.0, 0.0]))(rows).shape == (4, 4, 5)


def test_a_median_between_infinities_and_numbers():
    inf, nan = np.inf, np.nan
    columns = np.array([[-inf, 1.0], [1.0, inf], [inf, inf], [-inf, -inf], [-inf, inf], [nan, inf], [1e308, 1.7e308]]).T
    with np.errstate(all="ignore"):
        expected = np.median(columns[:, :-1], axis=0)
    x = ll.constant(columns)
    np.testing.assert_array_equal(ll.median(x, axis=0).numpy(), [*expected, 1.35e308])
    np.testing.assert_array_equal(ll.quantile(x, 0.25, axis=0).numpy(), [*expected, 1.175e308])
    np.testing.assert_array_equal(ll.grad(lambda x: ll.sum(ll.median(x, axis=0)[:2]))(x).numpy()[:, 0], [0.5, 0.5])


Q = np.array([0.13, 0.55, 0.27])  # none is at an element


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("method", ["linear", "midpoint", "hazen"])
def test_the_parts_of_quantiles_have_gradients(method, axis):
    """How steep the line between two elements is, times how many there are."""
    x, q = ll.constant(X[0].astype("float64")), ll.constant(Q)

    def slope(x, q):
        return ll.grad(lambda q: ll.sum(ll.quantile(x, q, axis, method=method)))(q)

    step = 1e-6
    more, less = (np.quantile(x.numpy(), Q + d, axis=axis, method=method) for d in (step, -step))
    wanted = ((more - less) / (2 * step)).reshape(3, -1).sum(-1)
    staged = ll.function(
        slope, input_signature=[ll.TensorSpec((None, None), "float64"), ll.TensorSpec((3,), "float64")]
    )
    for found in (slope(x, q), ll.function(slope)(x, q), staged(x, q)):
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-7)
    each = ll.vectorize(lambda q: ll.percentile(x, 100.0 * q, axis, method=method))
    np.testing.assert_allclose(each(q).numpy(), np.quantile(x.numpy(), Q, axis=axis, method=method), rtol=1e-12)


def test_a_quantile_at_an_element_is_flat_as_in_jax():
    assert ll.grad(lambda q: ll.quantile(ll.constant([1.0, 2.0, 4.0]), q))(0.5).item() == 0.0
    assert ll.grad(lambda q: ll.quantile(ll.constant([1.0, 2.0, 4.0]), [0.1, q])[1])(0.75).item() == 4.0


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_parts_out_of_range_are_refused_when_they_are_known(stage):
    with pytest.raises(ll.errors.ArgumentError, match=r"percentile: q must be a number from 0 to 100.*got \[101.0\]"):
        stage(lambda q: ll.percentile(X, q))(ll.constant([101.0]))
    with pytest.raises(ll.errors.ArgumentError, match=r"or a vector of such, got f32\[1,1\]"):
        stage(lambda q: ll.quantile(X, q))(ll.ones((1, 1)))

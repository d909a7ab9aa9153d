"""Functions made of other ops: as NumPy and SciPy have them, eagerly, staged, batched and differentiated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import distance

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.slow  # many compiled ways for each case: not while you work

rng = np.random.default_rng(3)
A, B, V, W = rng.normal(size=(4, 5)), rng.normal(size=(3, 5)), rng.normal(size=6), rng.normal(size=4)
SORTED = np.array([-1.0, 0.0, 0.5, 2.0])
WEIGHTS = rng.uniform(0.1, 1.0, 5)

CUBE = rng.normal(size=(2, 3, 4))
QS = [0.0, 0.125, 0.5, 0.77, 1.0]
PLACES = np.array([[-2.0, -0.3], [0.1, 1.9], [2.5, 0.75]])


def case(function, reference, *arrays, ours=None, theirs=None):
    """A function and its reference, with the parameters of each, which are the same by default."""
    ours = ours or {}
    theirs = ours if theirs is None else theirs
    return lambda *xs: function(*xs, **ours), lambda *xs: reference(*xs, **theirs), arrays


CASES = {
    "percentile": case(
        lambda x: ll.percentile(x, [0.0, 12.5, 100.0], 1), lambda x: np.percentile(x, [0, 12.5, 100], 1), A
    ),
    "percentile of all": case(lambda x: ll.percentile(x, 40.0), lambda x: np.percentile(x, 40.0), A),
    "average": case(ll.average, np.mean, A),
    "average by a vector": case(lambda x, w: ll.average(x, 1, w), lambda x, w: np.average(x, 1, w), A, WEIGHTS),
    "average by all": case(lambda x, w: ll.average(x, None, w), lambda x, w: np.average(x, None, w), A, A + 5.0),
    "cov": case(ll.cov, np.cov, A),
    "cov of columns": case(
        ll.cov, np.cov, A, ours={"rowvar": False, "correction": 0}, theirs={"rowvar": False, "ddof": 0}
    ),
    "cov of a vector": case(ll.cov, np.cov, V),
    "cov of two": case(ll.cov, np.cov, A, A[:2] * A[:2]),
    "cov of two vectors, biased": case(ll.cov, np.cov, V, V**2, ours={"bias": True}),
    "cov of columns of two": case(ll.cov, np.cov, A, A**2, ours={"rowvar": False}),
    "corrcoef": case(ll.corrcoef, np.corrcoef, A),
    "corrcoef of two": case(ll.corrcoef, np.corrcoef, V, V**2),
    "corrcoef of columns": case(ll.corrcoef, np.corrcoef, A, ours={"rowvar": False}),
    "trapezoid": case(ll.trapezoid, np.trapezoid, A),
    "trapezoid of steps": case(ll.trapezoid, np.trapezoid, A, ours={"dx": 0.5, "axis": 0}),
    "trapezoid at places": case(ll.trapezoid, np.trapezoid, A, WEIGHTS),
    "trapezoid by name": case(lambda y, x: ll.trapezoid(y, x=x), lambda y, x: np.trapezoid(y, x=x), A, WEIGHTS),
    "trapezoid along axis 0": case(ll.trapezoid, np.trapezoid, A, W, ours={"axis": 0}),
    "interp": case(ll.interp, np.interp, PLACES, SORTED, W),
    "interp beyond the ends": case(
        lambda x, xp, f: ll.interp(x, xp, f, left=-7, right=0.5),
        lambda x, xp, f: np.interp(x, xp, f, -7, 0.5),
        PLACES,
        SORTED,
        W,
    ),
    "interp to tensors": case(
        lambda x, xp, f: ll.interp(x, xp, f, f[2], f[1]),
        lambda x, xp, f: np.interp(x, xp, f, f[2], f[1]),
        PLACES,
        SORTED,
        W,
    ),
    "interp at samples": case(lambda f: ll.interp(SORTED, SORTED, f), lambda f: np.interp(SORTED, SORTED, f), W),
    "interp of one": case(lambda x: ll.interp(x, x[:1], x[1:2]), lambda x: np.interp(x, x[:1], x[1:2]), V),
    **{
        f"convolve {mode} {len(x)} {len(y)}": case(ll.convolve, np.convolve, x, y, ours={"mode": mode})
        for mode in ("full", "same", "valid")
        for x, y in ((V, W), (W, V), (V, V[:1]), (V, V[:3]), (V, V))
    },
    **{
        f"cdist {p}": case(ll.cdist, distance.cdist, A, B, ours={"p": p}, theirs={"metric": "minkowski", "p": p})
        for p in (1, 2, 3.5, np.inf)
    },
    **{
        f"cdist {metric}": case(ll.cdist, distance.cdist, A, B, ours={"metric": metric})
        for metric in ("euclidean", "cityblock", "chebyshev", "sqeuclidean", "cosine")
    },
    **{
        f"quantile {method} {axis}": case(
            lambda x, method=method, axis=axis: ll.quantile(x, QS, axis, method=method),
            lambda x, method=method, axis=axis: np.quantile(x, QS, axis, method=method),
            CUBE,
        )
        for method, axis in (
            ("linear", None),
            ("linear", (0, 2)),
            ("lower", 1),
            ("higher", (2, 0)),
            ("midpoint", -1),
            ("nearest", (0, 1)),
            ("hazen", None),
            ("weibull", 0),
            ("median_unbiased", 1),
            ("normal_unbiased", 2),
            ("interpolated_inverted_cdf", (1, 2)),
        )
    },
    "percentile of axes, kept": case(
        lambda x: ll.percentile(x, 30.0, (2, 0), keepdims=True),
        lambda x: np.percentile(x, 30.0, (2, 0), keepdims=True),
        CUBE,
    ),
    "median of axes": case(lambda x: ll.median(x, (0, 1)), lambda x: np.median(x, (0, 1)), CUBE),
}


@pytest.mark.parametrize("case", CASES)
def test_as_numpy_has_it_in_every_way(case):
    run, reference, arrays = CASES[case]
    xs, wanted = [ll.constant(x) for x in arrays], reference(*arrays)
    for found in (run(*xs), ll.function(run)(*xs), ll.vectorize(run)(*[ll.stack([x, x]) for x in xs])[1]):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10, atol=1e-12)
    assert ll.gradcheck(lambda *xs: ll.sum(run(*xs) ** 2), *xs).ok


def test_argwhere_has_a_row_for_each():
    x = np.array([[0, 5, 0], [7, 0, 1]])
    assert ll.argwhere(ll.constant(x)).tolist() == np.argwhere(x).tolist()
    assert ll.function(ll.argwhere)(ll.constant(x)).tolist() == np.argwhere(x).tolist()


@pytest.mark.parametrize("p", [1, 2, 3, np.inf])
def test_distances_of_points_that_coincide_are_flat(p):
    x = ll.constant([[1.0, 2.0]])
    assert ll.grad(lambda x: ll.sum(ll.cdist(x, ll.constant([[1.0, 2.0]]), p=p)))(x).tolist() == [[0.0, 0.0]]


REFUSED = {
    "percentile": (lambda: ll.percentile(ll.ones(3), 101.0), ArgumentError, "from 0 to 100"),
    "weights": (lambda: ll.average(ll.ones((2, 3)), weights=ll.ones(3)), ShapeError, "average: weights"),
    "cov": (lambda: ll.cov(ll.ones((2, 2, 2))), ShapeError, "cov: needs a matrix"),
    "complex quantile": (lambda: ll.median(ll.constant([1j])), DTypeError, "median needs real operands"),
    "method": (lambda: ll.quantile(ll.ones(3), 0.5, method="cubic"), ArgumentError, "method must be one of 'linear'"),
    "observations": (lambda: ll.cov(ll.ones(3), ll.ones(4)), ShapeError, "as many observations"),
    "flag": (lambda: ll.cov(ll.ones(3), ll.ones(3), "no"), ArgumentError, "rowvar must be True or False"),
    "metric": (lambda: ll.cdist(ll.ones((2, 3)), ll.ones((2, 3)), "l2"), ArgumentError, "metric must be one of"),
    "order as a metric": (lambda: ll.cdist(ll.ones((2, 3)), ll.ones((2, 3)), 1), ArgumentError, "write p=1"),
    "order of a metric": (
        lambda: ll.cdist(ll.ones((2, 3)), ll.ones((2, 3)), "cityblock", p=3), ArgumentError, "is for the metric"
    ),
    "keepdims": (lambda: ll.sum(ll.ones(3), 0, np.float64), ArgumentError, "sum: keepdims must be True or False"),
    "tens of integers": (lambda: ll.round(ll.arange(3), -1), ArgumentError, "round.*is of integers"),
    "interp": (lambda: ll.interp(ll.ones(2), ll.ones(2), ll.ones(3)), ShapeError, "vectors of one size"),
    "convolve": (lambda: ll.convolve(ll.ones(2), ll.ones(2), mode="half"), ArgumentError, "mode must be"),
    "matrices": (lambda: ll.convolve(ll.ones((2, 2)), ll.ones(2)), ShapeError, "two vectors"),
    "cdist": (lambda: ll.cdist(ll.ones((2, 3)), ll.ones((2, 2))), ShapeError, "rows of one size"),
    "order": (lambda: ll.cdist(ll.ones((2, 3)), ll.ones((2, 3)), p=0), ArgumentError, "p must be"),
    "argwhere": (lambda: ll.argwhere(1.0), ShapeError, "argwhere: a scalar"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case):
    run, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        run()


def test_nan_lies_nowhere_among_samples():
    x, xp, fp = ll.constant([float("nan"), 0.5]), ll.constant([0.0, 1.0]), ll.constant([5.0, 7.0])
    for call in (ll.interp, ll.function(ll.interp)):
        got = call(x, xp, fp).tolist()
        assert got[0] != got[0]
        assert got[1] == 6.0


INTEGERS = {
    "interp": (ll.interp, np.interp, [1, 2, 5], [0, 3], [0, 30]),
    "interp of floats": (ll.interp, np.interp, [0.5, 2], [0, 3], [0, 30]),
    "trapezoid": (ll.trapezoid, np.trapezoid, [1, 2, 4]),
    "trapezoid at places": (ll.trapezoid, np.trapezoid, [1, 2, 4], [0, 1, 4]),
    "average": (ll.average, np.average, [1, 2, 4]),
    "cov": (ll.cov, np.cov, [[1, 2, 4], [1, 0, 0]]),
    "corrcoef": (ll.corrcoef, np.corrcoef, [[1, 2, 4], [1, 0, 0]]),
    "median": (ll.median, np.median, [1, 2, 4, 9]),
    "percentile": (lambda x: ll.percentile(x, 30), lambda x: np.percentile(x, 30), [1, 2, 4, 9]),
}


@pytest.mark.parametrize("case", INTEGERS)
def test_statistics_of_integers_are_float32(case):
    function, reference, *given = INTEGERS[case]
    for xs in (given, [ll.constant(x) for x in given]):
        found = function(*xs)
        assert found.dtype == ll.float32
        np.testing.assert_allclose(found.numpy(), reference(*given), rtol=1e-6)


@pytest.mark.parametrize("method", ["linear", "nearest", "hazen"])
def test_quantiles_over_axes_of_unknown_size(method):
    staged = ll.function(
        lambda x: ll.quantile(x, QS, (0, 2), method=method), input_signature=[ll.TensorSpec((None,) * 3, "float64")]
    )
    np.testing.assert_allclose(staged(CUBE).numpy(), np.quantile(CUBE, QS, (0, 2), method=method), rtol=1e-12)


@pytest.mark.parametrize("decimals", [-1, 0, 2])
def test_rounding_to_other_places(decimals):
    x = np.array([[12.345, -6.005], [0.125, 1e3]])
    wanted = np.round(x, decimals)
    for found in (ll.round(x, decimals), ll.round(x, decimals=decimals), round(ll.constant(x), decimals)):
        np.testing.assert_array_equal(found.numpy(), wanted)
    assert ll.round(ll.arange(3), 2).tolist() == [0, 1, 2]


X = np.array([[3.0, 1.0, 2.0], [5.0, 4.0, 6.0]])
INDICES = np.array([[0, 1, 1], [1, 0, 0]])
BY_PLACE = {
    "concatenate": lambda np, x, i: (np.concat if hasattr(np, "concat") else np.concatenate)([x, x], 1),
    "stack": lambda np, x, i: np.stack([x, x], 1),
    "flip": lambda np, x, i: np.flip(x, 1),
    "roll": lambda np, x, i: np.roll(x, 1, 1),
    "repeat": lambda np, x, i: np.repeat(x, 2, 0),
    "repeat by name": lambda np, x, i: np.repeat(x, repeats=2, axis=0),
    "take": lambda np, x, i: np.take(x, i, 1),
    "take_along_axis": lambda np, x, i: np.take_along_axis(x, i, 0),
    "sort": lambda np, x, i: np.sort(x, 0),
    "argsort": lambda np, x, i: np.argsort(x, 0),
    "diff": lambda np, x, i: np.diff(x, 1, 0),
    "diff twice": lambda np, x, i: np.diff(x, 2),
    "diag": lambda np, x, i: np.diag(x, 1),
    "diagonal": lambda np, x, i: np.diagonal(x, 1),
    "tril": lambda np, x, i: np.tril(x, -1),
    "triu": lambda np, x, i: np.triu(x, 1),
    "trace": lambda np, x, i: np.linalg.trace(x) if np is ll else np.trace(x),
    "split": lambda np, x, i: np.split(x, 3, 1)[1],
    "tensordot": lambda np, x, i: np.tensordot(x, x.T, 1),
    "count_nonzero": lambda np, x, i: np.count_nonzero(x, 0),
    "searchsorted": lambda np, x, i: np.searchsorted(x[:, 0], x, "right"),
    "eye": lambda np, x, i: np.eye(2, 3, 1),
    "svd": lambda np, x, i: np.linalg.svd(x, False)[1],
    "convolve": lambda np, x, i: np.convolve(x[0], x[1], "same"),
    "trapezoid": lambda np, x, i: np.trapezoid(x, None, 0.5, 0),
}


@pytest.mark.parametrize("case", BY_PLACE)
def test_arguments_by_place_as_in_numpy(case):
    call = BY_PLACE[case]
    np.testing.assert_allclose(call(ll, ll.constant(X), ll.constant(INDICES)).numpy(), call(np, X, INDICES), rtol=1e-12)

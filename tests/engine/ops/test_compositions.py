"""Functions made of other ops: as NumPy and SciPy have them, eagerly, staged, batched and differentiated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import distance

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, ShapeError

rng = np.random.default_rng(3)
A, B, V, W = rng.normal(size=(4, 5)), rng.normal(size=(3, 5)), rng.normal(size=6), rng.normal(size=4)
SORTED = np.array([-1.0, 0.0, 0.5, 2.0])
WEIGHTS = rng.uniform(0.1, 1.0, 5)

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
    "trapezoid": case(ll.trapezoid, np.trapezoid, A),
    "trapezoid of steps": case(ll.trapezoid, np.trapezoid, A, ours={"dx": 0.5, "axis": 0}),
    "trapezoid at places": case(ll.trapezoid, np.trapezoid, A, WEIGHTS),
    "trapezoid along axis 0": case(ll.trapezoid, np.trapezoid, A, W, ours={"axis": 0}),
    "interp": case(ll.interp, np.interp, PLACES, SORTED, W),
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
    "whole numbers": (lambda: ll.cov(ll.arange(3)), DTypeError, "cov needs floating"),
    "trapezoid": (lambda: ll.trapezoid(ll.arange(3)), DTypeError, "trapezoid needs floating"),
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

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

CASES = {
    "percentile": (lambda x: ll.percentile(x, [0.0, 12.5, 100.0], axis=1), lambda x: np.percentile(x, [0, 12.5, 100], axis=1), (A,)),
    "percentile of all": (lambda x: ll.percentile(x, 40, keepdims=True), lambda x: np.percentile(x, 40, keepdims=True), (A,)),
    "average": (ll.average, np.mean, (A,)),
    "average by a vector": (lambda x, w: ll.average(x, 1, w), lambda x, w: np.average(x, 1, w), (A, WEIGHTS)),
    "average by all": (lambda x, w: ll.average(x, weights=w * w), lambda x, w: np.average(x, weights=w * w), (A, A + 3.0)),
    "cov": (ll.cov, np.cov, (A,)),
    "cov of columns": (lambda x: ll.cov(x, rowvar=False, correction=0), lambda x: np.cov(x, rowvar=False, ddof=0), (A,)),
    "cov of a vector": (ll.cov, np.cov, (V,)),
    "trapezoid": (ll.trapezoid, np.trapezoid, (A,)),
    "trapezoid of steps": (lambda y: ll.trapezoid(y, dx=0.5, axis=0), lambda y: np.trapezoid(y, dx=0.5, axis=0), (A,)),
    "trapezoid at places": (ll.trapezoid, np.trapezoid, (A, WEIGHTS)),
    "trapezoid along axis 0": (lambda y, x: ll.trapezoid(y, x, axis=0), lambda y, x: np.trapezoid(y, x, axis=0), (A, W)),
    "interp": (ll.interp, np.interp, (np.array([[-2.0, -0.3], [0.1, 1.9], [2.5, 0.75]]), SORTED, W)),
    "interp at samples": (lambda f: ll.interp(SORTED, SORTED, f), lambda f: np.interp(SORTED, SORTED, f), (W,)),
    "interp of one": (lambda x: ll.interp(x, x[:1], x[1:2]), lambda x: np.interp(x, x[:1], x[1:2]), (V,)),
    **{
        f"convolve {mode} {len(x)} {len(y)}": (lambda x, y, m=mode: ll.convolve(x, y, mode=m), lambda x, y, m=mode: np.convolve(x, y, m), (x, y))
        for mode in ("full", "same", "valid") for x, y in ((V, W), (W, V), (V, V[:1]), (V, V[:3]), (V, V))
    },
    **{
        f"cdist {p}": (lambda x, y, p=p: ll.cdist(x, y, p=p), lambda x, y, p=p: distance.cdist(x, y, "minkowski", p=p), (A, B))
        for p in (1, 2, 3.5, np.inf)
    },
}  # fmt: skip


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

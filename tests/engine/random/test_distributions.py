"""Whether draws are distributed as they say: Kolmogorov-Smirnov and chi-square tests, with fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest
from opcase import raw
from scipy import special, stats

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.random import continuous

N = 6000
UNLIKELY = 1e-3
"""How unlikely draws may be that pass: a good generator fails one such test in a thousand, and the seeds are fixed."""

F64 = "float64"
CONTINUOUS = {
    "normal": (lambda g: g.normal((N,), 1.0, 2.0), stats.norm(1, 2)),
    "normal in short": (lambda g: g.normal((N,), dtype=F64), stats.norm()),
    "uniform": (lambda g: g.uniform((N,), -1.0, 3.0), stats.uniform(-1, 4)),
    "exponential": (lambda g: g.exponential((N,), 2.0), stats.expon(scale=2)),
    "laplace": (lambda g: g.laplace((N,), 1.0, 2.0), stats.laplace(1, 2)),
    "gumbel": (lambda g: g.gumbel((N,), 1.0, 2.0), stats.gumbel_r(1, 2)),
    "cauchy": (lambda g: g.cauchy((N,), 1.0, 2.0), stats.cauchy(1, 2)),
    "truncated": (lambda g: g.truncated_normal((N,)), stats.truncnorm(-2, 2)),
    "truncated, moved": (
        lambda g: g.truncated_normal((N,), 1.0, 2.0, low=2.0, high=6.0),
        stats.truncnorm(0.5, 2.5, 1, 2),
    ),
    "truncated, far out": (
        lambda g: (g.truncated_normal((N,), low=50.0, high=np.inf, dtype=F64) - 50.0) * 50.0,
        stats.expon(scale=1 - 1 / 2500),  # as good as exponential there
    ),
    "truncated, far below": (lambda g: g.truncated_normal((N,), low=-31.0, high=-30.0), stats.truncnorm(-31, -30)),
    "gamma": (lambda g: g.gamma(2.5, 2.0, (N,)), stats.gamma(2.5, scale=2)),
    "gamma, small": (lambda g: g.gamma(0.3, shape=(N,), dtype=F64), stats.gamma(0.3)),
    "gamma, large": (lambda g: g.gamma(1e4, shape=(N,), dtype=F64), stats.gamma(1e4)),
    "beta": (lambda g: g.beta(2.0, 5.0, (N,)), stats.beta(2, 5)),
    "beta, small": (lambda g: g.beta(0.2, 0.4, (N,), dtype=F64), stats.beta(0.2, 0.4)),
    "dirichlet": (lambda g: g.dirichlet(ll.constant([1.0, 2.0, 3.0]), (N, 3))[:, 0], stats.beta(1, 5)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    draw, distribution = CONTINUOUS[name]
    found = draw(ll.random.Generator(11)).numpy().astype(np.float64)
    assert stats.kstest(found, distribution.cdf).pvalue > UNLIKELY
    if np.isfinite(distribution.mean()):
        assert abs(found.mean() - distribution.mean()) < 5 * distribution.std() / N**0.5
        assert abs(found.std() / distribution.std() - 1) < 0.12


@pytest.mark.parametrize("name", ["normal", "exponential", "gamma", "beta"])
def test_the_test_notices_a_wrong_distribution(name):
    draw, distribution = CONTINUOUS[name]
    found = draw(ll.random.Generator(11)).numpy().astype(np.float64)
    assert stats.kstest(found * 1.1, distribution.cdf).pvalue < UNLIKELY


def unlike(found, probabilities):
    """The p-value of counts of 0, 1, 2, ... against probabilities, which need not sum to 1."""
    wanted = np.asarray(probabilities) * len(found)
    counted = np.bincount(found, minlength=len(wanted))[: len(wanted)]
    rest = [max(len(found) - counted.sum(), 0)], [len(found) - wanted.sum()]
    if rest[1][0] > 1:
        counted, wanted = np.append(counted, rest[0]), np.append(wanted, rest[1])
    return stats.chisquare(counted, wanted * counted.sum() / wanted.sum()).pvalue


DISCRETE = {
    "integers": (lambda g: g.integers(6, shape=(N,)), [1 / 6] * 6),
    "bernoulli": (lambda g: g.bernoulli(0.3, (N,)).astype("int32"), [0.7, 0.3]),
    "poisson": (lambda g: g.poisson(2.5, (N,)), stats.poisson(2.5).pmf(np.arange(9))),
    "poisson, large": (lambda g: g.poisson(400.0, (N,)) // 500, [1.0]),
    "categorical": (lambda g: g.categorical(ll.log(ll.constant([0.1, 0.2, 0.7])), (N,)), [0.1, 0.2, 0.7]),
    "multinomial": (
        lambda g: g.multinomial(4, ll.constant([2.0, 6.0]), (N, 2))[:, 0],
        stats.binom(4, 0.25).pmf(np.arange(5)),
    ),
    "permutation": (lambda g: ll.stack([g.permutation(3) for _ in range(900)])[:, 0], [1 / 3] * 3),
    "dropout": (lambda g: (g.dropout_mask(ll.ones(N), 0.3) > 0).astype("int32"), [0.3, 0.7]),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    draw, probabilities = DISCRETE[name]
    found = draw(ll.random.Generator(12)).numpy()
    assert found.dtype.kind == "i"
    if len(probabilities) > 1:
        assert unlike(found, probabilities) > UNLIKELY
        assert unlike(found, np.asarray(probabilities)[::-1]) < UNLIKELY or len(set(probabilities)) == 1
    else:
        assert not found.any()


def test_a_poisson_of_a_large_rate_has_its_moments():
    found = ll.random.Generator(1).poisson(ll.constant([400.0, 1e6]).broadcast_to((2000, 2))).numpy().astype(np.float64)
    np.testing.assert_allclose(found.mean(0), [400, 1e6], rtol=5e-3)
    np.testing.assert_allclose(found.std(0), [20, 1e3], rtol=0.08)


def test_logarithms_of_gamma_variates_have_their_mean():
    a = ll.constant(np.broadcast_to([0.01, 2.0], (40000, 2)))
    found = raw("random_log_gamma")(ll.random.Generator(1), a).numpy()
    np.testing.assert_allclose(found[:, 1].mean(), special.digamma(2.0), atol=0.02)
    np.testing.assert_allclose(found[:, 0].mean(), special.digamma(0.01), rtol=0.02)


def test_a_uniform_zero_makes_no_infinity(monkeypatch):
    monkeypatch.setattr(continuous.standard_draws, "uniform", lambda g, shape, *given: ll.zeros(shape))
    assert ll.random.Generator(1).truncated_normal((1,), low=-np.inf, high=0.0).item() == pytest.approx(-5.54, abs=0.1)


# --- shapes and dtypes


def test_parameters_give_the_shape_and_dtype():
    g, mean = ll.random.Generator(1), ll.constant(np.zeros((2, 1)))
    assert g.normal(mean=mean, stddev=ll.ones(3, dtype=F64)).shape == (2, 3)
    assert g.normal(mean=mean).dtype == ll.float64
    assert len(set(g.normal(mean=mean, stddev=ll.ones(3, dtype=F64)).numpy().ravel())) == 6
    assert g.gamma(ll.ones(3, dtype="float16")).dtype == ll.float16
    assert g.gamma(2, 3).dtype == ll.float32
    assert g.beta(ll.ones((2, 1)), ll.ones(3)).shape == (2, 3)
    assert g.dirichlet(ll.ones(3), (4, 3)).shape == (4, 3)
    assert g.categorical(ll.ones((4, 3))).shape == (4,)
    assert g.categorical(ll.ones(3), (2, 5)).shape == (2, 5)
    rows = ll.ones((2, 4, 3))
    assert g.categorical(rows, (5, *rows.shape[:-1])).shape == (5, 2, 4)
    assert g.categorical(rows[..., None, :], (*rows.shape[:-1], 5)).shape == (2, 4, 5)
    with pytest.raises(ll.errors.ShapeError, match=r"the logits have rows, \(2, 4\), and 4 is no shape of theirs"):
        g.categorical(rows, 4)  # which would broadcast
    assert g.multinomial(3, ll.ones((4, 3))).shape == (4, 3)
    assert g.poisson(ll.ones((2, 3)), dtype="int64").dtype == ll.int64
    assert g.uniform(5).shape == (5,)
    assert g.uniform().shape == ()
    assert g.gamma(ll.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    "name", ["normal", "uniform", "exponential", "laplace", "gumbel", "cauchy", "truncated_normal"]
)
def test_any_floating_dtype(name, dtype):
    found = getattr(ll.random.Generator(1), name)((50,), dtype=dtype)
    assert found.dtype == ll.constant(0.0, dtype).dtype
    assert len(set(found.numpy().astype(np.float64))) > 20


def test_what_does_not_fit_is_refused():
    g = ll.random.Generator(1)
    with pytest.raises(ShapeError, match=r"random.normal: the parameters broadcast to \(3, 2\)"):
        g.normal((2,), ll.zeros((3, 1)))
    with pytest.raises(ShapeError):
        g.gamma(ll.ones(3), shape=(2,))
    with pytest.raises(ShapeError, match="classes"):
        g.categorical(ll.constant(1.0))
    with pytest.raises(ShapeError, match="negative"):
        g.normal((-1,))
    with pytest.raises(DTypeError, match="floating"):
        g.gamma(2.0, dtype="int32")
    with pytest.raises(DTypeError, match="integers"):
        g.poisson(2.0, dtype="float32")
    with pytest.raises(ArgumentError, match="rates must be at least 0"):
        g.poisson(-1.0)
    with pytest.raises(ArgumentError, match="fit in int8"):
        g.poisson(1000.0, dtype="int8")
    with pytest.raises(ArgumentError, match="probabilities"):
        g.multinomial(3, ll.constant([-1.0, 2.0]))


def test_out_of_its_domain_a_distribution_gives_nan():
    found = ll.random.Generator(1).gamma(ll.constant([0.0, -1.0, np.nan])).numpy()
    assert found[0] == 0
    assert np.isnan(found[1:]).all()
    assert np.isnan(ll.random.Generator(1).beta(ll.constant(-1.0), 2.0).item())


def test_small_concentrations_neither_underflow_nor_give_nan():
    g = ll.random.Generator(1)
    found = g.dirichlet(ll.constant([1e-4, 1e-4, 1e-4]), (500, 3)).numpy()
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(found.mean(0), 1 / 3, atol=0.1)
    ends = g.beta(1e-3, 3e-3, (2000,)).numpy()
    assert ends.mean() == pytest.approx(0.25, abs=0.05)

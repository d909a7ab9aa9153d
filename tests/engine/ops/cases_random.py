"""Cases of the random ops: what can be said of draws without knowing them."""

from __future__ import annotations

import numpy as np
from cases_shapes import vector
from opcase import Case, Input, raw
from scipy import special

import limelight as ll
from limelight.core import dtypes

F32, F64, I32, I64, B = dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.bool_


def _normal(out, inputs):
    z = np.asarray(out, np.float64)
    assert abs(z.mean()) < 0.1
    assert abs(z.std() - 1) < 0.1
    assert abs((z**3).mean()) < 0.3


def _within(low, high):
    def check(out, inputs):
        z = np.asarray(out, np.float64)
        assert z.min() >= low
        assert z.max() < high
        assert abs(z.mean() - (low + high) / 2) < (high - low) * 0.05
        assert abs(z.std() - (high - low) / 12**0.5) < (high - low) * 0.05

    return check


def _dice(out, inputs):
    assert set(np.asarray(out).ravel()) == set(range(1, 7))


def _permuted(out, inputs):
    assert sorted(np.asarray(out)) == list(range(50))
    assert list(np.asarray(out)) != list(range(50))


def _mask(out, inputs):
    z = np.asarray(out, np.float64)
    assert set(z.ravel()) <= {0.0, 2.0}
    assert abs(z.mean() - 1) < 0.15


def _random(op, call, check, out):
    return Case(op, call, None, out=out, dtypes=frozenset([out]), check=check)


_FLOATS = (dtypes.float16, dtypes.bfloat16, F32, F64)
_ROWS = (40, 50)


def _around(mean, spread):
    """Of the mean `mean` and the standard deviation `spread`."""

    def check(out, inputs):
        z = np.asarray(out, np.float64)
        assert abs(z.mean() - mean) < 6 * spread / z.size**0.5
        assert abs(z.std() / spread - 1) < 0.2

    return check


def _median(out, inputs):
    assert abs(np.median(np.asarray(out, np.float64))) < 0.1


STANDARD = [
    *[_random("random_normal", lambda d=d: ll.random.normal(_ROWS, dtype=d), _normal, d) for d in _FLOATS],
    *[_random("random_uniform", lambda d=d: ll.random.uniform(_ROWS, dtype=d), _within(0, 1), d) for d in _FLOATS],
    *[
        _random("random_exponential", lambda d=d: ll.random.exponential(_ROWS, dtype=d), _around(1, 1), d)
        for d in _FLOATS
    ],
    *[_random("random_laplace", lambda d=d: ll.random.laplace(_ROWS, dtype=d), _around(0, 2**0.5), d) for d in _FLOATS],
    *[
        _random("random_gumbel", lambda d=d: ll.random.gumbel(_ROWS, dtype=d), _around(0.5772, 1.2825), d)
        for d in _FLOATS
    ],
    *[_random("random_cauchy", lambda d=d: ll.random.cauchy(_ROWS, dtype=d), _median, d) for d in _FLOATS],
    _random("random_normal_dynamic", lambda: ll.random.normal(vector(*_ROWS)), _normal, F32),
    _random("random_uniform_dynamic", lambda: ll.random.uniform(vector(*_ROWS), -1.0, 3.0), _within(-1, 3), F32),
    _random("random_exponential_dynamic", lambda: ll.random.exponential(vector(*_ROWS)), _around(1, 1), F32),
    _random("random_laplace_dynamic", lambda: ll.random.laplace(vector(*_ROWS)), _around(0, 2**0.5), F32),
    _random("random_gumbel_dynamic", lambda: ll.random.gumbel(vector(*_ROWS)), _around(0.5772, 1.2825), F32),
    _random("random_cauchy_dynamic", lambda: ll.random.cauchy(vector(*_ROWS)), _median, F32),
    _random("random_integers", lambda: ll.random.integers(1, 7, (300,)), _dice, I32),
    _random("random_integers_dynamic", lambda: ll.random.integers(1, 7, vector(300), dtype=I64), _dice, I64),
    _random("random_permutation", lambda: ll.random.permutation(50), _permuted, I32),
    Case("dropout_mask", lambda x: ll.random.dropout_mask(x, 0.5), None, (Input((20, 20)),), check=_mask),
]


def _many(x):
    """Each parameter for many draws."""
    return x.broadcast_to((2000, 3))


def _like(mean, spread):
    """Each column of the mean and standard deviation that its parameter says."""

    def check(out, inputs):
        z, p = np.asarray(out, np.float64), np.asarray(inputs[0], np.float64)[0]
        np.testing.assert_allclose(z.mean(0), mean(p), atol=6 * np.max(spread(p)) / 2000**0.5 + 0.01)
        np.testing.assert_allclose(z.std(0), spread(p), rtol=0.25, atol=0.01)

    return check


def _shares(out, inputs):
    z, logits = np.asarray(out), np.asarray(inputs[0], np.float64)
    p = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose([(z == i).mean() for i in range(3)], p, atol=0.06)


def _ten(out, inputs):
    z, p = np.asarray(out), np.asarray(inputs[0], np.float64)
    assert (z.sum(-1) == 10).all()
    np.testing.assert_allclose(z.mean(0), 10 * p / p.sum(), atol=0.3)


_PARAMETER = (Input((1, 3), "positive"),)
SHAPED = [
    Case(
        "random_gamma",
        lambda a: ll.random.gamma(_many(a)),
        None,
        _PARAMETER,
        check=_like(lambda a: a, np.sqrt),
        differentiable=False,
    ),
    Case(
        "random_log_gamma",
        lambda a: raw("random_log_gamma")(ll.random.default_generator(), _many(a)),
        None,
        _PARAMETER,
        check=_like(special.digamma, lambda a: np.sqrt(special.polygamma(1, a))),
        differentiable=False,
    ),
    Case(
        "random_poisson",
        lambda a: ll.random.poisson(_many(a)),
        None,
        _PARAMETER,
        check=_like(lambda a: a, np.sqrt),
        out=I32,
    ),
    Case(
        "random_bernoulli",
        lambda a: ll.random.bernoulli(_many(a * 0.5)),
        None,
        _PARAMETER,
        check=_like(lambda a: a / 2, lambda a: np.sqrt(a / 2 * (1 - a / 2))),
        out=B,
    ),
    Case(
        "random_categorical", lambda x: ll.random.categorical(x, (2000,)), None, (Input((3,)),), check=_shares, out=I32
    ),
    Case(
        "random_multinomial",
        lambda p: ll.random.multinomial(10, p, (500, 3)),
        None,
        (Input((3,), "positive"),),
        check=_ten,
        out=I32,
    ),
]

CASES = [*STANDARD, *SHAPED]

"""First values of weights have the distribution that their names promise."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll
from limelight.core import dtypes
from limelight.nn import initializers

SHAPE = (3, 3, 40, 60)
INPUTS, OUTPUTS = 9 * 40, 9 * 60
VARIANCES = {
    "glorot_uniform": 2 / (INPUTS + OUTPUTS),
    "glorot_normal": 2 / (INPUTS + OUTPUTS),
    "he_uniform": 2 / INPUTS,
    "he_normal": 2 / INPUTS,
    "lecun_uniform": 1 / INPUTS,
    "lecun_normal": 1 / INPUTS,
}


@pytest.fixture(autouse=True)
def seeded():
    ll.random.seed(0)


@pytest.mark.parametrize("name", VARIANCES)
def test_variance_scaling(name):
    x = initializers.get(name)(SHAPE, "float64").numpy()
    assert x.dtype == "float64"
    assert abs(x.mean()) < 4 * np.sqrt(VARIANCES[name] / x.size)
    assert np.isclose(x.var(), VARIANCES[name], rtol=0.02)
    if name.endswith("uniform"):
        assert np.abs(x).max() <= np.sqrt(3 * VARIANCES[name])


def test_truncated_normal_has_no_tails_eager_and_staged():
    staged = ll.function(lambda: initializers.truncated_normal((20000,), stddev=0.5))
    for x in (initializers.truncated_normal((20000,), stddev=0.5).numpy(), staged().numpy()):
        assert np.abs(x).max() <= 1.0
        assert np.isclose(x.std(), 0.5 * 0.8796, rtol=0.03)  # the spread of what lies within two deviations
    assert np.isclose(initializers.normal((20000,)).numpy().std(), 0.02, rtol=0.03)


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (3, 3, 2, 5), (0, 3)])
def test_orthogonal(shape):
    x = initializers.orthogonal(shape, "float64").numpy().reshape(-1, shape[-1])
    product = x.T @ x if x.shape[0] >= x.shape[1] else x @ x.T
    assert np.allclose(product, np.eye(len(product)))


def test_orthogonal_needs_a_matrix():
    with pytest.raises(ll.errors.ShapeError, match=r"at least two axes, got shape \(3,\)"):
        initializers.orthogonal((3,))


@pytest.mark.parametrize("name", [*VARIANCES, "zeros", "ones", "normal", "truncated_normal", "orthogonal"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_dtypes_and_empty_kernels(name, dtype):
    x = initializers.get(name)((0, 3), dtype)
    assert (x.shape, x.dtype) == ((0, 3), dtypes.dtype(dtype))


def test_a_function_may_be_an_initializer_and_must_keep_the_shape():
    layer = ll.nn.Dense(2, kernel_initializer=lambda shape, dtype: ll.full(shape, 3.0, dtype=dtype))
    assert layer(ll.ones((1, 2))).tolist() == [[6.0, 6.0]]
    layer = ll.nn.Dense(2, kernel_initializer=lambda shape, dtype: ll.ones((5,)))
    with pytest.raises(ll.errors.ShapeError, match=r"\(5,\)"):
        layer(ll.ones((1, 2)))

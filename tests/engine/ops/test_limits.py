"""Derivatives up to the third at infinities, at the ends of domains, and far out: the limits, not NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import limelight as ll

inf = math.inf
FLAT = [[0.0, 0.0]] * 3
LIMITS: dict[str, list[list[float]]] = {  # of the first three derivatives, at -inf and inf
    **dict.fromkeys(["atan", "asinh", "tanh", "erf", "erfc", "ndtr", "i0e", "i1e", "sigmoid"], FLAT),
    "log_ndtr": [[inf, 0.0], [-1.0, 0.0], [0.0, 0.0]],
    "softplus": [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]],
    "log_sigmoid": [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]],
    "reciprocal": FLAT,
    "elu": [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]],
    "celu": [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]],
    "silu": [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]],
    "mish": [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]],
    "gelu": [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]],
    "softsign": FLAT,
}


def derivatives(name: str, points: list[float], dtype: str) -> list[Any]:
    f = getattr(ll, name, None) or getattr(ll.nn, name)
    x, found = ll.constant(np.array(points, dtype)), []
    for _ in range(3):
        f = ll.grad(lambda v, f=f: ll.sum(f(v)))
        found.append(f(x).numpy())
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", LIMITS)
def test_at_infinity(name: str, dtype: str) -> None:
    np.testing.assert_array_equal(derivatives(name, [-inf, inf], dtype), LIMITS[name])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [name for name in LIMITS if name != "log_ndtr"])
def test_far_out(name: str, dtype: str) -> None:
    far = 1e300 if dtype == "float64" else 1e38
    tolerance = {"rtol": 1e-6, "atol": 1e-30}
    np.testing.assert_allclose(derivatives(name, [-far, far], dtype), LIMITS[name], **tolerance)


@pytest.mark.parametrize("name", ["huber", "log_cosh"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_losses_that_are_linear_far_out_stay_so_wherever_squares_leave_the_range(name: str, dtype: str) -> None:
    far = float(np.finfo(dtype).max)
    x = ll.constant(np.array([-inf, -far, far, inf], dtype))

    def loss(x: ll.Tensor) -> ll.Tensor:
        return getattr(ll.nn, name)(x, ll.zeros_like(x))  # type: ignore[no-any-return]

    slope = ll.grad(lambda x: ll.sum(loss(x)))
    np.testing.assert_allclose(loss(x).numpy(), [inf, far, far, inf], rtol=1e-3)
    np.testing.assert_array_equal(slope(x).numpy(), [-1.0, -1.0, 1.0, 1.0])
    np.testing.assert_array_equal(ll.jvp(slope, (x,), (ll.ones_like(x),))[1].numpy(), np.zeros(4))


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_a_divergence_from_targets_that_are_nan_is_nan(stage: Any) -> None:
    divergence = stage(ll.nn.kl_divergence)
    predicted = ll.constant([[-inf, -0.5], [math.nan, -0.5], [-0.5, -0.5], [-0.5, -0.5]])
    targets = ll.constant([[0.0, 1.0], [0.0, 1.0], [math.nan, 1.0], [-1.0, 2.0]])
    np.testing.assert_array_equal(np.isnan(divergence(predicted, targets).numpy()), [False, False, True, True])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_acosh_is_flat_at_infinity_and_beyond_its_domain_at_the_other(dtype: str) -> None:
    np.testing.assert_array_equal(derivatives("acosh", [inf, -inf], dtype), [[0.0, math.nan]] * 3)


def test_log_ndtr_is_a_parabola_far_below_zero() -> None:
    points = [-1e300, -1e9, -2e8]
    expected = [np.negative(points), [-1.0] * 3, [0.0] * 3]
    np.testing.assert_array_equal(derivatives("log_ndtr", points, "float64"), expected)
    x = np.array([-9e7, -1e4, -30.0])
    first, second, _ = derivatives("log_ndtr", list(x), "float64")  # Mills' ratio, Abramowitz and Stegun 26.2.12
    np.testing.assert_allclose(first, -x / (1 - x**-2 + 3 * x**-4 - 15 * x**-6), rtol=1e-9)
    np.testing.assert_allclose(second, -1 + x**-2 - 6 * x**-4 + 50 * x**-6, rtol=1e-8)


def test_logit_at_its_ends() -> None:
    expected = [[inf, inf], [-inf, inf], [inf, inf]]
    np.testing.assert_array_equal(derivatives("logit", [0.0, 1.0], "float64"), expected)
    p = 0.3
    slopes = [1 / p + 1 / (1 - p), -1 / p**2 + 1 / (1 - p) ** 2, 2 / p**3 + 2 / (1 - p) ** 3]
    np.testing.assert_allclose(np.ravel(derivatives("logit", [p], "float64")), slopes, rtol=1e-12)

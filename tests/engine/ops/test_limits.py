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


@pytest.mark.parametrize("executor", ["step", "plan", "loops"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_a_yes_or_no_that_is_certain_and_right_has_no_loss(dtype: str, executor: str) -> None:
    logits = ll.constant(np.array([inf, -inf, inf, -inf, inf, -inf, 3.0, math.nan], dtype))
    labels = ll.constant(np.array([1.0, 0.0, 0.0, 1.0, 0.5, 0.5, 0.25, 0.0], dtype))

    def loss(logits: ll.Tensor, labels: ll.Tensor) -> ll.Tensor:
        return ll.nn.sigmoid_cross_entropy(logits, labels)

    with ll.config.executor(executor):
        found = ll.function(loss)(logits, labels).numpy()
        slopes = ll.function(ll.grad(lambda *given: ll.sum(loss(*given)), argnums=(0, 1)))(logits, labels)
    np.testing.assert_array_equal(found[[0, 1, 2, 3, 4, 5, 7]], [0.0, 0.0, inf, inf, inf, inf, math.nan])
    np.testing.assert_allclose(found[6], np.log1p(np.exp(3.0)) - 0.75, rtol=1e-3)
    np.testing.assert_array_equal(slopes[0].numpy()[:6], [0.0, 0.0, 1.0, -1.0, 0.5, -0.5])
    np.testing.assert_array_equal(slopes[1].numpy()[:7], np.negative(logits.numpy()[:7]))


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_a_class_that_cannot_be_and_is_not_adds_no_loss(stage: Any) -> None:
    logits = ll.constant([[0.0, -inf, 1.0], [0.0, -inf, 1.0], [0.0, math.nan, 1.0]])
    labels = ll.constant([[0.25, 0.0, 0.75], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    found = stage(ll.nn.softmax_cross_entropy)(logits, labels)
    np.testing.assert_allclose(found.numpy(), [np.log1p(np.e) - 0.75, inf, math.nan], rtol=1e-6)
    slopes = stage(ll.grad(lambda *given: ll.sum(ll.nn.softmax_cross_entropy(*given)), argnums=(0, 1)))(logits, labels)
    p = 1 / (1 + np.e)
    np.testing.assert_allclose(slopes[0].numpy()[:2], [[p - 0.25, 0, 0.25 - p], [p - 0.5, -0.5, 1 - p]], rtol=1e-5)
    np.testing.assert_allclose(slopes[1].numpy()[:2], [[-np.log(p), inf, -np.log(p) - 1]] * 2, rtol=1e-6)


@pytest.mark.parametrize("executor", ["step", "plan", "loops"])
@pytest.mark.parametrize("order", [3, 1.5, 8, 0.5, -1, -2])
@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e30), ("float32", 1e-30), ("float64", 1e200), ("c8", 1e-30)])
def test_norms_of_numbers_whose_powers_leave_the_range(order: float, dtype: str, scale: float, executor: str) -> None:
    x = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
    wanted = np.linalg.norm(x, order, 1)
    shares = np.sign(x) * (np.abs(x) / wanted[:, None]) ** (order - 1)
    with ll.config.executor(executor):
        norm = ll.function(lambda x: ll.linalg.vector_norm(x, axis=1, ord=order))
        scaled = ll.constant((x * scale).astype(dtype))
        np.testing.assert_allclose(norm(scaled).numpy() / scale, wanted, rtol=1e-5)
        slope = ll.function(ll.grad(lambda x: ll.sum(norm(x))))
        np.testing.assert_allclose(slope(scaled).numpy(), shares, rtol=1e-4)


@pytest.mark.parametrize("order", [3, 0.5, -2])
def test_norms_of_zeros_infinities_and_nothing(order: float) -> None:
    x = np.array([[0.0, 0.0], [0.0, 1.0], [inf, 1.0], [-inf, inf], [math.nan, 1.0]])
    with np.errstate(all="ignore"):
        wanted = np.linalg.norm(x, order, 1)
    np.testing.assert_array_equal(ll.linalg.vector_norm(x, axis=1, ord=order).numpy(), wanted)
    assert ll.linalg.vector_norm(ll.zeros((0,)), ord=order).item() == (0.0 if order > 0 else inf)
    assert ll.linalg.vector_norm(ll.zeros((0, 2)), axis=1, keepdims=True, ord=order).shape == (0, 1)


@pytest.mark.parametrize(
    ("name", "at", "limits"),
    [
        ("acosh", 1.0, [inf, -inf, inf]),
        ("atanh", 1.0, [inf, inf, inf]),
        ("atanh", -1.0, [inf, -inf, inf]),
        ("asin", 1.0, [inf, inf, inf]),
        ("acos", -1.0, [-inf, inf, -inf]),
        ("sqrt", 0.0, [inf, -inf, inf]),
        ("log1p", -1.0, [inf, -inf, inf]),
        ("erfinv", 1.0, [inf, inf, inf]),
    ],
)
def test_at_the_ends_of_domains(name: str, at: float, limits: list[float]) -> None:
    np.testing.assert_array_equal(derivatives(name, [at], "float64"), np.reshape(limits, (3, 1)))

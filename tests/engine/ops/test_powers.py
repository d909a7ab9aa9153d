"""Powers of special values: the same however the exponent is given, and as IEEE 754 has them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, ShapeError

BASES = [-math.inf, -1.5, -0.0, 0.0, 0.25, 1.0, 4.0, math.inf, math.nan]
EXPONENTS = [0.5, 2, 2.0, -1, -1.0, 1, 1.0, 0, 0.0, 3, 3.0, -0.5, 1.5]


def _python(x, y):
    try:
        power = float(x) ** y
    except ZeroDivisionError:
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf
    return math.nan if isinstance(power, complex) else power


WAYS = {
    "number": lambda x, y: x**y,
    "function": ll.pow,
    "scalar tensor": lambda x, y: x ** ll.constant(float(y), dtype=x.dtype),
    "one for each": lambda x, y: x ** ll.full(x.shape, float(y), dtype=x.dtype),
    "rows": lambda x, y: ll.stack([x, x]) ** ll.full((2, 1), float(y), dtype=x.dtype),
    "one element": lambda x, y: ll.stack(
        [e.reshape(1) ** ll.full((1,), float(y), dtype=x.dtype) for e in ll.unstack(x)]
    ),
    "scalars": lambda x, y: ll.stack([e**y for e in ll.unstack(x)]),
    "vectorised": lambda x, y: ll.vectorize(lambda e: e**y)(x),
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("way", WAYS)
def test_powers_of_special_values(way, dtype, staged):
    x = ll.constant(BASES, dtype=dtype)

    def powers(x):
        return [WAYS[way](x, y) for y in EXPONENTS]

    results = (ll.function(powers) if staged else powers)(x)
    for y, result in zip(EXPONENTS, results, strict=True):
        expected = np.array([_python(b, y) for b in BASES]).astype(np.float32)
        given = result.numpy().astype(np.float32).reshape(-1, len(BASES))
        assert result.dtype == x.dtype
        for row in given:
            np.testing.assert_allclose(row, expected, rtol=1e-2)
            assert np.signbit(row[~np.isnan(row)]).tolist() == np.signbit(expected[~np.isnan(expected)]).tolist(), y


def test_numbers_to_the_power_of_a_tensor():
    halves = ll.constant([0.5, 1.5, 0.5])
    assert ((-math.inf) ** halves).tolist() == [math.inf] * 3
    assert ((-math.inf) ** halves[0]).item() == math.inf


def test_the_slope_of_a_root_at_minus_infinity():
    x = ll.constant([-math.inf])
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = x**0.5
    assert tape.gradient(y, x).tolist() == [0.0]


@pytest.mark.parametrize("executor", ["auto", "plan", "step"])
@pytest.mark.parametrize("exponent", [-1, [1, -1]])
def test_integers_to_a_negative_power_are_refused_in_the_same_words_by_all_executors(executor, exponent):
    given = () if exponent == -1 else (ll.constant(exponent),)
    with ll.config.executor(executor), pytest.raises(ArgumentError, match=r"pow: integers .* write ll\.astype"):
        ll.function(lambda x, *y: x ** (y[0] if y else exponent))(ll.constant([1, 2]), *given)
    with ll.config.executor(executor):
        assert ll.function(lambda x: x**3)(ll.constant([1, 2])).tolist() == [1, 8]


def test_shapes_that_do_not_meet_are_said_to_be_what_is_wrong():
    for x, y in ((ll.ones((2, 3)), ll.ones((2,))), (ll.constant([2, 3]), ll.constant([1, -2, 3]))):
        for power in (ll.pow, ll.function(ll.pow)):
            with pytest.raises(ShapeError, match=r"pow: .* do not broadcast"):
                power(x, y)

"""Gradients where there is a choice: at kinks, ties and zeros. What was chosen, and documented, is held to here."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll


def slope(function, *values):
    """The gradients of the sum of function(x, ...) at plain numbers."""
    xs = [ll.constant(value, "float64") for value in values]
    with ll.GradientTape() as tape:
        tape.watch(xs)
        y = function(*xs).sum()
    found = [g if g is None else g.tolist() for g in tape.gradient(y, xs)]
    return found[0] if len(found) == 1 else found


@pytest.mark.parametrize("function", [ll.max, ll.min], ids=["max", "min"])
def test_equal_extremes_share_the_gradient(function):
    assert slope(function, [2.0, 2.0, 2.0, 2.0]) == [0.25] * 4
    assert slope(lambda x: function(x, axis=0), [[3.0, 1.0], [3.0, 1.0]]) == [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize("function", [ll.maximum, ll.minimum], ids=["maximum", "minimum"])
def test_a_tie_of_two_operands_is_split(function):
    assert slope(function, [1.0], [1.0]) == [[0.5], [0.5]]
    assert slope(lambda x: function(x, x), [1.0]) == [1.0]
    assert slope(lambda x: function(x, 1), [1.0]) == [0.5]


def test_relu_and_abs_are_flat_at_zero():
    assert slope(ll.nn.relu, [0.0, -1.0, 1.0]) == [0.0, 0.0, 1.0]
    assert slope(ll.abs, [0.0, -1.0, 1.0]) == [0.0, -1.0, 1.0]


def test_the_deviation_of_equal_elements_is_flat():
    assert slope(ll.std, [2.0, 2.0, 2.0]) == [0.0, 0.0, 0.0]
    assert slope(lambda x: ll.std(x, axis=1), [[1.0, 1.0], [1.0, 3.0]]) == [[0.0, 0.0], [-0.5, 0.5]]


def test_clip_passes_gradients_at_its_bounds():
    assert slope(lambda x: ll.clip(x, 0.0, 1.0), [-0.1, 0.0, 0.5, 1.0, 1.1]) == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_powers_at_zero():
    assert slope(lambda x: x**0, [0.0, 2.0]) == [0.0, 0.0]
    assert slope(lambda x: x**1, [0.0]) == [1.0]
    assert slope(lambda x: x**2, [0.0]) == [0.0]
    assert slope(ll.pow, [0.0, 0.0], [0.0, 2.0]) == [[0.0, 0.0], [0.0, 0.0]]
    assert slope(lambda y: 0.0**y, [1.0]) == [0.0]


def test_products_with_zeros():
    assert slope(ll.prod, [0.0, 3.0, 4.0]) == [12.0, 0.0, 0.0]
    assert slope(ll.prod, [0.0, 0.0, 4.0]) == [0.0, 0.0, 0.0]
    unknown = ll.function(ll.prod, input_signature=[ll.TensorSpec((None,), "float64")])
    assert slope(unknown, [0.0, 3.0, 4.0]) == [12.0, 0.0, 0.0]


def test_where_gives_nothing_to_the_side_not_taken():
    """Also where that side is infinite: its gradient is 0, not NaN."""
    assert slope(lambda x: ll.where(x > 0, ll.sqrt(x), 0.0), [4.0]) == [0.25]
    assert slope(lambda x, y: ll.where(x > y, x, y), [1.0, 3.0], [2.0, 2.0]) == [[0.0, 1.0], [1.0, 0.0]]


def test_what_is_piecewise_constant_is_not_connected():
    for function in (ll.floor, ll.ceil, ll.round, ll.trunc, ll.sign):
        assert slope(lambda x, f=function: f(x), [1.5]) is None
    assert slope(lambda x: x // 2.0, [1.5]) is None


def test_repeated_indices_add_their_gradients():
    assert slope(lambda x: x[[0, 0, 1]], [1.0, 2.0]) == [2.0, 1.0]
    assert slope(lambda x: ll.take(x, ll.constant([1, 1, 1])), [1.0, 2.0]) == [0.0, 3.0]


def test_logsumexp_of_nothing_but_minus_infinity():
    assert ll.logsumexp(ll.constant([-np.inf, -np.inf])).item() == -np.inf
    assert ll.nn.log_softmax(ll.constant([1000.0, 0.0])).tolist() == [0.0, -1000.0]


def test_a_power_of_zero_is_flat_where_the_base_is_infinite():
    for exponent in (0.0, ll.zeros(2)):
        assert ll.grad(lambda x, y=exponent: ll.sum(x**y))(ll.constant([np.inf, 2.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["elu", "celu", "selu", "hard_tanh"])
def test_gradients_of_activations_do_not_hide_nan(name):
    found = ll.grad(lambda x: ll.sum(getattr(ll.nn, name)(x)))(ll.constant([np.nan, -0.5])).tolist()
    assert found[0] != 0.0
    assert np.isfinite(found[1])


def test_clip_passes_gradients_of_nan():
    assert ll.grad(lambda x: ll.sum(ll.clip(x, -1.0, 1.0)))(ll.constant([np.nan, -2.0, 1.0])).tolist() == [
        1.0,
        0.0,
        1.0,
    ]


@pytest.mark.parametrize("function", [lambda p: -ll.xlogy(p, p), ll.entr], ids=["xlogy", "entr"])
def test_a_class_without_probability_adds_nothing_to_the_gradient_of_an_entropy(function):
    assert slope(function, [0.0, 1.0]) == [0.0, -1.0]
    by_scores = ll.grad(lambda z: ll.sum(function(ll.nn.softmax(z))))(ll.constant([0.0, -np.inf, 0.0]))
    assert by_scores.numpy() == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)


def test_products_with_logarithms_of_zero():
    assert slope(ll.xlogy, [0.0, 0.0, 1.0], [0.0, 2.0, 0.0]) == [[0.0, np.log(2.0), -np.inf], [0.0, 0.0, np.inf]]
    assert slope(ll.xlog1py, [0.0, 0.0], [-1.0, 1.0]) == [[0.0, np.log(2.0)], [0.0, 0.0]]


def test_lengths_are_flat_at_zero():
    assert slope(ll.hypot, [0.0], [0.0]) == [[0.0], [0.0]]
    assert slope(ll.linalg.norm, [0.0, 0.0]) == [0.0, 0.0]
    assert slope(lambda x: ll.linalg.vector_norm(x, ord=3), [0.0, 0.0]) == [0.0, 0.0]


def test_zeros_are_at_no_angle_to_anything():
    assert ll.nn.cosine_similarity(ll.zeros(2), ll.ones(2)).item() == 0.0
    assert slope(lambda x: ll.nn.cosine_similarity(x, ll.zeros(2, dtype=ll.float64)), [0.0, 0.0]) == [0.0, 0.0]


def test_equal_infinities_share_the_gradient_of_a_sum_of_exponentials():
    for value in (np.inf, -np.inf):
        assert slope(ll.logaddexp, value, value) == [0.5, 0.5]
        assert slope(ll.logsumexp, [value, value]) == [0.5, 0.5]
    assert slope(ll.logsumexp, [[np.inf, 1.0], [2.0, -np.inf]]) == [[1.0, 0.0], [0.0, 0.0]]
    assert slope(lambda x: ll.logsumexp(x, axis=-1), [[np.inf, 1.0], [2.0, -np.inf]]) == [[1.0, 0.0], [1.0, 0.0]]
    assert np.isnan(slope(ll.logsumexp, [np.nan, 1.0])).all()
    second = ll.grad(ll.grad(lambda x: ll.logaddexp(x, ll.constant(1.0))))(ll.constant(1.0))
    assert second.item() == 0.25

"""Gradients of draws to their parameters: a draw moves so that its probability stays (reparameterisation)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import limelight as ll
from limelight.core.op import get

pytestmark = pytest.mark.slow  # many compiled ways for each case: not while you work

F64 = np.float64

MOVING = {
    "normal": (lambda g, m, s: g.normal(None, m, s), stats.norm, (1.0, 2.0)),
    "uniform": (lambda g, a, b: g.uniform(None, a, b), lambda a, b: stats.uniform(a, b - a), (1.0, 3.0)),
    "exponential": (lambda g, s: g.exponential(None, s), lambda s: stats.expon(scale=s), (2.0,)),
    "laplace": (lambda g, m, s: g.laplace(None, m, s), stats.laplace, (1.0, 2.0)),
    "gumbel": (lambda g, m, s: g.gumbel(None, m, s), stats.gumbel_r, (1.0, 2.0)),
    "cauchy": (lambda g, m, s: g.cauchy(None, m, s), stats.cauchy, (1.0, 2.0)),
    "truncated normal": (
        lambda g, m, s, a, b: g.truncated_normal(None, m, s, a, b),
        lambda m, s, a, b: stats.truncnorm((a - m) / s, (b - m) / s, m, s),
        (1.0, 2.0, 0.5, 4.0),
    ),
    "gamma": (lambda g, a, s: g.gamma(a, s), lambda a, s: stats.gamma(a, scale=s), (2.5, 2.0)),
    "gamma, small": (lambda g, a: g.gamma(a), stats.gamma, (0.2,)),
    "gamma, large": (lambda g, a: g.gamma(a), stats.gamma, (300.0,)),
}


def slopes(distribution, parameters, drawn):
    """By central differences of the quantile function, at the probabilities of what was drawn."""
    at = distribution(*parameters).cdf(drawn)
    found = []
    for i in range(len(parameters)):
        ends = []
        for sign in (1, -1):
            moved = [np.array(p) for p in parameters]
            moved[i] = moved[i] + sign * 1e-5 * abs(moved[i]).max()
            ends.append(distribution(*moved).ppf(at))
        found.append((ends[0] - ends[1]) / (2e-5 * abs(np.asarray(parameters[i])).max()))
    return found


@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_a_draw_moves_so_that_its_probability_stays(name, stage):
    draw, distribution, values = MOVING[name]
    g = ll.random.Generator(21)
    parameters = [ll.constant(np.full(8, p, F64)) for p in values]

    def both(*parameters):
        with ll.GradientTape() as tape:
            tape.watch(parameters)
            x = draw(g, *parameters)
        return x, tape.gradient(x, list(parameters))

    x, found = stage(both)(*parameters)
    wanted = slopes(distribution, [p.numpy() for p in parameters], x.numpy())
    for part, slope in zip(found, wanted, strict=True):
        np.testing.assert_allclose(part.numpy(), slope, rtol=2e-4, atol=1e-6)


def test_a_beta_moves_as_its_two_gammas_do():
    """Not one quantile function but two: the expectation's gradient is what must be right."""
    a, b = ll.constant(np.full(40000, 2.0)), ll.constant(np.full(40000, 3.0))
    with ll.GradientTape() as tape:
        tape.watch([a, b])
        squares = ll.random.Generator(5).beta(a, b) ** 2
    found = [g.numpy().mean() for g in tape.gradient(squares, [a, b])]

    def expected(a, b):
        return a * (a + 1) / ((a + b) * (a + b + 1))

    step = 1e-6
    wanted = [
        (expected(2 + step, 3) - expected(2 - step, 3)) / (2 * step),
        (expected(2, 3 + step) - expected(2, 3 - step)) / (2 * step),
    ]
    np.testing.assert_allclose(found, wanted, rtol=0.02)


def test_a_dirichlet_moves_its_expectation():
    concentration = ll.constant(np.array([1.0, 2.0, 3.0]))
    with ll.GradientTape() as tape:
        tape.watch(concentration)
        drawn = ll.random.Generator(5).dirichlet(concentration, (40000, 3))[:, 0].mean()
    wanted = np.array([1 / 6 - 1 / 36, -1 / 36, -1 / 36])
    np.testing.assert_allclose(tape.gradient(drawn, concentration).numpy(), wanted, atol=2e-3)


def test_a_shared_parameter_collects_the_gradients_of_all_its_draws():
    a = ll.constant(np.array(2.0))
    with ll.GradientTape() as tape:
        tape.watch(a)
        x = ll.random.Generator(3).gamma(a, shape=(40000,))
        mean = x.mean()
    assert tape.gradient(mean, a).item() == pytest.approx(1.0, abs=0.02)  # E x = a


def test_second_order_of_a_gamma_against_its_quantile_function():
    a = ll.constant(np.array([0.4, 2.0, 30.0]))
    with ll.GradientTape() as outer:
        outer.watch(a)
        with ll.GradientTape() as inner:
            inner.watch(a)
            x = ll.random.Generator(4).gamma(a)
        first = inner.gradient(x, a)
    second = outer.gradient(first, a).numpy()
    values, drawn, step = a.numpy(), x.numpy(), 1e-3
    at = stats.gamma(values).cdf(drawn)
    moved = [stats.gamma(values * (1 + sign * step)).ppf(at) for sign in (1, 0, -1)]
    wanted = (moved[0] - 2 * moved[1] + moved[2]) / (values * step) ** 2
    np.testing.assert_allclose(second, wanted, rtol=2e-3, atol=1e-5)


def test_forward_mode_agrees():
    a, direction = ll.constant(np.array([0.4, 2.0])), ll.constant(np.array([1.0, -2.0]))
    with ll.ForwardAccumulator(a, direction) as forward:
        x = ll.random.Generator(4).gamma(a)
    with ll.GradientTape() as tape:
        tape.watch(a)
        same = ll.random.Generator(4).gamma(a)
    assert x.tolist() == same.tolist()
    np.testing.assert_allclose(forward.jvp(x).numpy(), (tape.gradient(same, a) * direction).numpy(), rtol=1e-12)


def test_gradients_in_float32_of_tiny_and_huge_concentrations_are_finite():
    a = ll.constant([1e-6, 1e-3, 1.0, 1e3, 1e6])
    with ll.GradientTape() as tape:
        tape.watch(a)
        x = ll.random.Generator(4).gamma(a)
    assert np.isfinite(tape.gradient(x, a).numpy()).all()


JUMPING = {
    "random_bernoulli": ("score function", "Gumbel-softmax"),
    "random_categorical": ("score function", "Gumbel-softmax"),
    "random_poisson": ("score function",),
    "random_multinomial": ("score function",),
}


@pytest.mark.parametrize("name", JUMPING)
def test_what_jumps_has_no_gradient_and_names_the_remedy(name):
    op = get(name)
    assert op.vjp is None
    assert all(remedy in op.why_no_gradient for remedy in JUMPING[name])
    a = ll.constant([0.5, 0.25])
    with ll.GradientTape() as tape:
        tape.watch(a)
        drawn = ll.random.multinomial(3, a) if name.endswith("multinomial") else getattr(ll.random, name[7:])(a)
        y = drawn.astype("float32").sum()
    assert tape.gradient(y, a) is None

"""Random draws with arguments in another order than theirs, and with numbers outside their range."""

from __future__ import annotations

import pytest

import limelight as ll

T = ll.constant([1.0, 2.0, 3.0])

SWAPPED = {
    "beta": lambda: ll.random.beta((3,), 2.0, 3.0),
    "gamma": lambda: ll.random.gamma((3,), 2.0),
    "gamma in the middle": lambda: ll.random.gamma(2.0, (3,)),
    "categorical": lambda: ll.random.categorical((3,), T),
    "integers": lambda: ll.random.integers((3,), 0, 10),
    "dirichlet": lambda: ll.random.dirichlet((3,), T),
    "bernoulli": lambda: ll.random.bernoulli((3,), 0.5),
    "poisson": lambda: ll.random.poisson((3,), 2.0),
    "multinomial": lambda: ll.random.multinomial((3,), 10, T),
    "multinomial in the middle": lambda: ll.random.multinomial(3, (2,), T),
    "exponential": lambda: ll.random.exponential(2.0, (3,)),
    "normal": lambda: ll.random.normal(0.0, 1.0, (3,)),
    "uniform": lambda: ll.random.uniform(0.0, 1.0, (3,)),
    "laplace": lambda: ll.random.laplace(T),
}


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
@pytest.mark.parametrize("name", SWAPPED)
def test_arguments_in_another_order_get_the_call_shown(name, stage):
    with pytest.raises(
        ll.errors.LimelightError, match=rf"^random\.{name.split()[0]}[: ].*rite random\.{name.split()[0]}\("
    ):
        stage(SWAPPED[name])()


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: ll.random.normal((3,), 0.0, -1.0), r"^random\.normal: stddev must be at least 0, got -1"),
        (lambda: ll.random.normal((3,), T, -1), r"^random\.normal: stddev must be at least 0, got -1"),
        (lambda: ll.random.truncated_normal((3,), stddev=-1.0), r"stddev must be at least 0"),
        (lambda: ll.random.gamma(-1), r"^random\.gamma: concentration must be at least 0, got -1"),
        (lambda: ll.random.gamma(1.0, -2.0), r"^random\.gamma: scale must be at least 0, got -2"),
        (lambda: ll.random.beta(1.0, -2.0), r"^random\.beta: b must be at least 0, got -2"),
        (lambda: ll.random.exponential((2,), -1.0), r"^random\.exponential: scale must be at least 0"),
        (lambda: ll.random.bernoulli(1.5), r"^random\.bernoulli: p must be from 0 to 1, got 1.5"),
    ],
)
def test_numbers_out_of_range_are_refused(draw, said):
    for call in (draw, ll.function(draw)):
        with pytest.raises(ll.errors.ArgumentError, match=said):
            call()


def test_numbers_at_the_edge_and_tensors_pass():
    assert ll.random.normal((2,), 1.0, 0.0).tolist() == [1.0, 1.0]
    assert ll.random.uniform((2,), 3.0, 1.0).shape == (2,)
    assert ll.random.bernoulli(1, (2,)).tolist() == [True, True]
    assert ll.random.normal((3,), 0.0, -T).shape == (3,)


@pytest.mark.parametrize("p", [[-1.0, 1.0], [float("nan"), 1.0], [0.0, 0.0], [float("inf"), 1.0]])
@pytest.mark.parametrize("replace", [True, False])
def test_probabilities_of_a_choice_are_numbers_of_at_least_0(p, replace):
    with pytest.raises(ll.errors.ArgumentError, match=r"random.choice: .*probabilities"):
        ll.random.choice(2, (1,), p=p, replace=replace)


def test_a_choice_without_replacement_takes_nothing_that_is_impossible():
    with pytest.raises(ll.errors.ArgumentError, match="1 of the probabilities are above 0, 2 are needed"):
        ll.random.choice(3, (2,), p=[0.0, 1.0, 0.0], replace=False)
    assert sorted(ll.random.choice(3, (2,), p=[0.5, 0.0, 0.5], replace=False).tolist()) == [0, 2]
    assert ll.random.choice(3, (4,), p=[0.0, 1.0, 0.0]).tolist() == [1] * 4


def test_a_staged_choice_is_refused_when_it_is_drawn():
    staged = ll.function(lambda p: ll.random.choice(2, (3,), p=p))
    assert staged(ll.constant([0.0, 1.0])).tolist() == [1, 1, 1]
    with pytest.raises(ll.errors.ArgumentError, match="a logit is NaN, as the logarithm of a negative probability"):
        staged(ll.constant([-1.0, 1.0]))
    with pytest.raises(ll.errors.ArgumentError, match="a logit is NaN"):
        ll.random.categorical(ll.constant([[0.0, 1.0], [float("nan"), 0.0]]))
    assert ll.random.categorical(ll.constant([0.0, float("-inf")]), (3,)).tolist() == [0, 0, 0]


_SHAPE_FIRST = ("normal", "uniform", "exponential", "laplace", "gumbel", "cauchy", "truncated_normal")


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
@pytest.mark.parametrize("name", _SHAPE_FIRST)
def test_sizes_one_by_one_are_not_taken_for_parameters(name, stage):
    draw = getattr(ll.random, name)
    words = rf"write random\.{name}\(\(3, 4\)\).*random\.{name}\(\(3,\), \w+=4\.0"
    with pytest.raises(ll.errors.CallError, match=words):
        stage(lambda: draw(3, 4))()
    with pytest.raises(ll.errors.CallError, match=rf"write random\.{name}\(\(0, 1\)\)"):
        stage(lambda: draw(0, 1))()
    assert stage(lambda: draw(3))().shape == draw((3,), 4).shape == draw(3, 0.5).shape == (3,)


def test_sizes_that_can_only_be_parameters_pass():
    assert ll.random.normal(5, 0, 1).shape == ll.random.uniform(5, -1, 1).shape == ll.random.uniform(5, 0.0, 2).shape
    with pytest.raises(ll.errors.CallError, match=r"write random\.uniform\(shape, low, high\)"):
        ll.random.uniform(0, 1, (3,))


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_creation_functions_take_the_sizes_as_one_argument(name):
    with pytest.raises(ll.errors.CallError, match=rf"write ll\.{name}\(\(3, 4\)\)"):
        getattr(ll, name)(3, 4)


@pytest.mark.parametrize(
    "call",
    [
        lambda g: ll.random.normal(g, (2,)), lambda g: ll.random.normal(g, 0.0, 1.0),
        lambda g: ll.random.uniform(g, (2,)), lambda g: ll.random.bernoulli(g, 0.5),
        lambda g: ll.random.categorical(g, ll.ones(3)), lambda g: ll.random.integers(g, 5),
        lambda g: ll.random.poisson(g, 1.0), lambda g: ll.random.dirichlet(g, ll.ones(3)),
        lambda g: ll.random.beta(g, 1.0), ll.random.normal, ll.random.uniform, ll.random.exponential,
        ll.random.truncated_normal, ll.random.gamma, ll.random.split,
    ],
)  # fmt: skip
def test_a_generator_as_an_argument_as_jax_has_keys(call):
    with pytest.raises(ll.errors.CallError, match=r"a generator is .*write generator\.\w+\("):
        call(ll.random.Generator(0))

"""Random numbers of NumPy and `random` that a staged function draws while it is traced are told of at their line."""

import random
import warnings

import numpy as np
import pytest
from numpy.random import normal

import limelight as ll
from limelight.errors import HostRandomnessWarning

RNG = np.random.default_rng(0)
OWN = random.Random(0)


@pytest.mark.parametrize(
    ("draw", "instead"),
    [
        (lambda x: x + np.random.normal(size=3), "ll.random.normal(3)"),
        (lambda x: x + np.random.rand(3), "ll.random.uniform((3,))"),
        (lambda x: x + normal(size=3), "ll.random.normal(3)"),
        (lambda x: x + RNG.uniform(size=3), "ll.random.uniform(3)"),
        (lambda x: x * random.random(), "ll.random.uniform("),
        (lambda x: x * OWN.gauss(0.0, 1.0), "ll.random.normal("),
    ],
)
def test_a_draw_is_told_of_once_at_its_line_with_what_to_write(draw, instead):
    f = ll.function(draw)
    with pytest.warns(HostRandomnessWarning) as heard:
        f(ll.ones(3))
    f(ll.ones(3))
    (one,) = heard
    assert (one.filename, one.lineno) == (__file__, draw.__code__.co_firstlineno)
    assert instead in str(one.message)
    assert "every call that finds the trace gets the same numbers" in str(one.message)


def noise(x):
    return x + np.random.normal(size=3)


def test_a_draw_of_a_helper_of_two_staged_functions_is_told_of_once():
    @ll.function
    def inner(x):
        return noise(x)

    @ll.function
    def outer(x):
        return inner(x) * 2.0

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        outer(ll.ones(3))
        outer(ll.ones((1, 3)))  # a second trace
    (one,) = heard
    assert one.lineno == noise.__code__.co_firstlineno + 1


def test_a_generator_that_is_an_argument_or_an_attribute_is_known():
    class Layer(ll.Module):
        def __init__(self):
            super().__init__()
            self.rng = np.random.default_rng(0)

        def call(self, x):
            return x + self.rng.normal(size=3)

    @ll.function
    def given(x, rng):
        return x + rng.normal(size=3)

    with pytest.warns(HostRandomnessWarning, match=r"self\.rng\.normal"):
        ll.function(Layer())(ll.ones(3))
    with pytest.warns(HostRandomnessWarning, match=r"`rng\.normal"):
        given(ll.ones(3), np.random.default_rng(0))


def initialised():
    class Layer(ll.Module):
        w = None

        def call(self, x):
            if self.w is None:
                self.w = ll.Variable(np.random.normal(size=3))
            return ll.astype(x, ll.float64) + self.w

    return Layer()


def not_taken(x, draws=False):
    return x + np.random.normal(size=3) if draws else x


def in_py_func(x):
    return x + ll.py_func(lambda: np.random.normal() + 1.0, [], ll.float64)


def seeds(x):
    np.random.seed(0)
    return x


@pytest.mark.parametrize("make", [initialised, *[lambda f=f: f for f in (not_taken, in_py_func, seeds)]])
def test_no_false_alarm(make):
    f = ll.function(make())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(ll.ones(3, dtype=ll.float64))
        f(ll.ones((1, 3), dtype=ll.float64))


class Mute(random.Random):
    def getstate(self):
        raise NotImplementedError("this one has no state to tell")


class Odd(random.Random):
    def getstate(self):
        return np.ones(2), self  # which `!=` cannot compare


class Silent:
    def __getattr__(self, name):
        raise RuntimeError(f"asked for {name}")

    def __call__(self):
        return 1.0


@pytest.mark.parametrize(
    "make", [lambda: Mute(0).random, lambda: Odd(0).random, Silent], ids=["raises", "odd", "silent"]
)
def test_objects_of_the_users_that_do_not_answer_hide_no_other_draw(make):
    asked = make()
    f = ll.function(lambda x: x * asked() + OWN.random())
    with pytest.warns(HostRandomnessWarning, match=r"OWN\.random") as heard:
        f(ll.ones(3))
    assert len(heard) == 1
    ll.explain.side_effects(f)


def test_a_warning_that_is_an_error_comes_again_and_no_trace_is_kept():
    f = ll.function(lambda x: x + np.random.normal(size=3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(HostRandomnessWarning):
                f(ll.ones(3))
    assert not len(f.trace_cache)

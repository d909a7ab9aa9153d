"""Parameters of functions within a converted function that are called like names around them."""

# ruff: noqa: PLC3002  # the calls are what is tested

import pytest

import limelight as ll


def of_a_function_before(x, c):
    def scaled(t, q):
        return (lambda g: g * q)(t)

    m = x
    if c > 1.0:
        m = ll.vectorize(lambda q: q * c)(x)
    return scaled(x, c) + m


def after_a_return(x, c):
    def scaled(t, q):
        return (lambda g: g * q)(t)

    if c > 9.0:
        return x
    m = ll.vectorize(lambda q: q * c)(x)
    return scaled(x, c) + m


def of_a_function_in_a_branch(x, c):
    def scaled(t, q):
        return (lambda g: g * q)(t)

    m = x
    if c > 1.0:

        def tripled(q):
            return q * 3.0

        m = tripled(x)
    return scaled(x, c) + m


def of_what_no_loop_carries(x, c):
    q = "sin"
    while c > 0.0:
        x = ll.vectorize(lambda q: q * 0.5)(x)
        c = c - 1.0
    return getattr(ll, q)(x)


def of_what_is_rebound(x, c):
    q = x

    def middle():
        double = lambda q: q * 2.0  # noqa: E731  # lambdas are what is tested

        def inner():
            nonlocal q
            q = double(q)

        inner()

    if c > 1.0:
        middle()
    return q


@pytest.mark.parametrize(
    "f",
    [
        of_a_function_before,
        after_a_return,
        of_a_function_in_a_branch,
        of_what_no_loop_carries,
        of_what_is_rebound,
    ],
)
def test_parameters_are_no_names_of_the_code_around(f):
    staged = ll.function(f, autograph=True)
    x = ll.constant([0.1, 0.2])
    for c in map(ll.constant, (0.5, 2.5, 9.5)):
        assert ll.allclose(staged(x, c), f(x, c)).item()

"""Which code asks for identities: its own, and that of the user's functions, methods and objects that it calls."""

from __future__ import annotations

import functools
import operator
from typing import Any

import pytest

import limelight as ll
from limelight import where
from limelight.nn import relu
from limelight.user_code.identity_questions import asks


def same(a, b):
    return a is b


class Comparer:
    def same(self, a, b):
        return a is b

    def __call__(self, a, b):
        return self.same(a, b)

    @staticmethod
    def apart(a, b):
        return operator.is_not(a, b)


class Layer(ll.Module):
    def __init__(self):
        self.inner = [Comparer()]

    def call(self, a, b):
        return self.inner[0].same(a, b)


comparer, layer = Comparer(), Layer()


def watches(x):
    with ll.GradientTape() as tape:
        tape.watch(x)
    return x


def calls_one(a, b):
    return same(a, b) + 1


def calls_a_method(a, b):
    return comparer.same(a, b) + 1


def calls_a_module(a, b):
    return layer(a, b) + 1


def calls_a_static_method(a, b):
    return Comparer.apart(a, b) + 1


def within_it(a, b):
    def inner():
        return a is b

    return inner()


@pytest.mark.parametrize(
    "function",
    [
        same, comparer, comparer.same, layer, layer.call, watches, ll.function(same), functools.partial(same, 1),
        lambda a, b: id(a) == id(b), lambda a, b: [x is b for x in a], calls_one, calls_a_method, calls_a_module,
        calls_a_static_method, within_it,
    ],
)  # fmt: skip
def test_code_that_asks(function: Any) -> None:
    assert asks(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 0 if x is None else x, lambda x: where(x > 0, relu(x), ll.nn.gelu(x)), ll.nn.Dense(2), len, 3,
        lambda x: [x] == [x], ll.function(lambda x: x + 1),
    ],
)  # fmt: skip
def test_code_that_does_not(function: Any) -> None:
    """Limelight's own code does, here and there; it asks nothing of arguments that the user's code could tell."""
    assert not asks(function)


def test_methods_that_ask_are_traced_for_each_pattern():
    f = ll.function(lambda a, b: a if layer(a, b) else a + b)
    x, y = ll.constant(2.0), ll.constant(3.0)
    assert [f(x, y).item(), f(x, x).item(), f(x, y).item()] == [5.0, 2.0, 5.0]

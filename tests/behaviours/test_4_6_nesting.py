"""Section 4.6, `function`: staging and differentiation within one another (behaviour 167)."""

from __future__ import annotations

import pytest

import limelight as ll

x = ll.constant([1.0, 2.0])


def square(v):
    return ll.sum(v * v * v)


# 167


def test_167_staging_and_differentiation_in_any_order():
    def gradient(v):
        with ll.GradientTape() as tape:
            tape.watch(v)
            y = square(v)
        return tape.gradient(y, v)

    def gradient_of_staged(v):
        with ll.GradientTape() as tape:
            tape.watch(v)
            y = ll.function(square)(v)
        return tape.gradient(y, v)

    wanted = [3.0, 12.0]
    for fn in (gradient, gradient_of_staged):
        assert fn(x).tolist() == wanted
        assert ll.function(fn)(x).tolist() == wanted
        assert ll.function(ll.function(fn))(x).tolist() == wanted


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("outer", [True, False])
def test_167_second_gradients_through_staged_functions(inner, outer):
    def first(v):
        with ll.GradientTape() as tape:
            tape.watch(v)
            y = (ll.function(square) if inner else square)(v)
        return tape.gradient(y, v)

    with ll.GradientTape() as tape:
        tape.watch(x)
        g = (ll.function(first) if outer else first)(x)
    assert tape.gradient(g, x).tolist() == [6.0, 12.0]


def test_167_a_function_over_a_bound_method_of_a_function():
    class Model:
        def __init__(self):
            self.w = ll.Variable(3.0)

        @ll.function
        def step(self, v):
            return v * self.w

    model = Model()
    again = ll.function(model.step)
    assert again(x).tolist() == [3.0, 6.0]
    with ll.GradientTape() as tape:
        y = ll.sum(again(x))
    assert tape.gradient(y, model.w).item() == 3.0

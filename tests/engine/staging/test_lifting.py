"""Initial values of variables that a staged function computes while it is traced."""

from __future__ import annotations

from typing import Any

import pytest

import limelight as ll
from limelight.errors import SymbolicValueError


@pytest.mark.parametrize(
    ("initial", "wanted"),
    [
        (lambda x: ll.ones((2,)), [1.0, 2.0]),
        (lambda x: ll.zeros((x.shape[0],)) + 3.0, [3.0, 6.0]),
        (lambda x: x * 2.0, [2.0, 8.0]),
        (ll.function(lambda y: y + 1.0), [2.0, 6.0]),
    ],
)
def test_an_inner_function_computes_what_it_creates_when_called_from_an_outer_one(
    initial: Any, wanted: list[float]
) -> None:
    """Item 155."""
    made: list[ll.Variable] = []

    @ll.function
    def inner(x: Any) -> Any:
        if not made:
            made.append(ll.Variable(initial(x)))
        return x * made[0]

    @ll.function
    def outer(x: Any) -> Any:
        with ll.GradientTape() as tape:
            y = inner(x + 1.0)
        return y, tape.gradient(y, made[0])

    y, gradient = outer(ll.constant([0.0, 1.0]))
    assert y.tolist() == wanted
    assert gradient.tolist() == [1.0, 2.0]
    assert outer(ll.constant([0.0, 1.0]))[0].tolist() == y.tolist()


def test_an_initial_value_that_depends_on_an_argument_without_a_value_is_refused() -> None:
    made: list[ll.Variable] = []

    @ll.function
    def inner(x: Any) -> Any:
        if not made:
            made.append(ll.Variable(x * 2.0))
        return x * made[0]

    outer = ll.function(lambda x: inner(x + 1.0))
    with pytest.raises(SymbolicValueError, match="depends on an argument of '<lambda>' that has no value yet"):
        outer.get_concrete_function(ll.TensorSpec((2,), "float32"))
    made.clear()
    inner.clear_cache()
    assert outer(ll.ones(2)).tolist() == [8.0, 8.0]

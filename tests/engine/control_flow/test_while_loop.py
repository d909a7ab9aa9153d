"""`while_loop(maximum_iterations=...)` with a tensor, whose value a trace does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight.errors import ArgumentError

Function = Callable[..., Any]
both = pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
xs = ll.constant([1.0, 2.0, 3.0])


def product(limit: Any, start: Any, **options: Any) -> Any:
    """Multiplies with the first elements of `xs`; asked for another one, the condition would fail."""
    step = lambda i, s: (i + 1, s * xs[i])  # noqa: E731
    return ll.while_loop(lambda i, s: xs[i] > 0.0, step, (0, start), maximum_iterations=limit, **options)


@both
def test_the_condition_is_not_asked_once_the_limit_is_reached(stage: Function) -> None:
    f = stage(product)
    for dtype in (ll.int32, ll.uint8):
        assert [f(ll.constant(n, dtype), ll.constant(2.0))[1].item() for n in (0, 1, 3)] == [2.0, 2.0, 12.0]
    assert stage(lambda v: product(v, ll.constant(1.0)))(ll.Variable(2, trainable=False))[0].item() == 2
    with ll.GradientTape() as tape:
        tape.watch(s := ll.constant(0.5))
        y = f(ll.constant(3), s)[1]
    assert tape.gradient(y, s).item() == 6.0
    assert stage(lambda n: product(n, ll.constant(1.0), back_prop=False))(ll.constant(3))[1].item() == 6.0


@both
def test_each_example_has_a_limit_of_its_own(stage: Function) -> None:
    doubled = lambda n: ll.while_loop(lambda s: s < 100.0, lambda s: s * 2.0, (1.0,), maximum_iterations=n)[0]  # noqa: E731
    assert stage(ll.vectorize(doubled))(ll.constant([3, 0, 50])).tolist() == [8.0, 1.0, 128.0]


@both
@pytest.mark.parametrize("limit", [ll.constant(2.0), ll.constant([1, 2]), True, "3"])
def test_what_is_no_number(limit: Any, stage: Function) -> None:
    with pytest.raises(ArgumentError, match=r"maximum_iterations must be .* an integer tensor of one element, or None"):
        stage(lambda n: product(n, ll.constant(1.0)))(limit)

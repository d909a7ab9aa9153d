"""Loops that need not end for examples which took another branch, or are done: nobody waits for these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll

ROWS = np.array([[0.2, -0.6, 1.2], [0.1, -0.3, 0.6], [-0.2, 0.6, -1.2], [-1.0, -1.0, -1.0]], dtype="float32")
TOO_MANY = 40


def _checked(n: Any) -> Any:
    """Zero; an error, instead of a test that never ends, for the step of a loop that goes on for ever."""
    return ll.zeros((TOO_MANY,))[n]


def _grown(total: Any, r: Any) -> Any:
    """Grows `total` above 1: endless where `r` is not positive and `total` small."""
    first = (total, 0)
    return ll.while_loop(lambda t, n: t < 1.0, lambda t, n: (t * 1.5 + r + 0.1 + _checked(n), n + 1), first)[0]


_staged = ll.function(_grown)


def in_a_branch(x: Any) -> Any:
    def step(total: Any, r: Any) -> tuple[Any, Any]:
        grown = ll.cond(r > 0, lambda: _grown(total, r), lambda: _grown(total, 0.5 - r))
        return grown * ll.cond(r < -0.5, lambda: r, lambda: _grown(r, r + 1.0)), total

    return ll.scan(step, ll.constant(0.0), x)[0]


def in_a_function_in_a_branch(x: Any) -> Any:
    rows = lambda r: ll.switch(ll.astype(r > 0, "int32"), [lambda: r * r, lambda: _staged(r * 0.1, r) * r])  # noqa: E731
    return ll.sum(ll.map_fn(rows, x))


def in_a_loop_that_is_done(x: Any) -> Any:
    def body(n: Any, s: Any) -> tuple[Any, Any]:  # for n == 0 the inner loop would not end
        inner = (0.0, 0, s)
        more = lambda m, k, c: (m + n, k + 1, c + ll.sin(m * x[0]) + _checked(k))  # noqa: E731
        return n - 1.0, ll.while_loop(lambda m, k, c: m < 3.0, more, inner)[2]

    return ll.while_loop(lambda n, s: n > 0.5, body, (ll.floor(ll.abs(x[2] * 4)), x[1]))[1]


@pytest.mark.slow  # vectorised loops against each example's own
@pytest.mark.parametrize("f", [in_a_branch, in_a_function_in_a_branch, in_a_loop_that_is_done])
@pytest.mark.parametrize("derived", [lambda f: f, ll.grad, lambda f: lambda x: ll.jvp(f, (x,), (x,))[1], ll.hessian])
def test_loops_end_for_the_examples_that_want_them(f: Callable[..., Any], derived: Callable[..., Any]) -> None:
    rows = ll.constant(ROWS)
    want = np.stack([derived(f)(row).numpy() for row in rows])
    for way in (derived(f), derived(ll.function(f))):
        np.testing.assert_allclose(ll.vectorize(way)(rows).numpy(), want, rtol=1e-5, atol=1e-6)


def test_their_gradients_from_outside_and_with_an_unknown_number_of_examples() -> None:
    rows = ll.constant(ROWS)
    want = np.stack([ll.grad(in_a_branch)(row).numpy() for row in rows])
    many = ll.function(ll.vectorize(in_a_branch), input_signature=[ll.TensorSpec((None, 3), "float32")])
    for way in (ll.vectorize(in_a_branch), many):
        np.testing.assert_allclose(ll.grad(lambda x, way=way: ll.sum(way(x)))(rows).numpy(), want, rtol=1e-5, atol=1e-6)

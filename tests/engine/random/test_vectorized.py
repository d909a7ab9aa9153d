"""Draws under `vectorize`: from a generator that all share, and from one for each example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll

XS = ll.constant([0.5, 1.0, 2.0])


def generators(n: int = 3) -> list[Any]:
    return ll.random.Generator(3).split(n)


def in_a_loop(g: Any, x: Any) -> Any:
    return ll.while_loop(lambda i, y: i < x, lambda i, y: (i + 0.5, y + g.normal()), (0.0, 0.0))[1]


def after_a_reset(g: Any, x: Any) -> Any:
    state = g.state
    first = g.normal((2,))
    g.state = state
    return first * x - g.normal((2,))


staged = ll.function(lambda x, g: g.normal((2,)) * x + g.uniform())
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "normal": lambda g, x: g.normal((2,)) * x,
    "two draws": lambda g, x: g.uniform() + g.normal((3,)),
    "parameters": lambda g, x: g.gamma(x),
    "probabilities": lambda g, x: g.bernoulli(x / 3, (4,)),
    "integers": lambda g, x: g.integers(0, 9, (2,)),
    "permutation": lambda g, x: g.permutation(5),
    "state": lambda g, x: (g.normal(), g.state)[1],
    "reset": after_a_reset,
    "loop": in_a_loop,
    "branch": lambda g, x: ll.cond(x > 0.7, lambda: g.normal() + x, lambda: g.uniform() * x),
    "gradient": lambda g, x: ll.grad(lambda x: g.normal() * x * x)(x),
    "staged": lambda g, x: staged(x, g),
    "captured": lambda g, x: ll.function(lambda x: g.normal((2,)) * x)(x),
}


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
@pytest.mark.parametrize("chunk_size", [None, 2])
@pytest.mark.parametrize("around", [lambda f: f, ll.function], ids=["eager", "staged"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_each_example_draws_from_its_own(program: Any, around: Any, chunk_size: int | None) -> None:
    alone, together = generators(), generators()
    want = [program(g, x).numpy() for g, x in zip(alone, XS, strict=True)]
    vectorized = ll.vectorize(program, chunk_size=chunk_size)
    got = around(lambda xs: vectorized(together, xs))(XS).numpy()
    np.testing.assert_array_equal(got, np.stack(want))
    for a, b in zip(together, alone, strict=True):  # and they have advanced alike
        np.testing.assert_array_equal(a.state.numpy(), b.state.numpy())


def test_generators_split_inside() -> None:
    def program(g: Any) -> Any:
        first, second = g.split()
        return first.normal((2,)) + second.uniform()

    want = [program(g).numpy() for g in generators()]
    np.testing.assert_array_equal(ll.vectorize(program)(generators()).numpy(), np.stack(want))


def test_generators_by_name() -> None:
    want = [g.normal().item() for g in generators()]
    assert ll.vectorize(lambda *, g: g.normal())(g=generators()).tolist() == want


def test_a_list_without_an_axis_is_handed_on() -> None:
    got = ll.vectorize(lambda gs, x: gs[1].normal() * x, in_axes=(None, 0))(generators(), XS)
    assert got.tolist() == (generators()[1].normal((3,)) * XS).tolist()


def test_a_shared_generator_draws_for_all_examples_op_by_op() -> None:
    shared, alone = ll.random.Generator(1), ll.random.Generator(1)
    rows, numbers = ll.vectorize(lambda x: (shared.normal((2,)) * x, shared.uniform()))(XS)
    np.testing.assert_array_equal(rows.numpy(), (alone.normal((3, 2)) * XS.reshape((3, 1))).numpy())
    np.testing.assert_array_equal(numbers.numpy(), alone.uniform((3,)).numpy())


def test_errors() -> None:
    with pytest.raises(ll.errors.ShapeError, match="3 in `g`, 2 in `x`"):
        ll.vectorize(lambda g, x: g.normal())(generators(), XS[:2])
    with pytest.raises(ll.errors.ShapeError, match="list of generators and has no axis 1"):
        ll.vectorize(lambda g: g.normal(), in_axes=1)(generators())
    with pytest.raises(ll.errors.ArgumentError, match="one example's generator is a result"):
        ll.vectorize(lambda g: g)(generators())


def test_one_that_leaked() -> None:
    kept: list[Any] = []
    ll.vectorize(lambda g: (kept.append(g), g.normal())[1])(generators())
    with pytest.raises(ll.errors.LeakedTensorError, match=r"one example's generator leaked out of .*has ended"):
        kept[0].normal()

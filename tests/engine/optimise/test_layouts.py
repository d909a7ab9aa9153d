"""Level 2 keeps the bits of sums over arrays that lie otherwise than new ones: slices, repeated rows, arguments."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.graph import Graph, parse
from limelight.optimise.layouts import IN_ROWS, Layouts

Fn = Callable[[Any], Any]
SHAPE = (60, 117)  # large enough for a view where a row is repeated, and for sums that depend on the order
VIEWS: dict[str, Fn] = {
    "itself": lambda x: x,
    "transposed": lambda x: x.T,
    "columns": lambda x: x[:, ::2],
    "rows": lambda x: x[::3],
    "cut out": lambda x: x[3:40, 5:100],
    "flipped": lambda x: ll.flip(x, axis=1),
    "a row": lambda x: ll.broadcast_to(x[0], SHAPE),
    "a column": lambda x: ll.broadcast_to(x[:, :1], SHAPE),
    "a row, transposed": lambda x: ll.broadcast_to(x[0], SHAPE).T,
    "exponentials": lambda x: ll.exp(x.T),
}
NOTHING: dict[str, Fn] = {
    "times one": lambda y: y * 1.0,
    "divided by one": lambda y: y / 1.0,
    "less zero": lambda y: y - 0.0,
    "negated twice": lambda y: ll.negative(ll.negative(y)),
    "cast there and back": lambda y: y.astype("float64").astype("float32"),
    "its own dtype": lambda y: y.astype("float32"),
    "a choice of one": lambda y: ll.where(y > 0, y, y),
    "positive": lambda y: +y,
    "reshaped there and back": lambda y: y.reshape((-1,)).reshape(y.shape),
    "transposed there and back": lambda y: y.T.T,
    "absolute twice": lambda y: ll.abs(ll.abs(y)),
    "a negative added": lambda y: y * 0.5 + -y,
    "exponentials of a view": lambda y: ll.exp(y.reshape((-1,))).reshape(y.shape),
}
USES: dict[str, Fn] = {
    "sum": ll.sum,
    "sums of columns": lambda y: ll.sum(y, axis=0),
    "sums of rows": lambda y: ll.sum(y, axis=1),
    "sums of exponentials": lambda y: ll.sum(ll.exp(y), axis=0),
    "product": lambda y: y.T @ y,
}


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # many functions of one line
@pytest.mark.parametrize("view", VIEWS)
def test_what_does_nothing_to_values_does_nothing_to_bits(view: str) -> None:
    x = ll.constant(np.random.default_rng(0).normal(size=SHAPE).astype(np.float32))
    for (nothing, undone), (use, used) in itertools.product(NOTHING.items(), USES.items()):

        def f(x: Any, undone: Fn = undone, used: Fn = used) -> Any:
            return used(undone(VIEWS[view](x)))

        with ll.config.optimiser(level=2):
            staged = ll.function(f)(x)
        assert staged.numpy().tobytes() == f(x).numpy().tobytes(), f"{use} of {nothing}"


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
@pytest.mark.parametrize("nothing", NOTHING)
def test_so_it_is_of_arguments_that_are_views(nothing: str) -> None:
    x = ll.constant(np.random.default_rng(1).normal(size=SHAPE).astype(np.float32))
    for view in VIEWS.values():
        given = view(x)
        with ll.config.optimiser(level=2):
            staged = ll.function(lambda y: ll.sum(NOTHING[nothing](y)))(given)
        assert staged.numpy().tobytes() == ll.sum(NOTHING[nothing](given)).numpy().tobytes()


def _left(f: Fn) -> list[str]:
    with ll.config.optimiser(level=2):
        staged = ll.function(f)
        staged(ll.ones(SHAPE))
    return [node.op.name for node in staged.trace_cache[0].optimised.nodes]


def test_what_an_op_has_made_is_still_simplified() -> None:
    assert _left(lambda x: ll.exp(x) * 1.0) == ["exp"]
    assert _left(lambda x: ll.negative(ll.negative(ll.exp(x.T)))) == ["matrix_transpose", "exp"]
    assert "reshape" not in _left(lambda x: (x @ x.T).reshape((-1,)).reshape((60, 60)))
    assert "multiply" in _left(lambda x: x[::2] * 1.0)


def _layouts(text: str) -> tuple[Graph, Layouts]:
    graph = parse(text)
    return graph, Layouts(in_rows=graph.inputs)


def test_a_chain_of_any_length_is_asked_for() -> None:
    lines = "\n".join(f"  %{i + 1}: f32[4] = tanh(%{i})" for i in range(5000))
    graph, layouts = _layouts(f"graph f\n  input %0: f32[4]  x\n{lines}\n  return %5000\n")
    assert layouts.of(graph.outputs[0]) == IN_ROWS


def _of_level_2(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` staged, its first call at level 2."""
    staged = ll.function(f)

    def first(*args: Any) -> Any:
        with ll.config.optimiser(level=2):
            return staged(*args)

    return first


def _chains(x: Any, v: Any, length: int) -> Any:
    a, b = x, x
    for _ in range(length):
        a, b = ll.sin(a + v), ll.cos(b + v)
    return ll.sum((a - b) * 1.0)


def test_two_chains_of_any_length_are_compared() -> None:
    x, v = ll.ones((3, 4)), ll.ones((3, 4))
    assert np.isfinite(_of_level_2(lambda x, v: _chains(x, v, 5000))(x, v).numpy())


def _trajectories(x: Any, v: Any, steps: int) -> Any:
    """Two of the leapfrog kind from one start, in which each array is made of two that are made of the two before."""
    (xa, va), (xb, vb) = (x, v), (x, v)
    for _ in range(steps):
        xa = xa + 0.1 * va
        va = va - 0.1 * xa
        xb = xb + 0.2 * vb
        vb = vb - 0.2 * xb
    return ll.sum((xa - xb) * 1.0)


def test_layouts_that_share_their_parts_are_compared_in_as_many_steps_as_they_have_parts() -> None:
    x, v = ll.ones((30, 40)), ll.ones((30, 40)) * 2
    staged = _of_level_2(lambda x, v: _trajectories(x, v, 200))(x, v)  # of 2 ** 200 paths
    assert staged.numpy().tobytes() == _trajectories(x, v, 200).numpy().tobytes()

"""One tensor given twice to what runs once more for its gradient: its gradients are counted once, to any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll

pytestmark = [
    pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning"),
    pytest.mark.filterwarnings("ignore:gradient.. of a persistent tape inside its own block"),
]
X = np.array([0.3, -0.5, 0.8])
TRUE = ll.constant(True)
ZERO = ll.constant(0.0, ll.float64)


def cube(a: ll.Tensor, b: ll.Tensor) -> ll.Tensor:
    return a * b * b


WAYS: dict[str, Callable[[Any], ll.Tensor]] = {
    "call": lambda x: ll.function(cube)(x, x),
    "call that closes over it": lambda x: ll.function(lambda a: cube(a, x))(x),
    "call of a call": lambda x: ll.function(lambda a, b: ll.function(cube)(a, b) + 0.0 * x)(x, x),
    "cond": lambda x: ll.cond(TRUE, lambda: cube(x, x), lambda: x),
    "scan": lambda x: ll.scan(lambda carry, rows: (carry, cube(*rows)), ZERO, (x, x))[1],
    "scan that closes over it": lambda x: ll.scan(lambda carry, row: (carry, cube(row, row) + 0.0 * x[0]), ZERO, x)[1],
    "scan that begins with it": lambda x: ll.scan(lambda carry, row: (carry, cube(row, row)), x, x)[1],
    "while_loop": lambda x: ll.while_loop(lambda i, a: i < 1, lambda i, a: (i + 1, cube(a, x)), (ll.constant(0), x))[1],
    "map_fn": lambda x: ll.map_fn(lambda row: cube(row, row) + 0.0 * x[1], x),
    "vectorize": lambda x: ll.vectorize(lambda a: ll.function(cube)(a, a) + 0.0 * x[1])(x),
    "recompute_grad": lambda x: ll.recompute_grad(cube)(x, x),
    "recompute_grad of a nest": lambda x: ll.recompute_grad(lambda nest: cube(nest["a"], nest["b"][0]))(
        {"a": x, "b": [x]}
    ),
    "recompute_grad that closes over it": lambda x: ll.recompute_grad(lambda a: cube(a, x))(x),
    "py_func": lambda x: ll.py_func(cube, [x, x], [ll.TensorSpec((3,), ll.float64)])[0],
}


def first_order(way: Callable[[Any], ll.Tensor], x: ll.Tensor) -> Any:
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = way(x)
    return tape.gradient(y, x)


def one_tape(way: Callable[[Any], ll.Tensor], x: ll.Tensor) -> Any:
    """The gradient times x, differentiated by the tape that has recorded that gradient as well."""
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ll.sum(tape.gradient(way(x), x) * x)
    return tape.gradient(y, x)


def two_tapes(way: Callable[[Any], ll.Tensor], x: ll.Tensor) -> Any:
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.sum(first_order(way, x) * x)
    return tape.gradient(y, x)


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
@pytest.mark.parametrize(("order", "factor"), [(first_order, 3), (one_tape, 9), (two_tapes, 9)])
@pytest.mark.parametrize("name", WAYS)
def test_gradients_of_a_cube(name: str, order: Any, factor: int, stage: Any) -> None:
    found = stage(lambda x: order(WAYS[name], x))(ll.constant(X))
    np.testing.assert_allclose(found.numpy(), factor * X**2, rtol=1e-12)


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_a_variable_given_twice(stage: Any) -> None:
    v = ll.Variable(X)
    again = ll.recompute_grad(cube)

    def slope() -> Any:
        with ll.GradientTape(persistent=True) as tape:
            y, z = again(v, v), ll.function(cube)(v, v)
            second = ll.sum(tape.gradient(z, v) * v)
        return tape.gradient(y, v), tape.gradient(second, v)

    for found, factor in zip(stage(slope)(), (3, 9), strict=True):
        np.testing.assert_allclose(found.numpy(), factor * X**2, rtol=1e-12)

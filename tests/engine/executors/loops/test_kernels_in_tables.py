"""What kernels do without an inner loop of NumPy, in tables: places of extrema, casts, parts joined and multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from staged_on_loops import bits, in_tables, staged

import limelight as ll
from limelight.executors.loops import instructions
from limelight.executors.loops.layout import joined_order, strides_in_order

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((6, 5, 4)).astype("f4")


def both(function: Any, *arrays: Any, outside: frozenset[str] = frozenset()) -> None:
    """A function's results are the plan's to the bit, and come from tables."""
    args = [ll.constant(x) for x in arrays]
    run, plan = (staged(function, *args, executor=executor) for executor in ("loops", "plan"))
    tables, others = in_tables(run)
    assert (len(tables), others) == (1, outside)
    assert bits(run(*args)) == bits(plan(*args))
    assert tables[0].refused == 0


def with_ties_and_nan() -> Any:
    x = np.round(X * 2.0)
    x[1, 2, 3] = x[1, 3, 0] = np.nan
    x[2, 0] = [0.0, -0.0, 0.0, -0.0]
    return x


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize(
    "x", [X, with_ties_and_nan(), (X > 0.0).astype("i1"), (X * 3.0).astype("i4"), X.transpose(2, 0, 1)]
)
def test_places_of_extrema(x: Any, axis: int | None) -> None:
    def function(x: Any) -> Any:
        return [of(x, axis, keepdims=keep) for of in (ll.argmax, ll.argmin) for keep in (False, True)]

    x = x.copy()
    args = ll.constant(x)
    run, plan = (staged(function, args, executor=executor) for executor in ("loops", "plan"))
    assert not in_tables(run)[1] & {"argmax", "argmin"}
    assert bits(run(args)) == bits(plan(args))


def test_shorter_integers() -> None:
    numbers = RANDOM.integers(-(2**62), 2**62, (5, 3))

    def function(x: Any) -> Any:
        x = x + 1
        return [ll.astype(y, dtype) for y in (x, ll.transpose(x)) for dtype in (ll.int32, ll.int8, ll.uint16)]

    both(function, numbers)


def test_functions_of_scipy() -> None:
    both(lambda x: [ll.nn.gelu(x) * 2.0, ll.erf(x), ll.lgamma(x) + ll.digamma(x)], X)


def test_parts_of_matrices_are_multiplied_as_copies() -> None:
    def function(x: Any, w: Any) -> Any:
        x = ll.tanh(x)
        a, b = ll.split(x, 2, axis=1)
        return [a @ w, b @ ll.transpose(b), ll.transpose(b) @ a, (x[::2] @ ll.transpose(x[1::2])), b @ w[0]]

    both(function, RANDOM.standard_normal((6, 8)).astype("f4"), RANDOM.standard_normal((4, 4)).astype("f4"))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(20, 64), (9, 101), (70, 63)])
def test_a_column_times_a_row_keeps_the_bits_of_blas(
    shape: tuple[int, int], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BLAS adds a product to 0, where no zero keeps its sign."""
    monkeypatch.setattr(instructions, "_MANY_PRODUCTS", 1)
    x, y = (RANDOM.standard_normal((1, n)).astype(dtype) for n in shape)
    x[0, :3] = 0.0, -0.0, np.inf
    z = RANDOM.standard_normal(shape).astype(dtype)
    both(lambda x, y, z: [x.T @ y, z - 0.5 * (x.T @ y), ll.reshape(y, (-1, 1)) @ x], x, y, z)


def test_parts_are_joined_in_numpys_order() -> None:
    def function(x: Any) -> Any:
        x = ll.exp(x)
        parts = [x[:, :2], ll.transpose(x)[:5, :2], ll.expand_dims(x[0], 1)]
        return ll.sum(ll.concat(parts, axis=1) * 2.0, axis=0), ll.concat([x[:, 1:3], x[:, :1]], axis=1) + 1.0

    both(function, RANDOM.standard_normal((5, 5)).astype("f4"))


def turned(shape: Any) -> Any:
    """An array of a shape whose axes are in any order in memory, with gaps here and there, and repeated at times."""
    order = RANDOM.permutation(len(shape))
    room = [n + RANDOM.integers(0, 2) for n in shape]
    array = np.zeros([room[i] for i in order]).transpose(np.argsort(order))[tuple(map(slice, shape))]
    return np.broadcast_to(array[:1], shape) if RANDOM.random() < 0.2 else array


def test_the_order_of_what_is_joined_is_numpys() -> None:
    for _ in range(500):
        rank = int(RANDOM.integers(1, 5))
        axis = int(RANDOM.integers(0, rank))
        shape = RANDOM.integers(1, 4, rank)
        arrays = [turned([RANDOM.integers(1, 4) if i == axis else n for i, n in enumerate(shape)]) for _ in range(3)]
        joined = np.concatenate(arrays, axis)
        order = joined_order([(x.shape, x.strides) for x in arrays])
        assert strides_in_order(joined.shape, order, 8) == joined.strides, [(x.shape, x.strides) for x in arrays]

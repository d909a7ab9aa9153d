"""Ufuncs of a plan on all cores: which calls are shared, and that every number and the memory's order stay."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import limelight as ll
from limelight.core import cores
from limelight.executors import base
from limelight.executors.loops import loops
from limelight.executors.plan import plan, shared_ufuncs
from limelight.executors.plan.array_rows import in_rows
from limelight.graph import parse


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Three cores, and pieces of 7 elements."""
    monkeypatch.setattr(cores, "threads", lambda: 3)
    monkeypatch.setattr(shared_ufuncs, "threads", lambda: 3)
    for module in (cores, shared_ufuncs):
        monkeypatch.setattr(module, "WORTH", 30)
    monkeypatch.setattr(shared_ufuncs, "PIECE", 7)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


SHAPES = [(), (1,), (5,), (4, 5), (4, 1), (1, 4, 5), (3, 1, 1), (3, 4, 5), (2, 3, 4, 5), (2, 1, 1, 5), (1, 1, 1, 5)]


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations_with_replacement(SHAPES, 2)))
def test_rows_of_operands_that_broadcast(one, other):
    shape = np.broadcast_shapes(one, other, (2, 1, 1, 1))
    x, y = numbers(*one), numbers(*other)
    rows = in_rows((x, y), shape)
    found = np.empty(rows.shape, np.float32)
    for piece in rows.pieces(7):
        np.add(*rows.of(piece), out=found[piece])
    np.testing.assert_array_equal(found.reshape(shape), np.broadcast_to(x + y, shape))


def test_rows_of_arrays_with_gaps_and_in_other_orders():
    x, y = numbers(6, 4, 10)[:, :, ::2], numbers(6, 4, 5)
    rows = in_rows((x, y), (6, 4, 5))
    assert rows.shape == (6, 4, 5)
    assert np.shares_memory(rows.operands[0], x)
    np.testing.assert_array_equal(np.concatenate([np.add(*rows.of(p)) for p in rows.pieces(20)]), x + y)
    assert in_rows((y, y), (6, 4, 5)).shape == (120,)
    assert in_rows((numbers(5, 4, 6).T, y), (6, 4, 5)) is None
    assert in_rows((x[::-1], y), (6, 4, 5)) is None


@pytest.fixture
def pieces(monkeypatch):
    """How many pieces each shared call had."""
    found, shared = [], shared_ufuncs.for_each
    monkeypatch.setattr(shared_ufuncs, "for_each", lambda *given: found.append(len(given[1])) or shared(*given))
    return found


@ll.function
def chain(x, scale, offset):
    y = x * scale + offset
    return ll.nn.relu(y) - ll.maximum(x, 0.5), y > x, -y


@pytest.mark.parametrize("executor", ["plan", "loops"])
@pytest.mark.parametrize(("scale", "offset"), [((5,), (5,)), ((4, 6, 5), ()), ((4, 1, 1), (6, 1)), ((6, 5), (4, 6, 5))])
def test_a_plan_on_all_cores_has_the_numbers_of_its_steps(executor, scale, offset, pieces):
    operands = [ll.constant(numbers(*shape)) for shape in ((4, 6, 5), scale, offset)]
    with base.chosen.override("step"):
        wanted = chain(*operands)
    with base.chosen.override(executor):
        found = ll.function(chain.python_function)(*operands)
    for mine, theirs in zip(found, wanted, strict=True):
        assert (mine.dtype, mine.shape, mine.numpy().tobytes()) == (
            theirs.dtype,
            theirs.shape,
            theirs.numpy().tobytes(),
        )
    assert executor == "loops" or (pieces and min(pieces) > 1)


@pytest.mark.parametrize(("dtype", "n", "shared"), [("f4", 40, True), ("c8", 40, False), ("f4", 29, False)])
def test_complex_numbers_and_few_numbers_stay_with_one_call(dtype, n, shared, pieces):
    name = "c64" if dtype == "c8" else "f32"
    lines = ["graph g", f"  input %0: {name}[{n}]  x", f"  %1: {name}[{n}] = multiply(%0, %0)", "  return %1", ""]
    graph = parse("\n".join(lines))
    (found,) = plan.build(graph)(numbers(n).astype(dtype))
    assert bool(pieces) == shared
    np.testing.assert_array_equal(found, numbers(n).astype(dtype) ** 2)


def test_an_operand_in_another_order_has_the_result_in_numpys():
    multiply = shared_ufuncs.SharedUfunc(np.multiply, ll.constant(numbers(6, 8)).spec)
    x, y = numbers(8, 6).T, numbers(6, 8)
    assert multiply(x, x).strides == (x * x).strides
    into = np.empty((8, 6), np.float32).T
    assert multiply(y, y, into) is into
    np.testing.assert_array_equal(into, y * y)


def test_what_is_written_into_its_own_operand():
    subtract = shared_ufuncs.SharedUfunc(np.subtract, ll.constant(numbers(20, 6)).spec)
    x, y = numbers(20, 6), numbers(6)
    wanted = x - y
    assert subtract(x, y, x) is x
    np.testing.assert_array_equal(x, wanted)


def test_numpys_settings_hold_on_every_core():
    divide = shared_ufuncs.SharedUfunc(np.divide, ll.constant(numbers(20, 6)).spec)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        divide(numbers(20, 6), np.zeros((20, 6), np.float32))


def test_tables_take_the_gradient_of_relu_over_large_arrays():
    """Its kernel looks at the memory of what it is given, which stand-ins for arrays have not."""
    large = f"f32[{1 << 20}]"
    lines = ["graph g", f"  input %0: {large}  g", f"  input %1: {large}  y", f"  %2: {large} = relu_grad(%0, %1)"]
    graph = parse("\n".join([*lines, f"  %3: {large} = exp(%2)", "  return %3", ""]))
    assert [line.split()[0] for _, line in loops.code(graph)] == ["table", "table"]


OVERLAPPING = {
    "row": lambda y: y + y[0:1],
    "last row": lambda y: y[11:] - y,
    "column": lambda y: y * y[:, 0:1],
    "shifted": lambda y: y[1:] - y[:-1],
    "turned": lambda y: y[:10].T + y[:10],
    "reversed": lambda y: y[::-1] * y,
    "reshaped": lambda y: y.reshape((10, 12)) * y.reshape((-1,))[:12],
    "chain": lambda y: ll.tanh(y - y[5]) * y[7] + y,
}


@pytest.mark.parametrize("executor", ["plan", "loops"])
@pytest.mark.parametrize("program", OVERLAPPING)
def test_what_overlaps_with_what_is_written_in_place(executor, program, pieces):
    """NumPy copies such an operand first, but sees a piece of it alone."""
    x = ll.constant(numbers(12, 10))
    wanted = OVERLAPPING[program](ll.exp(x)).numpy()
    with base.chosen.override(executor):
        found = ll.function(lambda x: OVERLAPPING[program](ll.exp(x)))(x).numpy()
    assert (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())
    assert executor == "loops" or pieces

"""What plans write instead of a kernel gives what the kernel gives, for all dtypes and shapes where it is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core import dtypes
from limelight.core.op import get
from limelight.core.spec import TensorSpec
from limelight.errors import LimelightError
from limelight.executors.plan import plan, specialised_kernels
from limelight.executors.plan.kernel_calls import KernelCalls
from limelight.graph import Graph, Node, Value

SHAPES = [(), (3,), (1,), (2, 3), (3, 1), (0, 3), (2, 1, 3)]

CASES: dict[str, list[tuple[Any, ...]]] = {
    "all": [(None, False), ((0,), True)],
    "any": [(None, False), ((0,), True)],
    "astype": [(dtypes.float64,), (dtypes.float32,), (dtypes.bfloat16,), (dtypes.int8,)],
    "broadcast_to": [((2, 3),), ((4, 2, 1, 3),), ((70, 80, 3),)],
    "concat": [(0,), (-1,)],
    "expand_dims": [(0,), (-1,), ((0, 2),)],
    "identity": [()],
    "matrix_transpose": [()],
    "max": [(None, False), ((0,), True), ((-1,), False)],
    "min": [(None, False), ((0,), True), ((-1,), False)],
    "prod": [(None, False), ((0,), True), ((-1,), False)],
    "relu": [()],
    "reshape": [((-1,),), ((3, -1),)],
    "slice": [(((None, None, -1),),), ((0,),), ((None, (0, 1, None)),)],
    "squeeze": [((0,),), ((-1,),), (())],
    "stop_gradient": [()],
    "sum": [(None, False), ((0,), True), ((0,), False), ((-1,), False), ((0, 1), False), ((), False)],
    "sum_to": [((3,),), ((1,),), ((1, 3),), ((2, 1),), ((1, 1),), ((2, 3),), ((),)],
    "transpose": [((1, 0),), ((0, 2, 1),)],
}

OPERATORS = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
]


def sample(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    numbers = np.random.default_rng(0).normal(scale=9, size=shape)
    with np.errstate(all="ignore"):
        return np.asarray(numbers).astype(dtype)


def applied(
    op: str, arrays: list[np.ndarray], params: tuple[Any, ...], promised: list[TensorSpec]
) -> tuple[Any, Any] | None:
    """What the plan and the kernel give; None where the op does not take such operands."""
    inputs = [Value(spec) for spec in promised]
    if not all(array.dtype in get(op).accepts for array in arrays):
        return None
    try:
        spec = get(op).infer(*promised, *params)
        expected = get(op).kernel_on("numpy")(*arrays, *params)
    except (LimelightError, IndexError, ValueError, TypeError):
        return None
    node = Node(get(op), tuple(inputs), params, [spec])
    return plan.build(Graph("g", inputs, [node], node.outputs))(*arrays)[0], expected


def agree(got: Any, expected: Any) -> None:
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert np.array_equal(got, expected, equal_nan=got.dtype.kind in "fc")
    assert np.asarray(got).tobytes() == np.asarray(expected).tobytes(), "bit by bit: -0.0 is not 0.0"


@pytest.mark.slow  # every kernel with every dtype
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning", "ignore:invalid value encountered in cast")
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize("op", sorted(CASES))
def test_one_operand(op: str, dtype: np.dtype) -> None:
    for shape in SHAPES:
        for params in CASES[op]:
            for known in (True, False):
                array = sample(shape, dtype)
                spec = TensorSpec(shape if known else [None] * len(shape), dtype)
                found = applied(op, [array], params, [spec])
                if found is not None:
                    agree(*found)


@pytest.mark.parametrize("op", OPERATORS)
def test_operators_on_scalars(op: str) -> None:
    for dtype in dtypes.ALL:
        numbers = sample((), dtype), np.asarray(3).astype(dtype)
        found = applied(op, list(numbers), (), [TensorSpec((), dtype)] * 2)
        if found is not None:
            agree(*found)
            as_scalars = applied(op, [x[()] for x in numbers], (), [TensorSpec((), dtype)] * 2)
            agree(*as_scalars)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_products(dtype: np.dtype) -> None:
    shapes = [(3,), (3, 3), (1, 3), (3, 1), (0, 3), (2, 3, 3)]
    for left in shapes:
        for right in shapes:
            arrays = [sample(left, dtype), sample(right, dtype)]
            found = applied("matmul", arrays, (), [TensorSpec(x.shape, x.dtype) for x in arrays])
            if found is not None:
                agree(*found)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_masks(dtype: np.dtype) -> None:
    odd = np.array([[np.nan, np.inf, -np.inf], [0.0, -0.0, 2.0]]).astype(dtype)
    for g in (sample((2, 3), dtype), odd, odd[::-1]):
        with np.errstate(invalid="ignore"):
            agree(*applied("relu_grad", [g, odd], (), [TensorSpec((2, 3), dtype)] * 2))


def test_small_sums_are_products_and_large_ones_are_not() -> None:
    """The order of additions differs; results agree but for rounding, and infinities and NaN stay what they are."""
    for shape, chosen in (((30, 40), True), ((80, 80), False)):
        array = sample(shape, dtypes.float32)
        odd = array.copy()
        odd[0, :2] = np.inf, np.nan
        for params in [(None, False), ((0,), False), ((1,), False)]:
            got, expected = applied("sum", [array], params, [TensorSpec(shape)])
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-3)
            got, expected = applied("sum", [odd], params, [TensorSpec(shape)])
            assert np.array_equal(np.isnan(got), np.isnan(expected))
            assert np.array_equal(np.isposinf(got), np.isposinf(expected))
            node = Node(get("sum"), (Value(TensorSpec(shape)),), params, [TensorSpec(got.shape)])
            call = KernelCalls(specialised_kernels.specialised).of(node, "numpy")
            assert (call.kernel is not np.add.reduce and "dot" in f"{call.kernel}{call.infix}") == chosen


def nodes_of(op: str, params: tuple[Any, ...]) -> Iterator[Node]:
    for shape in SHAPES:
        spec = TensorSpec(shape)
        operands = (Value(spec),) * len(get(op).operands)
        try:
            yield Node(get(op), operands, params, [get(op).infer(*[spec] * len(operands), *params)])
        except (LimelightError, IndexError, ValueError, TypeError):
            continue


def test_every_choice_is_made_somewhere_above() -> None:
    """An entry of the tables that no case reaches is not tested."""
    cases = CASES | {op: [()] for op in (*OPERATORS, "matmul", "relu_grad")}
    chosen = {
        op
        for op, params in cases.items()
        for one in params
        for node in nodes_of(op, one)
        if KernelCalls(specialised_kernels.specialised).of(node, "numpy")
        != KernelCalls(lambda *_: None).of(node, "numpy")
    }
    assert chosen == set(cases)
    assert set(specialised_kernels._OPS) - {"read_variable", "matmul", "relu_grad"} == set(CASES)
    assert len(specialised_kernels._OPERATORS) == len(OPERATORS)


def test_results_that_are_called_fresh_share_nothing() -> None:
    """`fresh` decides whether buffers may be overwritten: it must be true of each call that says so."""
    for op, cases in CASES.items():
        for node in (node for params in cases for node in nodes_of(op, params)):
            if KernelCalls(specialised_kernels.specialised).of(node, "numpy").fresh:
                array = sample(node.inputs[0].spec.shape, dtypes.float32)
                result = plan.build(Graph("g", node.inputs, [node], node.outputs))(array)[0]
                assert not np.shares_memory(result, array), (op, node.params, array.shape)


def test_repeating_complex_numbers_keeps_their_infinities() -> None:
    x = np.array([complex(np.inf, 1.0), complex(-0.0, -0.0), complex(1.0, np.nan)], np.complex64)
    F = ll.function(lambda x: ll.broadcast_to(x, (2, 3)))
    assert F(ll.constant(x)).numpy().tobytes() == np.broadcast_to(x, (2, 3)).tobytes()


def test_a_sum_to_sizes_that_were_not_known_still_checks_them() -> None:
    F = ll.function(lambda x: x.sum_to((3,)), input_signature=[TensorSpec((None, None))])
    assert F(ll.ones((2, 3))).tolist() == [2, 2, 2]
    with pytest.raises(LimelightError):
        F(ll.ones((2, 5)))

"""What plans take for new memory is new: every such kernel of every op, on shapes and layouts of all kinds.

A plan writes into what it takes for new, so a kernel that returned a view of an operand, or memory that it keeps, would
have somebody else's numbers overwritten. The calls are those that the cases of the ops make, with their sizes replaced
by 0 and by 1 as well, on arrays in several layouts.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core import dispatch, dtypes
from limelight.core.op import Op, all_ops
from limelight.core.spec import known
from limelight.core.tensor import Tensor, wrap
from limelight.errors import LimelightError
from limelight.executors.plan.kernel_calls import KernelCall, KernelCalls, kernel_call
from limelight.executors.plan.specialised_kernels import specialised
from limelight.graph import Node, Value

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from cases import CASES  # of the ops
from opcase import FULL, Case

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encountered in"),
    pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning"),
]


def resized(case: Case) -> Iterator[Case]:
    """The case, and the same with some or all sizes 0 or 1; not all of these fit the op."""
    yield case
    sizes = sorted({n for x in case.inputs for n in x.shape})
    for new in (0, 1):
        for replaced in [*[{n} for n in sizes], set(sizes)]:
            shapes = [tuple([new if n in replaced else n for n in x.shape]) for x in case.inputs]
            inputs = [dataclasses.replace(x, shape=shape) for x, shape in zip(case.inputs, shapes, strict=True)]
            yield dataclasses.replace(case, inputs=tuple(inputs))


def layouts(array: np.ndarray) -> list[np.ndarray]:
    """The same shape in memory of its own, in column order, with gaps, read backwards, and repeated."""
    every = (slice(None, None, -1),) * array.ndim
    room = np.zeros((*array.shape[:-1], 2 * array.shape[-1]) if array.ndim else (), array.dtype)
    gaps = room[..., ::2] if array.ndim else room
    gaps[...] = array
    repeated = np.broadcast_to(array.reshape(-1)[:1].reshape((1,) * array.ndim), array.shape) if array.size else array
    return [np.array(array), np.array(array, order="F"), gaps, np.array(array[every])[every], repeated]


class Calls(dispatch.Interpreter):
    """Runs ops eagerly, and collects with what they are called."""

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[str, dict[Any, tuple[Op, list[np.ndarray], tuple[Any, ...]]]] = defaultdict(dict)

    def process(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        assert self.below is not None
        result = self.below.process(op, inputs, attrs)
        if op.effect is None and not op.higher_order and not op.placement:
            arrays = [np.asarray(x._data if isinstance(x, Tensor) else x) for x in inputs]
            key = (repr(attrs), *[(x.shape, x.dtype) for x in arrays])
            self.of[op.name].setdefault(key, (op, arrays, attrs))
        return result


def is_taken(op: Op) -> bool:
    """Whether plans take some results of an op for new memory."""
    kernel = op.kernel_on("numpy")
    return op.fresh or kernel_call(kernel).fresh or specialised(op, kernel) is not None


NEW = sorted(op.name for op in all_ops().values() if not op.higher_order and op.effect is None and is_taken(op))


_LIKE_ANOTHER = {dtypes.int8, dtypes.int16, dtypes.uint16, dtypes.uint32, dtypes.float16}
"""Kernels that return an operand do so for its kind, or where it has the dtype that they compute in: none of these."""


@pytest.fixture(scope="module")
def calls() -> Calls:
    made = Calls()
    for case in itertools.chain.from_iterable(map(resized, [x for x in CASES if FULL or x.op in NEW])):
        tried = [dtype for dtype in case.tried if dtype not in _LIKE_ANOTHER] or case.tried
        for dtype in tried[: None if FULL else 1]:
            dispatch.push(made, sys._getframe())
            try:
                case.call(*[wrap(x) for x in case.arrays(dtype)])
            except (LimelightError, ValueError, IndexError, ZeroDivisionError, np.linalg.LinAlgError):
                pass  # the sizes do not fit
            finally:
                dispatch.remove(made)
    return made


def kernel_calls(op: Op, arrays: Sequence[np.ndarray], attrs: tuple[Any, ...]) -> list[KernelCall]:
    """How plans call the op where its operands have these sizes, known and unknown, if they take the result for new."""
    ways = [kernel_call(op.kernel_on("numpy"))]
    ways = [one._replace(fresh=one.fresh or op.fresh) for one in ways]
    for hidden in (False, True):
        shapes = [(None,) * x.ndim if hidden else x.shape for x in arrays]
        inputs = [Value(known(s, dtypes.dtype(x.dtype))) for s, x in zip(shapes, arrays, strict=True)]
        try:
            specs = op.infer(*[value.spec for value in inputs], *attrs)
        except LimelightError:  # it cannot be traced without sizes, or a gradient op was given what does not fit
            continue
        node = Node(op, inputs, attrs, specs if op.multiple else [specs])
        ways.append(KernelCalls(specialised).of(node, "numpy"))
    return [one for one in ways if one.fresh]


def run(way: KernelCall, attrs: tuple[Any, ...], arrays: Sequence[np.ndarray]) -> list[Any]:
    params = attrs if way.params is None else way.params
    if way.kernel is not None:
        operands = [tuple(arrays)] if way.packed else [*arrays]
        result = way.kernel(*way.first, *operands, *way.extra, *params)
    else:
        scope = {f"v{i}": x for i, x in enumerate([*arrays, *params])}
        first, *others = scope
        result = eval(f"{first}{way.infix}{', '.join(others)}{way.suffix}", scope)
    return [x for x in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(x, np.ndarray)]


def owner(array: np.ndarray) -> Any:
    """The array whose memory it is; empty arrays share no element, and may be views all the same."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def fault(results: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> str:
    """What is wrong with results that should be new, `others` being whatever they must not share memory with."""
    for i, x in enumerate(results):
        if not x.flags.writeable:
            return "is read-only"
        if any(owner(x) is owner(y) or np.may_share_memory(x, y) for y in [*others, *results[:i]]):
            return "shares memory"
        if x.size and any(step == 0 and n > 1 for n, step in zip(x.shape, x.strides, strict=True)):
            return "has the same memory for several elements"
    return ""


@pytest.mark.parametrize("name", NEW)
def test_what_plans_take_for_new_memory_is_new(name: str, calls: Calls) -> None:
    taken = 0
    for op, arrays, attrs in calls.of[name].values():
        laid = [[x] * 5 if i in op.on_host else layouts(x) for i, x in enumerate(arrays)]  # sizes stay as they are
        for way in kernel_calls(op, arrays, attrs):
            for operands in zip(*laid, strict=True) if arrays else [()]:
                results, again = run(way, attrs, operands), run(way, attrs, operands)
                taken += 1
                where = [x.shape for x in arrays], attrs, way
                assert not fault(results, [*operands, *again]), where
    kernel = kernel_call(all_ops()[name].kernel_on("numpy"))
    assert taken or not (kernel.fresh or all_ops()[name].fresh), "no case calls it"


def test_a_tiled_empty_array_is_no_view() -> None:
    for shape in ((2, 0), (0, 0), (0, 3)):
        x = ll.asarray(np.ones(shape, "float32"))
        x.numpy()  # locks its memory
        f = lambda x: ll.abs(ll.sign(ll.tile(x, 2)))  # noqa: E731
        assert ll.function(f)(x).shape == f(x).shape

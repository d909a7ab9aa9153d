"""The ways in which an op can be run. Each takes (function, tensors) and gives what the function returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import limelight as ll
from limelight import dispatch, dtypes, shapes
from limelight.spec import TensorSpec
from limelight.tensor import Tensor

Way = Callable[[Callable[..., Any], Sequence[Tensor]], Any]


class Checking(dispatch.Interpreter):
    """Compares what each op gives with what its `infer` said."""

    def process(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        assert self.below is not None
        result = self.below.process(op, inputs, attrs)
        specs = op.infer(*[_spec(x, op, inputs) for x in inputs], *attrs)
        results, specs = (result, specs) if op.multiple else ((result,), (specs,))
        assert len(results) == len(specs), f"{op}: infer says {len(specs)} outputs, there are {len(results)}"
        for found, said in zip(results, specs, strict=True):
            assert found.dtype is said.dtype, f"{op}: infer says {said}, the kernel gave {found.spec}"
            assert shapes.compatible(found.shape, said.shape), f"{op}: infer says {said}, the kernel gave {found.spec}"
        return result


def _spec(x: Any, op: Any, inputs: tuple[Any, ...]) -> Any:
    if hasattr(x, "spec"):
        return x.spec
    uniform = [y for y, operand in zip(inputs, op.operands, strict=True) if operand.accepts is None]
    dtype = next((y.dtype for y in uniform if hasattr(y, "dtype")), dtypes.default_for(x))
    return TensorSpec((), dtype)


def eager(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
    """The hot path: nothing on the stack."""
    return function(*tensors)


def checked(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
    """The slow path, where each op is held to its shape rule."""
    checker = Checking()
    dispatch.push(checker)
    try:
        return function(*tensors)
    finally:
        dispatch.remove(checker)


def taped(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
    """Under a tape that watches whatever can be watched."""
    with ll.GradientTape() as tape:
        tape.watch([x for x in tensors if dtypes.is_inexact(x.dtype)])
        return function(*tensors)


WAYS: dict[str, Way] = {"eager": eager, "checked": checked, "taped": taped}

"""The ways in which an op can be run. Each takes (function, tensors) and gives what the function returns."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import limelight as ll
from limelight.core import dispatch, dtypes, shapes
from limelight.core.spec import GENERATOR, TensorSpec
from limelight.core.tensor import Tensor, wrap
from limelight.executors import step
from limelight.executors.plan import plan
from limelight.explain.retracing import restaging
from limelight.staging.tracer import Tracer

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
    dispatch.push(checker, sys._getframe())
    try:
        return function(*tensors)
    finally:
        dispatch.remove(checker)


def taped(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
    """Under a tape that watches whatever can be watched."""
    with ll.GradientTape() as tape:
        tape.watch([x for x in tensors if dtypes.is_inexact(x.dtype)])
        return function(*tensors)


class Disguise:
    """NumPy under another name, for which kernels take their way for any backend but NumPy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class Elsewhere(dispatch.Interpreter):
    """Runs the kernels that are written for every backend, where NumPy has one of its own."""

    def process(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        kernel = functools.reduce(getattr, op.kernel.split("."), np) if isinstance(op.kernel, str) else None
        payloads = [getattr(x, "_data", x) for x in inputs]
        run = kernel or functools.partial(op.kernel, Disguise())
        with np.errstate(all="ignore"):
            result = run(*payloads, *attrs)
        return tuple(map(wrap, result)) if op.multiple else wrap(result)


def elsewhere(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
    """By the kernels that any array library runs."""
    interpreter = Elsewhere()
    dispatch.push(interpreter, sys._getframe())
    try:
        return function(*tensors)
    finally:
        dispatch.remove(interpreter)


WAYS: dict[str, Way] = {"eager": eager, "checked": checked, "taped": taped, "elsewhere": elsewhere}


def staged(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
    """As a staged function: traced, optimised, run by the plan; the second call, from the cache, counts."""
    restaging.forget()  # or each trace looks for what it has in common with those of other cases
    F = ll.function(function)
    F(*tensors)
    result = F(*tensors)
    assert F.trace_count == 1
    return result


def of_unknown_sizes(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
    """As a staged function that was traced without knowing any size."""
    signature = [TensorSpec((None,) * x.ndim, x.dtype) for x in tensors]
    restaging.forget()
    return ll.function(function, input_signature=signature)(*tensors)


def unoptimised(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
    """The graph as traced, run by the plan."""
    graph, payloads, again = _traced(function, tensors)
    return again(plan.build(graph)(*payloads))


def stepped(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
    """The graph as traced, run one node at a time."""
    graph, payloads, again = _traced(function, tensors)
    return again(step.run(graph, payloads).outputs)


def _traced(function: Callable[..., Any], tensors: Sequence[Tensor]) -> tuple[Any, list[Any], Callable[[Any], Any]]:
    """The graph of `function`, which captures generators only; its payloads; what turns its outputs into tensors."""
    with Tracer("case") as tracer:
        result = function(*[tracer.add_input(x.spec) for x in tensors])
        many = isinstance(result, tuple)
        graph = tracer.finish(result if many else (result,))
    assert all(x.spec is GENERATOR for x in tracer.captures)
    payloads = [x._data for x in (*tensors, *tracer.captures)]
    return graph, payloads, lambda found: tuple(map(wrap, found)) if many else wrap(found[0])


STAGED_WAYS: dict[str, Way] = {
    "staged": staged,
    "of unknown sizes": of_unknown_sizes,
    "unoptimised": unoptimised,
    "stepped": stepped,
}

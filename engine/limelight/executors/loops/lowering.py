"""A node as instructions: its kernel is called with arrays that write down what is done with them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final

import numpy as np

from limelight.core.devices import CPU0
from limelight.core.op import Op, get, home_of
from limelight.core.shapes import is_static
from limelight.core.spec import Spec, TensorSpec
from limelight.executors.loops import templates
from limelight.executors.loops.checked_sums import checked_total
from limelight.executors.loops.control_flow import LOWERINGS
from limelight.executors.loops.instructions import Instructions, NotLowered, check_dtype
from limelight.executors.loops.layout import View
from limelight.executors.loops.loop_state import with_effect
from limelight.executors.loops.powers import power
from limelight.executors.loops.traced_array import TracedArray
from limelight.executors.plan.kernel_calls import KernelCall, KernelCalls
from limelight.graph.ir import Node, Value
from limelight.ops.create.literal import constant_op
from limelight.optimise.guarded_sum import guard_of

NAME: Final = "loops"
"""The executor's name. Functions that ask for another one are not a part of tables."""
_UNKNOWN: Final = "it is no op of limelight's own, and its kernel may do anything"
MOST_INNER_NODES: Final = 20_000
"""Of called functions in a table, each as often as it is called: calls of calls would grow without bound."""


class Lowering:
    """What the nodes of a graph that is built have in common: what the plan calls for each.

    Args:
        kernel_calls: what the plan calls for each node.
    """

    def __init__(self, kernel_calls: KernelCalls) -> None:
        self.kernel_calls = kernel_calls
        self._kinds: dict[Op, tuple[str, str]] = {}

    def kind_of(self, op: Op) -> tuple[str, str]:
        """Why no node of an op can be in a table, and in which way one is lowered."""
        kind = self._kinds.get(op)
        if kind is None:
            kind = self._kinds[op] = (_unknown(op), _way(op))
        return kind


def _way(op: Op) -> str:
    if guard_of(op) is not None:
        return "guard"
    return "control" if op.higher_order else "power" if op.name == "pow" else "kernel"


def lowered(node: Node, operands: Sequence[View], to: Instructions, calls: Lowering) -> list[View]:
    """Appends the instructions of a node whose pattern is not known (`templates`); returns its results.

    Raises:
        NotLowered: a table cannot do it, or not as the plan does. Instructions may have been appended.
    """
    op = node.op
    way = calls.kind_of(op)[1]
    arrays: list[Any] = [TracedArray(x, to) if type(x) is View else x for x in operands]
    start, looked_at = len(to.list), to.looked_at
    if way == "kernel" and (reason := templates.refusal(node, operands)):
        raise NotLowered(reason)
    if way == "kernel" or (way == "power" and operands[1].buffer.array is not None):
        try:
            made = _traced(lambda: called(calls.kernel_calls.of(node, "numpy"), node, arrays, to))
        except NotLowered as refusal:
            if way == "kernel" and to.looked_at == looked_at:
                templates.keep_refusal(node, operands, str(refusal))
            raise
        traced = [_as_traced(x, to) for x in (made if op.multiple else (made,))]
    elif way == "power":
        traced = [power(*arrays)]
    elif way == "control":
        traced = LOWERINGS[op.name](node, arrays, to, functools.partial(lowered_function, to=to, calls=calls))
    else:
        guard = guard_of(op)
        assert guard is not None
        traced = [checked_total(guard, arrays, to)]
    results = [x.view for x in traced]
    for view, value in zip(results, node.outputs, strict=True):
        spec = value.spec
        assert isinstance(spec, TensorSpec)
        if view.shape != spec.shape or view.dtype != spec.dtype:
            raise NotLowered("its kernel returns another type than its rule says")
    if way == "kernel" and to.looked_at == looked_at:
        templates.keep(node, operands, to.list[start:], results)
    return results


def _as_traced(x: Any, to: Instructions) -> TracedArray:
    return x if isinstance(x, TracedArray) else TracedArray(to.constant(x), to)


def lowered_function(function: Any, arguments: Sequence[Any], to: Instructions, calls: Lowering) -> list[TracedArray]:
    """Appends the instructions of a function that a node calls; returns its results.

    Args:
        function: the function.
        arguments: arrays, or in the place of variables and generators `Cell`s and `Generator`s.
        to: where instructions are appended.
        calls: what the plan calls for each node.
    """
    if getattr(function, "executor", None) != NAME:
        raise NotLowered(f"`{function.name}` runs on another executor")
    graph = function.optimised.graph
    to.inner_nodes += len(graph.nodes)
    if to.inner_nodes > MOST_INNER_NODES:
        raise NotLowered("the functions that it calls are too long")
    given = [x.view if type(x) is TracedArray else x for x in arguments]
    views: dict[Value, Any] = dict(zip(graph.inputs, given, strict=True))
    done = 0
    while (done := templates.take_known(graph.nodes, done, views, to.list, [])) < len(graph.nodes):
        node = graph.nodes[done]
        views.update(zip(node.outputs, _lowered_inside(node, views, to, calls), strict=True))
        done += 1
    return [TracedArray(views[value], to) for value in graph.outputs]


def _lowered_inside(node: Node, views: Mapping[Value, Any], to: Instructions, calls: Lowering) -> Sequence[View]:
    """Appends the instructions of a node of a called function; returns its results."""
    if node.op is constant_op:
        return [to.constant(constant(node))]
    operands = [views[x] for x in node.inputs]
    if node.op.effect is not None and not node.op.higher_order:
        return [_with_effect(node, operands, to)]
    reason = never(node, views, calls)
    if reason:
        raise NotLowered(f"it calls `{node.op}`: {reason}")
    try:
        return lowered(node, operands, to, calls)
    except NotLowered as refusal:
        raise NotLowered(f"it calls `{node.op}`: {refusal}") from None


def _with_effect(node: Node, operands: Sequence[Any], to: Instructions) -> View:
    try:
        result: View = _traced(lambda: with_effect(node, operands, to))
        return result
    except NotLowered as refusal:
        raise NotLowered(f"it calls `{node.op}`: {refusal}") from None


def _traced(kernel: Callable[[], Any]) -> Any:
    """What a kernel makes of arrays that are not there. Raises NotLowered where it raises, which the run shall do."""
    try:
        return kernel()
    except NotLowered:
        raise
    except Exception as error:  # whatever a kernel may raise
        raise NotLowered(f"its kernel raises {type(error).__name__} when it is traced") from error


def called(call: KernelCall, node: Node, operands: Sequence[Any], to: Instructions) -> Any:
    """What the plan's call for a node returns for these operands."""
    params = node.params if call.params is None else call.params
    if call.elementwise and not call.extra and isinstance(call.kernel, np.ufunc):  # without a turn through NumPy
        return operands[0].__array_ufunc__(call.kernel, "__call__", *operands)
    if call.kernel is None:
        return _infix_call(call.infix, call.suffix, len(operands) + len(params))(*operands, *params)
    owner = getattr(call.kernel, "__self__", None)
    if isinstance(owner, np.ndarray):  # `ones.dot`: arrays do not ask their operands
        return getattr(TracedArray(to.constant(owner), to), call.kernel.__name__)(*operands, *params)
    arrays = (tuple(operands),) if call.packed else operands
    return call.kernel(*call.first, *arrays, *call.extra, *params)


@functools.lru_cache(maxsize=256)
def _infix_call(infix: str, suffix: str, n: int) -> Callable[..., Any]:
    """The function that calls without a kernel are written as (see `KernelCall`)."""
    names = [f"x{i}" for i in range(n)]
    code = f"lambda {', '.join(names)}: {names[0]}{infix}{', '.join(names[1:])}{suffix}"
    function: Callable[..., Any] = eval(code)  # the text is that of the plan's own calls
    return function


def constant(node: Node) -> Any:
    """The array of a literal."""
    return node.op.kernel_on("numpy")(*node.params)


def never(node: Node, known: Container[Value], calls: Lowering, may_have_effect: bool = False) -> str:
    """Why a node cannot be in a table, whatever its kernel does; `known` values can be in one."""
    op = node.op
    if node.device is not None and node.device is not CPU0:
        return f"it runs on {node.device.short}"
    if op.effect is not None and not may_have_effect:
        return "it reads a variable, which the plan does" if op.effect == "read" else "it has an effect"
    reason = calls.kind_of(op)[0]
    if reason:
        return reason
    for value in node.inputs[1:] if may_have_effect else node.inputs:  # the first is the variable
        if value not in known and (reason := unfit(value.spec)):
            return reason
    for value in node.outputs:
        if reason := unfit(value.spec):
            return reason
    return ""


def _unknown(op: Op) -> str:
    """Why no node of an op can be in a table."""
    if op.higher_order and op.name not in LOWERINGS:
        return "it calls functions"
    if guard_of(op) is None and (home_of(op.name) == "" or not home_of(op.name).startswith("limelight.")):
        return _UNKNOWN
    return "" if guard_of(op) is not None or get(op.name) is op else _UNKNOWN


def unfit(spec: Spec) -> str:
    """Why values of a spec cannot be in a table."""
    if not isinstance(spec, TensorSpec):
        return "it takes something that is no array"
    return _unfit_array(spec.shape, spec.dtype)


@functools.lru_cache(maxsize=4096)
def _unfit_array(shape: Any, dtype: Any) -> str:
    if not is_static(shape):
        return "its sizes are unknown"
    if 0 in shape:
        return "it has no elements"
    try:
        check_dtype(dtype)
    except NotLowered as refusal:
        return str(refusal)
    return ""

"""Forward mode through staged functions, branches and loops: their graphs with tangents as further values.

The first push through a function for a pattern of moving inputs traces its graph once more under an accumulator; the
result takes the tangents of those inputs behind them and returns the tangents of what moves. It is kept with the
function, like the forward/backward pair, and is an ordinary function, so it can be recorded and pushed through itself.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from limelight.autodiff import INEXACT, ForwardAccumulator, filled
from limelight.control_flow.branch_gradient import branches_of, cond_forward, switch_forward, with_branches
from limelight.control_flow.cond import cond_op
from limelight.control_flow.py_func import (
    PythonCall,
    again_call,
    py_func_backward,
    py_func_forward,
    py_func_op,
    warn_of_departed,
)
from limelight.control_flow.switch import switch_op
from limelight.control_flow.while_loop_gradient import while_forward
from limelight.control_flow.while_loop_op import while_op
from limelight.core import device_scopes, dispatch
from limelight.core.op import Op
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight.graph.ir import Graph
from limelight.staging.call_gradient import call, call_forward
from limelight.staging.graph_function import GraphFunction
from limelight.staging.tracer import Tracer, replay

Flags = tuple[bool, ...]


class Pushed(NamedTuple):
    """A graph function with tangents, and which of the original's outputs have one, in order."""

    function: GraphFunction
    moving: tuple[int, ...]


def pushed(function: Any, moving: Flags, forced: Flags = (), *cuts: int) -> Pushed:
    """`function` for inputs of which `moving` have tangents, built once.

    Inputs: those before the first cut (all, by default), their tangents, those before the next one, their tangents, and
    so on. Outputs: those before the first cut, their tangents, the others, their tangents. Outputs that are `forced`
    have a tangent in any case.
    """
    key = ("pushed", moving, forced, cuts)
    found: Pushed | None = function.pairs.get(key)
    if found is None:
        found = function.pairs[key] = _push_graph(function.graph, moving, forced, cuts)
    return found


def _push_graph(graph: Graph, moving: Flags, forced: Flags, cuts: tuple[int, ...]) -> Pushed:
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(f"pushed_{graph.name}") as tracer:
        inputs, tangents = _arguments(tracer, graph, moving, cuts)
        with ForwardAccumulator([inputs[i] for i in tangents], list(tangents.values())) as forward:
            outputs = replay(graph, inputs)
        found: list[Any] = []
        for i, y in enumerate(outputs):
            floating = isinstance(y, Tensor) and y.dtype in INEXACT
            t = forward.jvp(y) if floating else None
            found.append(filled(0, y) if t is None and floating and forced and forced[i] else t)
        values = _interleaved(outputs, found, cuts[0] if cuts else len(outputs))
        result = tracer.finish(values)
    return Pushed(GraphFunction(result), tuple(i for i, t in enumerate(found) if t is not None))


def _arguments(tracer: Tracer, graph: Graph, moving: Flags, cuts: tuple[int, ...]) -> tuple[list[Any], dict[int, Any]]:
    """The inputs of `graph` in a trace, and the tangents of those that move, each group of these behind its inputs."""
    inputs: list[Any] = []
    tangents: dict[int, Any] = {}
    named = list(zip(graph.inputs, graph.input_names, strict=True))
    for first, last in pairwise((0, *cuts, len(moving))):
        inputs += [tracer.add_input(value.spec, name) for value, name in named[first:last]]
        for i in range(first, last):
            if moving[i]:
                spec = TensorSpec(named[i][0].spec.shape, named[i][0].spec.dtype)  # type: ignore[union-attr]
                tangents[i] = tracer.add_input(spec, f"tangent_of_{named[i][1]}")
    return inputs, tangents


def _interleaved(values: Sequence[Any], tangents: Sequence[Any], n: int) -> list[Any]:
    """The first `n` values, their tangents, the other values, their tangents."""
    found: list[Any] = []
    for part in (slice(0, n), slice(n, None)):
        found += values[part]
        found += [t for t in tangents[part] if t is not None]
    return found


def flags_of(tangents: Sequence[Any]) -> Flags:
    return tuple([t is not None for t in tangents])


def present(tangents: Sequence[Any]) -> list[Any]:
    return [t for t in tangents if t is not None]


def parted(results: Sequence[Any], n: int, moving: Sequence[int]) -> tuple[tuple[Any, ...], list[Any]]:
    """Results and tangents out of `n` results followed by the tangents of some."""
    tangents: list[Any] = [None] * n
    for i, t in zip(moving, results[n:], strict=True):
        tangents[i] = t
    return tuple(results[:n]), tangents


def _push_call(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    function = attrs[0]
    found = pushed(function, flags_of(tangents))
    n = len(function.graph.outputs)
    if not found.moving:
        return dispatch.apply(call, inputs, (function,)), [None] * n
    return parted(dispatch.apply(call, (*inputs, *present(tangents)), (found.function,)), n, found.moving)


def _push_branches(op: Op, inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> Any:
    """All branches return tangents of whatever moves in one of them."""
    branches = branches_of(attrs)
    n = len(branches[0].graph.outputs)
    moving = flags_of(tangents[1:])
    reached = {i for branch in branches for i in pushed(branch, moving).moving}
    forced = tuple([i in reached for i in range(n)])
    functions = tuple([pushed(branch, moving, forced).function for branch in branches])
    places = [i for i in range(n) if forced[i]]
    for branch, wider in zip(branches, functions, strict=True):
        wider.blanks = branch.blanks | {n + k for k, i in enumerate(places) if i in branch.blanks}
    results = dispatch.apply(op, (*inputs, *present(tangents)), with_branches(attrs, functions))
    return parted(results, n, places)


class _Loop(NamedTuple):
    """A loop whose variables have tangents that are variables, too."""

    operands: tuple[Any, ...]
    condition: GraphFunction
    body: Pushed
    moving: tuple[int, ...]  # the variables that do


def _pushed_loop(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> _Loop:
    condition, body, n, _ = attrs[:4]
    flags, before = flags_of(tangents), None
    while flags != before:  # what moves after an iteration moves before the next one
        before = flags
        reached = pushed(body, flags, (), n).moving
        flags = tuple([m or (i < n and i in reached) for i, m in enumerate(flags)])
    n_outputs = len(body.graph.outputs)
    forced = tuple([i < n and flags[i] for i in range(n_outputs)])
    given = [filled(0, x) if m and t is None else t for x, t, m in zip(inputs, tangents, flags, strict=True)]
    operands = (*inputs[:n], *present(given[:n]), *inputs[n:], *present(given[n:]))
    moving = tuple([i for i in range(n) if flags[i]])
    return _Loop(operands, _widened(condition, flags, n), pushed(body, flags, forced, n), moving)


def _widened(condition: Any, moving: Flags, n: int) -> GraphFunction:
    """A loop's condition that takes tangents, and does not look at them."""
    key = ("widened", moving, n)
    found: GraphFunction | None = condition.pairs.get(key)
    if found is None:
        with dispatch.fresh_stack(), device_scopes.device(None), Tracer(condition.graph.name) as tracer:
            inputs, _ = _arguments(tracer, condition.graph, moving, (n,))
            graph = tracer.finish(replay(condition.graph, inputs))
        found = condition.pairs[key] = GraphFunction(graph)
    return found


def _push_while(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    n, limit = attrs[2:4]
    loop = _pushed_loop(inputs, tangents, attrs)
    wider = n + len(loop.moving)
    results = dispatch.apply(while_op, loop.operands, (loop.condition, loop.body.function, wider, limit))
    return parted(results, n, loop.moving)


def _push_while_forward(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    """The stacks that the loop leaves behind have tangents, too: stacks of the tangents of each iteration."""
    _, body, n, limit, _ = attrs
    loop = _pushed_loop(inputs, tangents, attrs)
    wider = n + len(loop.moving)
    params = (loop.condition, loop.body.function, wider, limit, None)
    results = dispatch.apply(while_forward, loop.operands, params)
    values, moved = parted(results[:wider], n, loop.moving)
    of_rows = [i - n for i in loop.body.moving if i >= n]
    stacks, of_stacks = parted(results[wider + 1 :], len(body.graph.outputs) - n, of_rows)
    return (*values, results[wider], *stacks), [*moved, None, *of_stacks]


# Python functions run under an accumulator


def _push_py_func(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    (function,) = attrs
    flags, specs = flags_of(tangents), function.specs
    moving = tuple(i for i, spec in enumerate(specs) if spec.dtype in INEXACT)

    def with_tangents(*given: Any) -> tuple[Any, ...]:
        primals = given[: len(flags)]
        varied = [x for x, m in zip(primals, flags, strict=True) if m]
        with ForwardAccumulator(varied, list(given[len(flags) :])) as forward:
            outputs = function(*primals)
        if forward.departure is not None and None in [forward.jvp(outputs[i]) for i in moving]:
            warn_of_departed(function, forward.departure, "tangent")
        return (*outputs, *[forward.jvp(outputs[i], "zero") for i in moving])

    with_tangents.__name__ = function.name
    wider = PythonCall(with_tangents, (*specs, *[specs[i] for i in moving]), single=False)
    return parted(dispatch.apply(py_func_op, (*inputs, *present(tangents)), (wider,)), len(specs), moving)


def _push_py_func_forward(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    """What the backward pass starts from comes from one run of the function, the tangents from another."""
    outputs = dispatch.apply(py_func_forward, inputs, attrs)
    _, found = _push_py_func(inputs, tangents, attrs)
    return outputs, [*found, None]


def _push_py_func_backward(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    return _push_py_func(inputs, tangents, (again_call(inputs, attrs),))


call.jvp = call_forward.jvp = _push_call
cond_op.jvp = cond_forward.jvp = functools.partial(_push_branches, cond_op)
switch_op.jvp = switch_forward.jvp = functools.partial(_push_branches, switch_op)
while_op.jvp = _push_while
while_forward.jvp = _push_while_forward
py_func_op.jvp = _push_py_func
py_func_forward.jvp = _push_py_func_forward
py_func_backward.jvp = _push_py_func_backward

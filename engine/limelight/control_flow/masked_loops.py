"""Masked functions: their loops end at once for examples of a batch whose results nobody wants.

Where each example of a batch decides, a branch also runs for examples that chose another one, and the body of a loop
for examples that are done. A loop inside need not end for these: it could go on for ever, and nobody would know why. So
a masked function has one more input, whether its results are wanted, and its loops go on only while they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from limelight.batching import Site
from limelight.core import device_scopes, dispatch
from limelight.core.dtypes import bool_
from limelight.core.op import Op
from limelight.core.spec import known
from limelight.core.tensor import Tensor
from limelight.graph.ir import functions_in, with_functions
from limelight.staging.body_batching import BatchedFunction, Flags, batch_size, trace_batched
from limelight.staging.graph_function import GraphFunction
from limelight.staging.tracer import Tracer, replay

LOOPS: Final = ("while_loop", "while_detached", "while_forward")
PASSING_ON: Final = (
    *LOOPS, "call", "call_forward", "cond", "cond_forward", "switch", "switch_forward", "scan", "scan_forward"
)  # fmt: skip
"""The ops that pass their last inputs on to their functions, so that these can be given one more."""


def has_loops(function: Any) -> bool:
    """Whether a `while_loop` is in it, or in what it calls."""
    if "loops" not in function.pairs:
        function.pairs["loops"] = any(
            node.op.name in LOOPS or any(map(has_loops, _called_functions(node.op, node.params)))
            for node in function.graph.nodes
            if node.op.higher_order
        )
    return bool(function.pairs["loops"])


def _called_functions(op: Op, attrs: Sequence[Any]) -> tuple[Any, ...]:
    return functions_in(attrs) if op.name in PASSING_ON else ()


def replay_masked(wanted: Tensor, function: Any, inputs: Sequence[Any]) -> list[Any]:
    """Replays the graph of `function`, in which no loop goes on once `wanted`, a boolean, is false."""

    def apply(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        if not any(map(has_loops, _called_functions(op, attrs))) and op.name not in LOOPS:
            return dispatch.apply(op, inputs, attrs)
        if op.name in LOOPS:
            condition, body, n, limit, *record = attrs
            changed: Any = (_masked_condition(condition), masked(body), n, limit, *[None for _ in record])
        else:
            changed = with_functions(masked, attrs)
        return dispatch.apply(op, (*inputs, wanted), changed)

    return replay(function.graph, inputs, apply)


def masked(function: Any) -> Any:
    """The masked version of `function`, built once: its last input says whether its results are wanted."""
    return _masked_version(function, "masked")


def _masked_condition(function: Any) -> Any:
    """The masked version of a loop's condition, which is false where the results are not wanted."""
    return _masked_version(function, "masked condition")


def _masked_version(function: Any, kind: str) -> Any:
    version = function.pairs.get(kind)
    if version is None:
        name = function.graph.name
        with dispatch.fresh_stack(), device_scopes.device(None), Tracer(name) as tracer:
            inputs = [tracer.add_input(value.spec) for value in function.graph.inputs]
            wanted = tracer.add_input(known((), bool_), "wanted")
            outputs = replay_masked(wanted, function, inputs)
            if kind == "masked condition":
                outputs = [outputs[0].reshape(()) & wanted]
            version = GraphFunction(tracer.finish(outputs))
        version.blanks = function.blanks
        function.pairs[kind] = version
    return version


def masked_condition_and_body(site: Site, mask: Flags, recorded: bool) -> tuple[BatchedFunction, BatchedFunction]:
    """The batched condition and body of a loop in which examples differ in the number of iterations.

    The condition says whether any example goes on. The body makes a step for the examples that go on and leaves the
    variables of the others as they are.

    Args:
        site: the loop.
        mask: the inputs that differ between examples.
        recorded: whether it is a `while_forward`, whose body also returns which examples go on, as a row.
    """
    condition, body, n = site.attrs[:3]

    def condition_holds(loop_inputs: list[Any]) -> Any:
        return replay(condition.graph, loop_inputs)[0].reshape(())

    def step(loop_inputs: list[Any]) -> list[Any]:
        live = condition_holds(loop_inputs)
        results = replay_masked(live, body, loop_inputs) if has_loops(body) else replay(body.graph, loop_inputs)
        variables = [live.where(new, old) for new, old in zip(results[:n], loop_inputs[:n], strict=True)]
        return [*variables, live, *results[n:]] if recorded else variables

    count = batch_size(site)
    holds = trace_batched(condition.graph, mask, count, (), lambda loop_inputs: [condition_holds(loop_inputs)])
    batched_step = trace_batched(body.graph, mask, count, (True,) * (n + recorded), step)
    assert holds is not None, "a condition is a tensor"
    assert batched_step is not None, "it could be batched without a mask"
    graph = holds.function.graph
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(graph.name) as tracer:
        inputs = [tracer.add_input(value.spec) for value in graph.inputs]
        any_holds = GraphFunction(tracer.finish([replay(graph, inputs)[0].any()]))
    return holds._replace(function=any_holds), batched_step

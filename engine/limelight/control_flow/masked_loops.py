"""Functions whose loops stop at once where nobody wants their results: for examples of another branch, or done ones.

Where a batch decides, a branch or a body also runs for examples that did not ask for it. A loop in it need not end for
these, so it gets one more input, whether it is wanted, and goes on only while it is.
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
from limelight.staging.body_batching import Flags, Many, count_of, trace_batched
from limelight.staging.graph_function import GraphFunction
from limelight.staging.tracer import Tracer, replay

LOOPS: Final = ("while_loop", "while_detached", "while_forward")
GUARDED: Final = (
    *LOOPS, "call", "call_forward", "cond", "cond_forward", "switch", "switch_forward", "scan", "scan_forward"
)  # fmt: skip
"""What hands its last inputs on to its functions, as they are."""


def has_loops(function: Any) -> bool:
    """Whether a loop that ends by a condition is in it, or in what it calls."""
    if "loops" not in function.pairs:
        function.pairs["loops"] = any(
            node.op.name in LOOPS or any(map(has_loops, _functions(node.op, node.params)))
            for node in function.graph.nodes
            if node.op.higher_order
        )
    return bool(function.pairs["loops"])


def _functions(op: Op, attrs: Sequence[Any]) -> tuple[Any, ...]:
    return functions_in(attrs) if op.name in GUARDED else ()


def replay_while(wanted: Tensor, function: Any, inputs: Sequence[Any]) -> list[Any]:
    """Replays the graph of `function`, in which no loop goes on once `wanted`, a boolean, is false."""

    def apply(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        if not any(map(has_loops, _functions(op, attrs))) and op.name not in LOOPS:
            return dispatch.apply(op, inputs, attrs)
        if op.name in LOOPS:
            condition, body, n, limit, *record = attrs
            changed: Any = (_condition(condition), guarded(body), n, limit, *[None for _ in record])
        else:
            changed = with_functions(guarded, attrs)
        return dispatch.apply(op, (*inputs, wanted), changed)

    return replay(function.graph, inputs, apply)


def guarded(function: Any) -> Any:
    """`function` with one more input, the last: whether its results are wanted."""
    return _made(function, "guarded")


def _condition(function: Any) -> Any:
    """The condition of a loop, which is also false where its results are not wanted."""
    return _made(function, "condition")


def _made(function: Any, kind: str) -> Any:
    made = function.pairs.get(kind)
    if made is None:
        name = function.graph.name
        with dispatch.fresh_stack(), device_scopes.device(None), Tracer(name) as tracer:
            inputs = [tracer.add_input(value.spec) for value in function.graph.inputs]
            wanted = tracer.add_input(known((), bool_), "wanted")
            outputs = replay_while(wanted, function, inputs)
            if kind == "condition":
                outputs = [outputs[0].reshape(()) & wanted]
            made = GraphFunction(tracer.finish(outputs))
        made.blanks = function.blanks
        function.pairs[kind] = made
    return made


def masked_functions(site: Site, mask: Flags, recorded: bool) -> tuple[Many, Many]:
    """Whether any example goes on, and one step for those that do, which of a recorded loop says which these are."""
    condition, body, n = site.attrs[:3]

    def goes_on(given: list[Any]) -> Any:
        return replay(condition.graph, given)[0].reshape(())

    def step(given: list[Any]) -> list[Any]:
        going = goes_on(given)
        results = replay_while(going, body, given) if has_loops(body) else replay(body.graph, given)
        variables = [going.where(new, old) for new, old in zip(results[:n], given[:n], strict=True)]
        return [*variables, going, *results[n:]] if recorded else variables

    count = count_of(site)
    asked = trace_batched(condition.graph, mask, count, (), lambda given: [goes_on(given)])
    stepping = trace_batched(body.graph, mask, count, (True,) * (n + recorded), step)
    assert asked is not None, "a condition is a tensor"
    assert stepping is not None, "it could be had without a mask"
    graph = asked.function.graph
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(graph.name) as tracer:
        inputs = [tracer.add_input(value.spec) for value in graph.inputs]
        any_goes_on = GraphFunction(tracer.finish([replay(graph, inputs)[0].any()]))
    return asked._replace(function=any_goes_on), stepping

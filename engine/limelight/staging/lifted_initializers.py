"""Values of tensors of a trace that is still going on: for initial values that a staged function computes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from limelight.core import dispatch
from limelight.core.spec import VariableSpec
from limelight.core.tensor import Tensor, wrap
from limelight.core.variable import Variable
from limelight.errors import SymbolicValueError
from limelight.graph.effects import effects_of
from limelight.graph.ir import Graph, Node, Value
from limelight.graph.subgraph import extract
from limelight.staging.graph_function import GraphFunction
from limelight.staging.tracer import SymbolicTensor, Tracer

Lifter = Callable[[Any], Any]


def lifted(tracer: Tracer, leaves: list[Any], outer: Lifter | None, given: Any) -> Any:
    """The value of a tensor of `tracer`'s trace, computed from `leaves`, the arguments of the call that is traced.

    Or of a branch or body that is traced within it. `outer` does the same for the trace around. Only what the tensor
    depends on is run, and nothing with an effect: the function itself runs afterwards. A function is called outside the
    trace, or in it where it uses the arguments of what is traced. Raises SymbolicValueError where that cannot be done.
    """
    symbolic = _called(given) if callable(given) else given
    if not isinstance(symbolic, SymbolicTensor):
        return symbolic
    if symbolic._tracer is tracer:
        return _computed(tracer, [x for x in leaves if isinstance(x, (Tensor, Variable))], outer, symbolic)
    if _is_within(symbolic._tracer, tracer):
        return _computed(symbolic._tracer, [], functools.partial(lifted, tracer, leaves, outer), symbolic)
    if outer is None:
        raise SymbolicValueError(
            f"the initial value of a variable is computed inside {symbolic._tracer.name!r}, a branch or a loop "
            "body, whose values do not exist yet; create the variable before it, or compute the value outside"
        )
    return outer(symbolic)


def _is_within(inner: Tracer, outer: Tracer) -> bool:
    """Whether a trace goes on inside another one: of a branch, say."""
    stack = dispatch.stack()
    return inner in stack and outer in stack and stack.index(inner) > stack.index(outer)


def _computed(tracer: Tracer, arguments: list[Any], outer: Lifter | None, symbolic: SymbolicTensor) -> Tensor:
    if len(arguments) != len(tracer.inputs):
        arguments = [None] * len(tracer.inputs)
    graph = _without_effects(tracer.finish([symbolic]))
    read = {value for node in graph.nodes for value in node.inputs}.union(graph.outputs)
    given = [value in read for value in graph.inputs]
    handles = [x for x, used in zip([*arguments, *tracer.captures], given, strict=True) if used]
    values = [_value(x, tracer, outer) for x in handles]
    inputs, names = list(itertools.compress(graph.inputs, given)), list(itertools.compress(graph.input_names, given))
    graph = extract(graph.name, inputs, graph.nodes, graph.outputs, names)
    with dispatch.fresh_stack():
        function = GraphFunction(graph).placed_on([x._device for x in values])
        results = function.run(*[x._data for x in values])
        return wrap(results[0], function.run.output_devices[0])


def _called(make: Callable[[], Any]) -> Any:
    try:
        with dispatch.fresh_stack():
            return make()
    except SymbolicValueError:
        return make()


def _value(x: Any, tracer: Tracer, outer: Lifter | None) -> Any:
    """An argument or captured tensor that has a value, if need be one of the trace around."""
    if x is None or (isinstance(x, SymbolicTensor) and outer is None):
        raise SymbolicValueError(
            f"the initial value of a variable depends on an argument of {tracer.name!r} that has no value yet; "
            "call the function with real tensors first (in the body of a loop: create the variable before the loop), "
            "or make the initial value a function without arguments"
        )
    return outer(x) if isinstance(x, SymbolicTensor) and outer else x


def _without_effects(graph: Graph) -> Graph:
    """The part of `graph` that its output depends on; raises SymbolicValueError if running it could be noticed."""
    wanted = set(graph.outputs)
    needed: list[Node] = []
    for node in reversed(graph.nodes):
        if not wanted.isdisjoint(node.outputs):
            needed.append(node)
            wanted.update(node.inputs)
    needed.reverse()
    _refuse_effects(graph, needed)
    return extract(graph.name, graph.inputs, needed, graph.outputs, graph.input_names)


def _refuse_effects(graph: Graph, needed: list[Node]) -> None:
    last = graph.nodes.index(needed[-1]) if needed else 0
    written: set[Value] = {v for node in graph.nodes[:last] for v in effects_of(node).writes if _kept(v)}
    for node in needed:
        effects = effects_of(node)
        what = "does I/O" if "io" in effects.chains else ""
        if any(_kept(value) for value in effects.writes):
            what = "assigns to a variable"
        if effects.reads & written:
            what = "reads what this function has assigned to before"
        if what:
            raise SymbolicValueError(
                f"the initial value of a variable depends on {node.op}, which {what}; this would happen twice or at "
                "the wrong time; create the variable first, or make the initial value a function without arguments"
            )


def _kept(value: Value) -> bool:
    """Whether it matters how often something is written: an initial value may well be drawn from a generator."""
    return isinstance(value.spec, VariableSpec) and not value.spec.anywhere
